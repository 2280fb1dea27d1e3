"""Answers to clients: those whose body is known, and those that are sent piece by piece."""

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from gateway.http.request import Request

#: Statuses without a body.
BODILESS = frozenset({204, 304})
_SERVER = "server: biasmeter"


def write_head(status: int, headers: Mapping[str, str], framing: list[str]) -> bytes:
    r"""Return the head of an answer, including its empty line.

    Parameters
    ----------
    headers
        All fields except framing, connection, date and server; names in lower case.
    framing
        Lines for the length of the answer and the end of the connection.

    Raises
    ------
    ValueError
        A field contains a line break or a NUL.
    """
    lines = [status_line(status), *[f"{name}: {value}" for name, value in headers.items()]]
    lines += (_SERVER, _date_line(int(time.time())), *framing)
    head = "\r\n".join(lines)
    if head.count("\n") >= len(lines) or head.count("\r") >= len(lines) or "\0" in head:
        raise ValueError("A header field contains a line break or a NUL.")
    return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n"


@lru_cache(maxsize=100)
def status_line(status: int) -> str:
    """Return the first line of an answer."""
    reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    return f"HTTP/1.1 {status} {reason}"


@lru_cache(maxsize=1)
def _date_line(second: int) -> str:
    return f"date: {formatdate(second, usegmt=True)}"


@lru_cache(maxsize=1)
def _own_lines(second: int) -> bytes:
    return f"\r\n{_SERVER}\r\n{_date_line(second)}".encode()


def own_lines() -> bytes:
    """Return the lines of server and date, each with a line break before it, as `write_head` writes them."""
    return _own_lines(int(time.time()))


class WholeAnswer:
    """An answer whose body is known.

    Parameters
    ----------
    status
        The HTTP status.
    headers
        See `gateway.http.answer.write_head`.
    body
        The whole body.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def send(self, request: Request) -> bool:
        """Send the answer. Return whether the connection ends with this answer.

        Raises
        ------
        ValueError
            A header field contains a line break or a NUL.
        """
        ends = request.client.ends_after(request)
        framing = _connection(request, ends=ends)
        body = self.body
        if self.status in BODILESS:
            body = b""
        else:
            framing.append(f"content-length: {len(body)}")
        head = write_head(self.status, self.headers, framing)
        request.client.write(head if request.method == "HEAD" else head + body)
        return ends


class OpenAnswer:
    """An answer of unknown length, sent piece by piece.

    Parameters
    ----------
    request
        The request that it answers.
    status
        A status with a body.
    headers
        See `gateway.http.answer.write_head`. None: the head has been sent, with chunks and without an end.
    """

    __slots__ = ("_client", "_head", "_is_chunked", "ends")

    def __init__(self, request: Request, status: int, headers: dict[str, str] | None) -> None:
        self._client = request.client
        self._is_chunked = request.minor > 0
        if headers is None:
            self.ends, self._head = False, b""
            return
        #: whether the connection ends with this answer
        self.ends = not self._is_chunked or request.client.ends_after(request)
        framing = _connection(request, ends=self.ends)
        if self._is_chunked:
            framing.append("transfer-encoding: chunked")
        self._head = write_head(status, headers, framing)

    @property
    def is_full(self) -> bool:
        """Whether the write buffer is full; then `drain` waits."""
        return self._client.is_full

    async def drain(self) -> None:
        """Wait until the client accepts more data."""
        await self._client.drain()

    def write(self, data: bytes) -> None:
        """Send a piece as one chunk. The head is sent with the first piece, even if that is empty.

        Raises
        ------
        ConnectionResetError
            The client has left.
        """
        if data and self._is_chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        if self._head:
            data = self._head + data
            self._head = b""
        if data:
            self._client.write(data)

    def end(self) -> None:
        """Send the end of the answer."""
        if self._is_chunked:
            self._client.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Close the connection without the end of the answer, so that the client sees that it is incomplete."""
        self.ends = True
        self._client.cut()

    def abort(self) -> None:
        """Close the connection at once, also if the client has not read what was written."""
        self.ends = True
        self._client.abort()


def _connection(request: Request, *, ends: bool) -> list[str]:
    if ends == (request.minor == 0):  # the default of this version
        return []
    return ["connection: close" if ends else "connection: keep-alive"]
