"""The short way of usual exchanges: callbacks instead of a task, and plans instead of parsing.

It takes a request whose head and model have a plan, if a connection to the deployment is idle and its limits allow it.
It ends with the whole body of an answer of status 200, or of a refusal that nothing could be done about; a stream goes
on in `gateway.stream_way`. Everything else goes the ordinary way: before the deployment was asked the request is
declined, and afterwards `UnaryExchange.hand_over` gives what has come to `gateway.hand_over`. The tap is the ordinary
one, so records and counters are made in one place.
"""

import asyncio
import math
import time
from collections.abc import Mapping
from functools import partial
from typing import Final

from typing_extensions import override

from auditor.config import Timeouts
from auditor.domain.exchange import Outcome
from gateway.answer_heads import AnswerHead, AnswerHeads, read_chunks
from gateway.app import Gateway, Router
from gateway.attempts import ask_for_usage
from gateway.breaker import BreakerVerdict
from gateway.chunks import begins
from gateway.due_exchanges import DueExchange, DueExchanges
from gateway.endpoints import DISCONNECTED, Endpoint, admit, forward_by
from gateway.errors import GatewayError
from gateway.hand_over import MadeAttempt, ResumedForwarder, answer_by_task, fail
from gateway.head_plans import HeadPlans, KnownHead
from gateway.recorder import LARGE_COPY
from gateway.relay import ended, settle
from gateway.server import Request
from gateway.server.answer import own_lines, status_line
from gateway.server.short_connection import Offer, ShortConnection, ShortExchange, ShortWay
from gateway.slots import Slot
from gateway.stream_way import AskedStream, StreamExchange
from gateway.tap import Tap
from gateway.upstreams.answer import PooledAnswer
from gateway.upstreams.connection import AnswerFollower, UpstreamConnection
from gateway.upstreams.lean import ConnectionPool
from gateway.wire import read_envelope

#: Members are looked up in Python, and each request asks for these.
_TAKEN: Final = Offer.TAKEN
_DECLINED: Final = Offer.DECLINED
_COMPLETE: Final = Outcome.COMPLETE
_NOTHING_SAID: Final = BreakerVerdict.NONE
_OK: Final = BreakerVerdict.OK
_HTTP_OK: Final = 200
_OK_LINE: Final = b"HTTP/1.1 200 OK"
_SHOULD_RETRY: Final = b"\r\nx-should-retry: "
_NO_RETRY: Final = b"\r\nx-should-retry: false"
_COUNTED: Final = ("biasmeter_short_way", "unary")


