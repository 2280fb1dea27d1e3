"""One request to a deployment, until its answer has begun.

An answer of up to 1 MiB that is no stream is read whole first, so that a failure in its middle can still become another
attempt, or an error. Of a stream the first byte is waited for. Nothing has been sent to the client until then.
"""

import asyncio
import time
from typing import Final

from gateway.errors import UpstreamFailed, UpstreamTimeout
from gateway.exchange.exchange import ActiveExchange
from gateway.exchange.open_relay import BodyRelay
from gateway.exchange.route_plans import DeploymentPlan
from gateway.exchange.stream_relay import StreamRelay
from gateway.exchange.usage import inject_usage
from gateway.pieces import Pieces
from gateway.routing.failures import AttemptFailed, ErrorAnswer, HungUp, UpstreamRefused
from gateway.upstreams import UpstreamFailureCode, upstream_failed
from gateway.upstreams.answer_heads import AnswerHead
from gateway.upstreams.connection import UpstreamConnection

#: The largest answer that is read whole, in bytes.
_WHOLE: Final = 1 << 20


class Attempt:
    """One request to the deployment that an exchange has chosen.

    Parameters
    ----------
    exchange
        The exchange, which holds a slot of the deployment.
    chosen
        The deployment.
    connection
        An idle connection to it. It is closed if the request cannot be written.
    due
        Time by which the answer must have begun, in the event loop's time.
    begun
        Is done when the answer has begun, or with how the attempt has failed. Without it `ExchangeParts.go_on_after`
        goes on after a failure.

    Raises
    ------
    UpstreamFailed
        The request cannot be written as HTTP.
    """

    # Values of the class stand for those that an attempt begins with: a client waits until it is made.
    _head: AnswerHead | None = None
    _is_stream = False  # the answer is a stream
    _body: Pieces | None = None  # what has come of it, unless it is a stream

    def __init__(
        self,
        exchange: ActiveExchange,
        chosen: DeploymentPlan,
        connection: UpstreamConnection,
        due: float,
        begun: "asyncio.Future[HungUp | AttemptFailed | None] | None" = None,
    ) -> None:
        self._exchange = exchange
        self._connection = connection
        self._begun = begun
        body = exchange.sent
        if exchange.envelope.stream:
            exchange.usage_injected = False
            if exchange.head.endpoint.usage_on_request:
                body, exchange.usage_injected = _ask_for_usage(exchange, body)
        try:
            self._request = chosen.request(exchange.request_id, exchange.headers.get("traceparent", ""), body)
        except UpstreamFailed:
            connection.abort()
            raise
        self._started_at = time.perf_counter()
        exchange.relay = self
        exchange.parts.deadlines.watch(self, due)

    def ask(self) -> None:
        """Send the request, unless the client has left."""
        if self._exchange.relay is not self:
            return
        head, body = self._request
        if not self._connection.send(head, body, self):
            self._fail(HungUp())

    # -- the answer ---------------------------------------------------------------------------------------------------

    def answered(self, head: AnswerHead, body: bytes) -> None:
        """Go on with a whole answer, which has come at once."""
        exchange = self._exchange
        if head.status >= 400 or head.is_stream:
            self.began(head)
            self.received(body, b"")
            if exchange.relay is not None:
                exchange.relay.ended()
            return
        exchange.relay = None
        exchange.parts.deadlines.forget(self)
        exchange.upstream_s += time.perf_counter() - self._started_at
        exchange.answer_head, exchange.answer_body = head, body
        exchange.parts.batch.end(exchange)
        if self._begun is not None:
            self._report(None)

    def began(self, head: AnswerHead) -> None:
        """Take the head of the answer."""
        exchange = self._exchange
        self._head = head
        is_stream = exchange.envelope.stream if head.is_stream is None else head.is_stream
        if is_stream and head.status < 300 and not head.is_compressed:
            self._is_stream = True
        elif exchange.envelope.stream:
            exchange.parts.deadlines.watch(self, exchange.end_due)

    def received(self, payload: bytes, chunk: bytes) -> None:
        """Take a piece of the body."""
        if self._is_stream:
            assert self._head is not None
            self._end_wait()
            self._report(None)
            StreamRelay(self._exchange, self._connection, self._head).begin(payload, chunk)
            return
        body = self._body
        if body is None:
            body = self._body = Pieces()
        body.add(payload)
        if body.size > _WHOLE:
            assert self._head is not None
            self._end_wait()
            self._report(None)
            BodyRelay(self._exchange, self._connection, self._head).begin(body.whole(), b"")

    def ended(self) -> None:
        """Go on with the whole answer."""
        head, exchange = self._head, self._exchange
        body = b"" if self._body is None else self._body.whole()
        assert head is not None
        self._end_wait()
        if self._is_stream:
            message = "The deployment ended its answer before the first byte."
            self._fail(UpstreamFailed(message, code="upstream_cut"))
            return
        if head.status >= 400:
            self._fail(UpstreamRefused(ErrorAnswer(head, body)))
            return
        exchange.answer_whole(head, body)
        self._report(None)

    def failed(self, code: UpstreamFailureCode) -> None:
        """End the attempt: the connection has ended."""
        is_silent = code == "upstream_reset" and self._connection.is_unanswered
        self._fail(HungUp() if is_silent else upstream_failed(code))

    def broken(self, error: Exception) -> None:
        """End the exchange after an error of the gateway itself."""
        self._exchange.broken(error)

    def on_due(self) -> None:
        """End the attempt: the deployment is too slow."""
        is_first = self._exchange.envelope.stream and (self._head is None or self._is_stream)
        code = "first_token_timeout" if is_first else "total_timeout"
        self._connection.abort()
        self._fail(UpstreamTimeout("The deployment did not answer in time.", code=code))

    # -- the other side -----------------------------------------------------------------------------------------------

    def leave(self) -> bool:
        """Close the connection, and wait for nothing more. Return True."""
        if self._end_wait():
            self._connection.abort()
        return True

    def client_ready(self) -> None:
        """Do nothing: nothing has been sent."""

    def stop(self) -> None:
        """Do nothing: the answer is whole, and its end is being sent."""

    # -- the end of the attempt ---------------------------------------------------------------------------------------

    def _end_wait(self) -> bool:
        """Wait for the deployment no more. Return whether it was waited for until now."""
        exchange = self._exchange
        exchange.parts.deadlines.forget(self)
        if exchange.relay is not self:
            return False
        exchange.relay = None
        exchange.upstream_s += time.perf_counter() - self._started_at
        return True

    def _fail(self, failure: "HungUp | AttemptFailed") -> None:
        self._end_wait()
        if self._begun is None:
            self._exchange.parts.go_on_after(self._exchange, failure)
        else:
            self._report(failure)

    def _report(self, failure: "HungUp | AttemptFailed | None") -> None:
        if self._begun is not None and not self._begun.done():
            self._begun.set_result(failure)


def _ask_for_usage(exchange: ActiveExchange, body: bytes) -> tuple[bytes, bool]:
    """Add to the body of a request for a stream that it reports usage, if the deployment knows it.

    A client that says whether it wants usage is obeyed, unless its key has a limit that usage counts against. The
    second value says whether it was added.
    """
    grant = exchange.grant
    overrides = grant is not None and grant.key.counts_tokens
    if not overrides and not exchange.envelope.omits_usage:
        return body, False
    assert exchange.chosen is not None
    deployment, refusing = exchange.chosen.deployment, exchange.parts.gateway.refusing_stream_options
    knows = deployment.stream_usage and deployment.name not in refusing
    asking = inject_usage(body, overrides=overrides) if knows else body
    return asking, asking is not body
