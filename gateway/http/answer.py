"""Answers to clients: their heads, and those whose body is known."""

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from gateway.http.request import Request

#: Statuses without a body.
BODILESS: Final = frozenset({204, 304})


def write_head(status: int, fields: bytes, server_lines: bytes, framing: bytes) -> bytes:
    r"""Return the head of an answer, including its empty line.

    Parameters
    ----------
    fields
        All lines except those of `server_lines_now` and ``framing``, each with a line break before it.
    server_lines
        Lines of server and date: `server_lines_now`.
    framing
        Lines for the end of the connection (`connection_line`) and the length of the answer, written in the same way.
    """
    return b"%b%b%b%b\r\n\r\n" % (status_line(status), fields, server_lines, framing)


def write_fields(headers: Mapping[str, str]) -> bytes:
    r"""Return header fields as lines, each with a line break before it; names in lower case.

    Raises
    ------
    ValueError
        A field contains a line break or a NUL.

    >>> write_fields({"content-type": "text/plain"})
    b'\r\ncontent-type: text/plain'
    """
    lines = "".join([f"\r\n{name}: {value}" for name, value in headers.items()])
    if lines.count("\n") > len(headers) or lines.count("\r") > len(headers) or "\0" in lines:
        raise ValueError("A header field contains a line break or a NUL.")
    return lines.encode("utf-8", "surrogateescape")


def connection_line(minor: int, *, ends: bool) -> bytes:
    """Return the line about the end of the connection; empty for the default of HTTP/1.``minor``."""
    if ends == (minor == 0):
        return b""
    return b"\r\nconnection: close" if ends else b"\r\nconnection: keep-alive"


@lru_cache(maxsize=100)
def status_line(status: int) -> bytes:
    """Return the first line of an answer."""
    reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    return f"HTTP/1.1 {status} {reason}".encode()


@lru_cache(maxsize=1)
def _server_lines(second: int) -> bytes:
    return f"\r\nserver: biasmeter\r\ndate: {formatdate(second, usegmt=True)}".encode()


def server_lines_now() -> bytes:
    """Return the lines of server and date, each with a line break before it."""
    return _server_lines(int(time.time()))


class WholeAnswer:
    """An answer whose body is known.

    Parameters
    ----------
    status
        The HTTP status.
    headers
        All fields except framing, connection, date and server; names in lower case.
    body
        The whole body.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def write(self, method: str, minor: int, *, ends: bool) -> bytes:
        """Return the answer to a request of HTTP/1.``minor``; ``ends``: whether the connection ends with it.

        Raises
        ------
        ValueError
            A header field contains a line break or a NUL.
        """
        return b"".join(self._parts(method, minor, ends=ends))

    def _parts(self, method: str, minor: int, *, ends: bool) -> tuple[bytes, bytes]:
        framing, body = connection_line(minor, ends=ends), self.body
        if self.status in BODILESS:
            body = b""
        else:
            framing += b"\r\ncontent-length: %d" % len(body)
        head = write_head(self.status, write_fields(self.headers), server_lines_now(), framing)
        return head, b"" if method == "HEAD" else body

    def send(self, request: Request) -> bool:
        """Send the answer. Return whether the connection ends with it.

        Raises
        ------
        ValueError
            A header field contains a line break or a NUL.
        """
        ends = request.client.ends_after(request)
        head, body = self._parts(request.method, request.minor, ends=ends)
        request.client.write(head)
        if body:  # apart from the head, so that answers to many clients can share a large one
            request.client.write(body)
        return ends
