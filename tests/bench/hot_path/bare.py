"""The gateway's own server and its way to a deployment, and nothing between: ``python -m ... PORT UPSTREAM_PORT``.

No key, no route, no limit, no deadline, no copy, no count. It says how much of what the gateway costs is HTTP in
Python, and so what is left for all that makes it a gateway.
"""

import asyncio
import socket
import sys

import uvloop

from gateway.http import OpenAnswer, Request, Server, WholeAnswer
from gateway.upstreams import UpstreamAnswer, UpstreamRequest
from gateway.upstreams.lean import LeanUpstream

_LIMIT = 32 << 20


class BareRelay:
    """Asks one deployment whatever it is asked.

    Parameters
    ----------
    port
        The deployment's.
    """

    def __init__(self, port: int) -> None:
        self._origin = f"http://127.0.0.1:{port}"
        self._upstream = LeanUpstream()

    async def serve(self, request: Request) -> bool:
        """Relay one request; say whether the connection ends with the answer."""
        body = await request.body(_LIMIT)
        headers = {"content-type": "application/json", "authorization": "Bearer sk-upstream"}
        ask = UpstreamRequest(self._origin + request.target, headers, body, 5.0, method=request.method)
        answer = await self._upstream.send(ask)
        try:
            return await _relay(request, answer)
        finally:
            answer.close()


async def _relay(request: Request, answer: UpstreamAnswer) -> bool:
    content_type = dict(answer.headers).get("content-type", "")
    headers = {"content-type": content_type}
    if not content_type.startswith("text/event-stream"):
        pieces = []
        while piece := await answer.read():
            pieces.append(piece)
        return WholeAnswer(answer.status, headers, b"".join(pieces)).send(request)
    stream = OpenAnswer(request, answer.status, headers)
    while events := await answer.read():
        stream.write(events)
        if stream.is_full:
            await stream.drain()
    stream.end()
    return stream.ends


async def _serve(port: int, upstream: int) -> None:
    site = Server(BareRelay(upstream).serve, lambda: 10.0)
    await site.listen(socket.create_server(("127.0.0.1", port), backlog=1024))
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
