"""The short way of usual requests: callbacks instead of a task, and plans instead of parsing.

It takes a request whose head and model have a plan, if a connection to the deployment is idle and its limits allow it.
Everything else is declined with nothing done, and the ordinary way does it. `gateway.exchange.unary_exchange` and
`gateway.exchange.stream_exchange` relay the answer.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final

from typing_extensions import override

from auditor.domain.ids import new_id_text
from gateway.errors import GatewayError
from gateway.exchange.app import Gateway, Router
from gateway.exchange.asked_exchange import AskedExchange
from gateway.exchange.due_exchanges import DueExchanges
from gateway.exchange.endpoints import Endpoint, admit
from gateway.exchange.forwarder import ask_for_usage
from gateway.exchange.head_plans import HeadPlans, KnownHead
from gateway.exchange.turn_batch import TurnBatch
from gateway.exchange.unary_exchange import UnaryExchange
from gateway.headers import own_request_id, request_id, trace_tags
from gateway.http import Request
from gateway.http.short_connection import Offer, ShortConnection, ShortWay
from gateway.recording.recorder import IN_FLIGHT
from gateway.routing.breaker import BreakerVerdict
from gateway.upstreams.answer_heads import AnswerHeads
from gateway.upstreams.lean import ConnectionPool
from gateway.wire import read_envelope

#: Members are looked up in Python, and each request asks for these.
_TAKEN: Final = Offer.TAKEN
_DECLINED: Final = Offer.DECLINED
_NOTHING_SAID: Final = BreakerVerdict.NONE


class UsualRequests(ShortWay):
    """Takes the usual requests of one worker. Created inside a running event loop.

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
        self._gateway = gateway
        self._router = router
        self._pool = pool
        self._plans = HeadPlans(gateway, endpoints)
        self._heads = AnswerHeads()
        self._due = DueExchanges()
        self._batch = TurnBatch(gateway.recorder)
        self._now: Callable[[], float] = asyncio.get_running_loop().time
        counters = gateway.recorder.counters
        self._counts, self._in_flight = counters.values, counters.place(IN_FLIGHT)

    @override
    def learn(self, data: bytes, request: Request) -> None:
        self._plans.learn(data, request)

    @override
    def take(self, client: ShortConnection, data: bytes, arrived_ns: int) -> Offer:
        found = self._plans.find(data)
        if found is None:
            return _DECLINED
        missing = found.body_at + found.length - len(data)
        if missing < 0 or found.length > self._plans.most_body:
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
        gateway, head, headers = self._gateway, known.plan, known.headers
        began = time.perf_counter()
        envelope = read_envelope(body)
        if now_us >= head.expires_us:
            return False
        plan = head.plan(gateway, envelope.model)
        chosen = plan.choose() if plan is not None else None
        if plan is None or chosen is None:
            return False
        connection = self._pool.take(chosen.connection_key())
        if connection is None:
            return False
        ticket = chosen.access.take()
        if ticket is None:
            self._pool.put_back(connection)
            return False
        key = head.key
        try:
            grant = None if key is None else admit(gateway, key, body, envelope.asked_tokens)
        except BaseException:  # a limit, or its file: the ordinary way tells the client
            chosen.access.release(ticket, _NOTHING_SAID)
            self._pool.put_back(connection)
            raise
        self._counts[self._in_flight] += 1
        exchange_id = new_id_text(now_us // 1000)
        directives, trace = head.directives, headers.get("traceparent", "")
        if trace:
            directives = directives.with_tags(trace_tags(headers))
        asked_id = request_id(headers, exchange_id) if "x-request-id" in headers else own_request_id(exchange_id)
        sent, injected = body, False
        if envelope.stream and head.endpoint.usage_on_request and envelope.omits_usage:
            sent, injected = ask_for_usage(gateway, chosen.deployment, body)
        now = self._now()
        asked = AskedExchange(
            gateway, self._router, self._due, gateway.config, gateway.table, client, connection, known, plan, chosen,
            ticket, grant, directives, envelope, body, exchange_id, asked_id, now_us, injected,
            began, time.perf_counter(), now,
        )  # fmt: skip
        request = chosen.request(asked_id, trace, sent)
        client.exchange = exchange = UnaryExchange(asked, request, self._heads, self._batch)
        connection.follow(exchange)
        self._batch.ask(exchange)
        self._due.watch(exchange, now + (chosen.first_token if envelope.stream else chosen.total))
        return True
