"""Requests of the gateway itself, whose answers are read whole."""

import asyncio

from typing_extensions import override

from gateway.errors import UpstreamFailed, UpstreamTimeout
from gateway.pieces import Pieces
from gateway.upstreams import UpstreamFailureCode, upstream_failed
from gateway.upstreams.answer_heads import AnswerHead
from gateway.upstreams.connection import AnswerFollower, ConnectionKey, UpstreamConnection
from gateway.upstreams.pool import ConnectionPool


class CollectedAnswer(AnswerFollower):
    """An answer that is collected. Created inside a running event loop.

    Attributes
    ----------
    head
        The head, as soon as it has come.
    body
        What has come of the body.
    """

    def __init__(self, connection: UpstreamConnection, limit: int) -> None:
        self.head: AnswerHead | None = None
        self.body = Pieces()
        self._connection = connection
        self._limit = limit
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self) -> AnswerHead:
        """Wait until the answer is complete, and return its head.

        Raises
        ------
        UpstreamFailed
            The connection ended before, or the body is larger than the limit.
        """
        try:
            await self._end
        except asyncio.CancelledError:
            if self._end.cancelled():
                self._connection.abort()
            raise
        assert self.head is not None
        return self.head

    @override
    def began(self, head: AnswerHead) -> None:
        self.head = head

    @override
    def received(self, payload: bytes, chunk: bytes) -> None:
        self.body.add(payload)
        if self.body.size > self._limit:
            self._connection.abort()
            message = f"The deployment's answer is larger than {self._limit} bytes."
            self.broken(UpstreamFailed(message, code="upstream_protocol"))

    @override
    def ended(self) -> None:
        if not self._end.done():
            self._end.set_result(None)

    @override
    def failed(self, code: UpstreamFailureCode) -> None:
        self.broken(upstream_failed(code))

    @override
    def broken(self, error: Exception) -> None:
        if not self._end.done():
            self._end.set_exception(error)


async def fetch(
    pool: ConnectionPool,
    key: ConnectionKey,
    head: bytes,
    *,
    connect_timeout: float,
    timeout: float,  # noqa: ASYNC109 -- it becomes an error of the gateway
    limit: int,
) -> tuple[AnswerHead, bytes]:
    """Send a request without a body, and return the head and the body of its answer.

    Parameters
    ----------
    connect_timeout, timeout
        Seconds for the connection, and for all of it.
    limit
        The largest body, in bytes.

    Raises
    ------
    UpstreamFailed
        The deployment could not be reached, or its answer is larger than the limit.
    UpstreamTimeout
        The answer was not complete in time.
    """
    try:
        async with asyncio.timeout(timeout):
            kept = pool.take(key)
            if kept is not None:
                answer = CollectedAnswer(kept, limit)
                kept.send(head, b"", answer)
                try:
                    return await answer.wait(), answer.body.whole()
                except UpstreamFailed as failed:
                    # A server may close an idle connection at the moment of its reuse: retry on a new connection.
                    if failed.code != "upstream_reset" or not kept.is_unanswered:
                        raise
            fresh = await pool.connect(key, connect_timeout)
            answer = CollectedAnswer(fresh, limit)
            fresh.send(head, b"", answer)
            return await answer.wait(), answer.body.whole()
    except TimeoutError:
        raise UpstreamTimeout("The deployment did not answer in time.", code="total_timeout") from None
