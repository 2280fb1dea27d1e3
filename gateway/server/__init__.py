"""The way from a client: HTTP/1.1 on `httptools`, and nothing between it and the event loop.

A `Site` listens and holds the connections; a `Connection` parses requests and has them answered one after another; the
handler sees a `Request`, and answers it whole (`WholeAnswer`) or as it comes (`OpenAnswer`).
"""

from gateway.server.answer import OpenAnswer, WholeAnswer
from gateway.server.request import Request
from gateway.server.site import Site

__all__ = ["OpenAnswer", "Request", "Site", "WholeAnswer"]