class UnaryWay(ShortWay):
    """Answers usual unary requests of one worker. Created inside a running event loop.

    Parameters
    ----------
    gateway
        The parts of the worker.
    router
        Serves what is handed over.
    pool
        The connections to deployments.
    endpoints
        The endpoints that are served, by the target of their requests.
    """

    def __init__(
        self, gateway: Gateway, router: Router, pool: ConnectionPool, endpoints: Mapping[str, Endpoint]
    ) -> None:
        self.gateway = gateway
        self.router = router
        self.heads = AnswerHeads()
        self._pool = pool
        self._plans = HeadPlans(gateway, endpoints)
        self.due = DueExchanges()

    @override
    def learn(self, data: bytes, request: Request) -> None:
        self._plans.learn(data, request)

    @override
    def take(self, client: ShortConnection, data: bytes, arrived_ns: int) -> Offer:
        found = self._plans.find(data)
        if found is None:
            return _DECLINED
        gateway = self.gateway
        missing = found.body_at + found.length - len(data)
        if missing < 0 or found.length > LARGE_COPY or found.length > gateway.config.gateway.body_limit:
            return _DECLINED
        if missing:
            return Offer.INCOMPLETE
        now_us = (arrived_ns or time.time_ns()) // 1000
        try:
            is_taken = self._begin(client, found, data[found.body_at :], now_us)
        except (GatewayError, OSError):  # the ordinary way tells the client
            return _DECLINED
        return _TAKEN if is_taken else _DECLINED

    def _begin(self, client: ShortConnection, known: KnownHead, body: bytes, now_us: int) -> bool:
        """Ask a deployment. Return False, or raise an error, with nothing done if the ordinary way must do it."""
        gateway, head, headers = self.gateway, known.plan, known.headers
        envelope = read_envelope(body)
        if now_us >= head.expires_us:
            return False
        plan = head.plan(gateway, envelope.model)
        chosen = plan.choose(gateway.slots) if plan is not None else None
        if plan is None or chosen is None:
            return False
        deployment, key = chosen.deployment, head.key
        connection = self._pool.take(chosen.connection_key())
        if connection is None:
            return False
        slot = gateway.slots.try_acquire(deployment.name, deployment.concurrency)
        if slot is None:
            self._pool.put_back(connection)
            return False
        context = head.endpoint.context(
            gateway.config, plan.route, key, head.directives, envelope, headers, at_us=now_us, body=body
        )
        try:
            grant = None if key is None else admit(gateway, key, body, context.asked_tokens)
        except BaseException:  # a limit, or its file: the ordinary way tells the client
            slot.release(_NOTHING_SAID)
            self._pool.put_back(connection)
            raise
        tap = Tap(context, gateway.recorder, gateway.config.gateway.capture_limit)
        tap.grant, tap.deployment, tap.attempts = grant, deployment, 1
        exchange = UnaryExchange(self, client, connection, known, tap, slot, chosen.timeouts)
        sent, exchange.usage_injected = ask_for_usage(gateway, context, deployment, body)
        client.exchange = exchange
        connection.send_for(exchange, chosen.request(context.request_id, headers.get("traceparent", ""), sent))
        self.due.watch(exchange, exchange.first_byte_due)
        return True


