"""The HTTP/1.1 server that clients connect to, on `httptools`, directly on the event loop.

A `Server` listens and holds the connections. A `ClientConnection` parses requests and has them answered in order. A
handler receives a `Request` and returns a `WholeAnswer`, or sends an `OpenAnswer` piece by piece.
"""

from gateway.http.answer import OpenAnswer, WholeAnswer
from gateway.http.request import Request
from gateway.http.server import Server

__all__ = ["OpenAnswer", "Request", "Server", "WholeAnswer"]
