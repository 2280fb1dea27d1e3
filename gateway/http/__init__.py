"""The HTTP/1.1 server that clients connect to, on `httptools`, directly on the event loop.

A `Server` listens and holds the connections. A `ClientConnection` first offers what it receives to a cache of request
heads, and parses what that does not take. A parsed request is answered by a task, whose handler returns a `WholeAnswer`
or hands the connection over to an exchange, as the cache does.
"""

from gateway.http.answer import WholeAnswer
from gateway.http.request import Request
from gateway.http.server import Server

__all__ = ["Request", "Server", "WholeAnswer"]