class UnaryExchange(ShortExchange, AnswerFollower, DueExchange):
    """One exchange on the short way, from the moment at which its deployment has been asked."""

    def __init__(
        self,
        way: UnaryWay,
        client: ShortConnection,
        connection: UpstreamConnection,
        known: KnownHead,
        tap: Tap,
        slot: Slot,
        timeouts: Timeouts,
    ) -> None:
        self._way = way
        self._client = client
        self._connection = connection
        self._known = known
        self._tap = tap
        self._slot = slot
        self._config, self._table = way.gateway.config, way.gateway.table
        self._data = b""  # of the answer
        self._head: AnswerHead | None = None
        self._asked_at = time.perf_counter()
        self._timeouts = timeouts
        self._asked_time = asyncio.get_running_loop().time()
        self.usage_injected = False  # whether usage is asked for although the client does not ask for it

    @property
    def first_byte_due(self) -> float:
        """When the first byte of a stream, or the whole answer, must have come, in the event loop's time."""
        first_byte = self._timeouts.first_token if self._tap.context.stream else math.inf
        return self._asked_time + min(first_byte, self._timeouts.total)

    # -- callbacks ---------------------------------------------------------------------------------------------------

    @override
    def received(self, data: bytes) -> None:
        self._data = self._data + data if self._data else data
        head = self._head
        if head is None:
            head = self._head = self._way.heads.read(self._data)
        if (
            head is None
            or len(self._data) + len(self._tap.context.body) > LARGE_COPY
            or (head.status != _HTTP_OK and self._may_ask_again())
        ):
            self.hand_over()
        elif head.is_stream:
            self._begin_stream(head)
        else:
            try:
                body = _read_body(self._data, head)
            except ValueError:
                self.hand_over()
            else:
                if body is not None:
                    self._finish(head, body)

    @override
    def upstream_lost(self) -> None:
        self.hand_over()

    @override
    def client_lost(self) -> None:
        self._way.due.forget(self)
        self._connection.abort()
        self._tap.upstream_s += time.perf_counter() - self._asked_at
        self._tap.end(*DISCONNECTED)
        self._slot.release(_NOTHING_SAID)

    @override
    def hand_over(self) -> None:
        self._way.due.forget(self)
        gateway, tap = self._way.gateway, self._tap
        request = self._known.request(self._client, tap.context.body)
        assert tap.deployment is not None
        answer = self._connection.parse(self._data)
        made = MadeAttempt(
            tap.deployment, self._config, self._table, self._slot, self._connection, answer, self._asked_at,
            self.usage_injected,
        )  # fmt: skip
        forwarder = ResumedForwarder(gateway, request, tap, made)
        answer_by_task(
            self._client, self._way.router, request, tap, partial(forward_by, forwarder, gateway, request, tap)
        )
        assert self._client.task is not None
        self._client.task.add_done_callback(lambda _: self._close(answer))

    @override
    def on_due(self) -> None:
        self.hand_over()

    # -- the end -----------------------------------------------------------------------------------------------------

    def _begin_stream(self, head: AnswerHead) -> None:
        """Have a stream relayed as soon as its first bytes have come."""
        if not self._tap.context.stream or head.length >= 0:
            self.hand_over()
            return
        try:
            has_begun = begins(self._data, head.body_at)
        except ValueError:
            self.hand_over()
            return
        if has_begun:
            way = self._way
            way.due.forget(self)
            asked = AskedStream(
                way.gateway, way.router, way.due, self._client, self._connection, self._known, self._tap, self._slot,
                self._asked_at, self._timeouts.idle, self._asked_time + self._timeouts.total, self.usage_injected,
            )  # fmt: skip
            StreamExchange(asked, head.seconds).begin(head, self._data)

    def _finish(self, head: AnswerHead, body: bytes) -> None:
        """Record the exchange, and send the whole answer."""
        way, tap = self._way, self._tap
        tap.upstream_s += time.perf_counter() - self._asked_at
        way.due.forget(self)
        self._connection.rest(head.seconds)
        tap.status = head.status
        try:
            tap.body(body)
            if head.status == _HTTP_OK:
                tap.end(_COMPLETE, _HTTP_OK)
                settle(self._slot, tap, way.gateway.recorder)
            else:  # the request's fault, not the deployment's
                self._slot.release(_OK)
                tap.end(*ended(head.status))
        except Exception as error:  # noqa: BLE001 -- the ordinary way logs it and answers
            self._slot.release(_NOTHING_SAID)
            request = self._known.request(self._client, tap.context.body)
            answer_by_task(self._client, way.router, request, tap, partial(fail, error))
            return
        way.gateway.recorder.counters.add(_COUNTED)
        first, last = _OK_LINE, b""
        if head.status != _HTTP_OK:
            first, last = status_line(head.status).encode(), b"" if _SHOULD_RETRY in head.fields else _NO_RETRY
        self._client.answer(
            b"%b%b%b%b%b\r\ncontent-length: %d\r\n\r\n%b"
            % (first, head.fields, tap.own_lines(), last, own_lines(), len(body), body)
        )

    def _may_ask_again(self) -> bool:
        """Return whether a deployment may be asked again after a refusal, also without what the gateway has added."""
        context = self._tap.context
        return context.stream or bool(context.route.context_window_fallbacks or context.route.content_filter_fallbacks)

    def _close(self, answer: PooledAnswer) -> None:
        """Release everything if the task was cancelled before its first step; otherwise this has been done."""
        answer.close()
        self._tap.end(*DISCONNECTED)
        self._slot.release(_NOTHING_SAID)


def _read_body(data: bytes, head: AnswerHead) -> bytes | None:
    """Return the body of an answer; None if it is incomplete.

    Raises
    ------
    ValueError
        It is not as its head says, or not usual.
    """
    if head.length < 0:
        return read_chunks(data, head.body_at)
    missing = head.body_at + head.length - len(data)
    if missing < 0:
        raise ValueError("there is more than the length says")
    return None if missing else data[head.body_at :]
