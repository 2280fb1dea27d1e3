"""Answers to clients: those that are known whole, and those that go out as they come."""

from gateway.server.head import BODILESS, write_head
from gateway.server.request import Request


class WholeAnswer:
    """An answer whose body is known.

    Parameters
    ----------
    status
        The HTTP status.
    headers
        See `gateway.server.head.write_head`.
    body
        The whole body.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def send(self, request: Request) -> bool:
        """Send it; say whether the connection ends with it.

        Raises
        ------
        ValueError
            A header field holds what would end its line.
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
    """An answer of which nobody knows how long it will be.

    Parameters
    ----------
    request
        The request that it answers.
    status
        One that has a body.
    headers
        See `gateway.server.head.write_head`.
    """

    __slots__ = ("_client", "_head", "_is_chunked", "ends")

    def __init__(self, request: Request, status: int, headers: dict[str, str]) -> None:
        self._client = request.client
        self._is_chunked = request.minor > 0
        #: whether the connection ends with it
        self.ends = not self._is_chunked or request.client.ends_after(request)
        framing = _connection(request, ends=self.ends)
        if self._is_chunked:
            framing.append("transfer-encoding: chunked")
        self._head = write_head(status, headers, framing)

    @property
    def is_full(self) -> bool:
        """Whether the client takes no more for now: `drain` waits until it does."""
        return self._client.is_full

    async def drain(self) -> None:
        """Wait until the client takes more."""
        await self._client.drain()

    def write(self, data: bytes) -> None:
        """Send a piece, as one; with the first goes the head, also if it is empty.

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
        """Say that it is whole."""
        if self._is_chunked:
            self._client.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Let the client know that it is not whole: the connection ends without its end."""
        self.ends = True
        self._client.cut()


def _connection(request: Request, *, ends: bool) -> list[str]:
    if ends == (request.minor == 0):  # as the version has it anyway
        return []
    return ["connection: close" if ends else "connection: keep-alive"]
