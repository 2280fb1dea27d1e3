"""The gateway's own server and its way to a deployment, and nothing between: ``python -m ... PORT UPSTREAM_PORT``.

No key, no route, no limit, no deadline, no copy, no count. It says how much of what the gateway costs is HTTP in
Python, and so what is left for all that makes it a gateway.
"""

import asyncio
import socket
import sys
from typing import Final

import uvloop
from typing_extensions import override

from gateway.http import Request, Server
from gateway.http.answer import connection_line, server_lines_now, write_head
from gateway.http.connection import Answering, ClientConnection
from gateway.upstreams import UpstreamFailureCode
from gateway.upstreams.answer_heads import AnswerHead
from gateway.upstreams.connection import AnswerFollower, UpstreamConnection
from gateway.upstreams.pool import ConnectionPool

_LIMIT: Final = 32 << 20
_HEADERS: Final = "content-type: application/json\r\nauthorization: Bearer sk-upstream"


class BareRelay:
    """Asks one deployment whatever it is asked.

    Parameters
    ----------
    port
        The deployment's.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._pool = ConnectionPool()

    async def serve(self, request: Request) -> bool:
        """Relay one request; the exchange answers it."""
        body = await request.body(_LIMIT, 60.0)
        key = ("127.0.0.1", self._port, None)
        connection = self._pool.take(key) or await self._pool.connect(key, 5.0)
        head = f"{request.method} {request.target} HTTP/1.1\r\nhost: 127.0.0.1\r\n{_HEADERS}\r\n"
        BareExchange(request, connection).ask(f"{head}content-length: {len(body)}\r\n\r\n".encode(), body)
        return False


class BareExchange(Answering, AnswerFollower):
    """One exchange: the answer is sent in chunks, or whole if its length is known."""

    def __init__(self, request: Request, connection: UpstreamConnection) -> None:
        assert isinstance(request.client, ClientConnection)
        self._client = request.client
        self._connection = connection
        self._head: AnswerHead | None = None
        self._pieces: list[bytes] = []

    def ask(self, head: bytes, body: bytes) -> None:
        """Send the request to the deployment."""
        self._client.exchange = self
        self._connection.send(head, body, self)

    @override
    def began(self, head: AnswerHead) -> None:
        self._head = head
        if head.length < 0:
            framing = connection_line(1, ends=False) + b"\r\ntransfer-encoding: chunked"
            self._client.write(write_head(head.status, head.fields, server_lines_now(), framing))

    @override
    def received(self, payload: bytes, chunk: bytes) -> None:
        assert self._head is not None
        if self._head.length >= 0:
            self._pieces.append(payload)
            return
        self._client.write(chunk or b"%x\r\n%b\r\n" % (len(payload), payload))
        if self._client.is_full:
            self._connection.pause()

    @override
    def ended(self) -> None:
        assert self._head is not None
        if self._head.length < 0:
            self._client.finish(b"0\r\n\r\n", ends=False)
            return
        body = b"".join(self._pieces)
        framing = b"\r\ncontent-length: %d" % len(body)
        self._client.finish(
            write_head(self._head.status, self._head.fields, server_lines_now(), framing) + body, ends=False
        )

    @override
    def failed(self, code: UpstreamFailureCode) -> None:
        self._client.cut()

    @override
    def broken(self, error: Exception) -> None:
        self._client.cut()

    @override
    def client_lost(self) -> None:
        self._connection.abort()

    @override
    def client_ready(self) -> None:
        self._connection.resume()

    @override
    def stop(self) -> None:
        self._client.cut()


async def _serve(port: int, upstream: int) -> None:
    server = Server(BareRelay(upstream).serve, lambda: 10.0)
    await server.listen(socket.create_server(("127.0.0.1", port), backlog=1024))
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
