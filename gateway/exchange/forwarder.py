"""The way of every request for a model: from its head and body to the question to a deployment.

A request comes with a plan of its head, from the cache (`Forwarder.take`) or from the parser (`Forwarder.forward`). If
a connection and a slot are free, its deployment is asked at once, without a task. Otherwise
`gateway.exchange.obtaining` waits for what is missing.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec import structs
from typing_extensions import override

from auditor.domain.ids import new_id_text
from gateway.errors import INTERNAL_ERROR, BadRequest, GatewayError, UpstreamFailed
from gateway.exchange.app import Gateway, error_answer, log_failure
from gateway.exchange.attempt import Attempt
from gateway.exchange.batch import IterationBatch
from gateway.exchange.deadlines import Deadlines
from gateway.exchange.endpoints import Endpoint
from gateway.exchange.exchange import ActiveExchange, ExchangeParts
from gateway.exchange.head_plans import HeadPlan, HeadPlans, KnownHead
from gateway.exchange.obtaining import begin_obtaining, go_on_after
from gateway.headers import derived_request_id, request_id, trace_tags
from gateway.http import Request
from gateway.http.connection import ClientConnection
from gateway.http.head_cache import Offer, RequestCache
from gateway.limits.key_limits import BYTES_PER_TOKEN, TokenCount
from gateway.wire import read_envelope

#: Members are looked up in Python, and each request asks for these.
_TAKEN: Final = Offer.TAKEN
_DECLINED: Final = Offer.DECLINED


class Forwarder(RequestCache):
    """Forwards the requests of one worker. Created inside a running event loop.

    Parameters
    ----------
    gateway
        The parts of the worker.
    endpoints
        The endpoints whose heads are remembered, by the target of their requests.
    """

    def __init__(self, gateway: Gateway, endpoints: Mapping[str, Endpoint]) -> None:
        self._gateway = gateway
        self._plans = HeadPlans(gateway, endpoints)
        recorder = gateway.recorder
        self._pool, self._batch = gateway.pool, IterationBatch(recorder)
        self._parts = ExchangeParts(gateway, recorder, self._pool, self._batch, Deadlines(), go_on_after)
        self._now: Callable[[], float] = self._parts.deadlines.now
        self._counts = recorder.counters.values

    # -- the two sources of requests ----------------------------------------------------------------------------------

    @override
    def take(self, client: ClientConnection, data: bytes, arrived_ns: int) -> Offer | int:
        try:
            known = self._plans.find(data)
        except Exception as error:  # noqa: BLE001 -- the parser reads the request
            log_failure("POST", "", error)
            known = None
        if known is None or known.length > self._plans.most_body:
            return _DECLINED
        missing = known.body_at + known.length - len(data)
        if missing < 0:
            return _DECLINED
        if missing:
            return missing
        now_us = time.time_ns() // 1000
        if now_us >= known.plan.expires_us:
            return _DECLINED
        at_us = arrived_ns // 1000 or now_us
        try:
            is_begun = self._begin(client, known.plan, known.headers, data[known.body_at :], at_us)
        except Exception as error:  # noqa: BLE001 -- the client gets it
            self._refuse(client, known, error)
            return Offer.REFUSED
        return _TAKEN if is_begun else Offer.REFUSED

    @override
    def remember(self, data: bytes, request: Request) -> None:
        self._plans.remember(data, request)

    async def forward(self, endpoint: Endpoint, request: Request) -> None:
        """Forward a parsed request: the exchange of its client answers it.

        Raises
        ------
        GatewayError
            It is refused.
        """
        now_us = time.time_ns() // 1000
        plan = HeadPlan(self._gateway, endpoint, request)
        if request.headers.get("content-encoding", "identity") != "identity":
            raise BadRequest(
                "Compressed request bodies are not accepted.",
                code="unsupported_encoding",
                param="content-encoding",
                status=415,
            )
        limits, is_whole = self._gateway.config.gateway, request.is_whole
        body = await request.body(limits.body_limit, limits.body_timeout)
        if not is_whole:  # meanwhile the key may have ended, and the configuration have changed
            plan = HeadPlan(self._gateway, endpoint, request)
        assert isinstance(request.client, ClientConnection)
        self._begin(request.client, plan, request.headers, body, now_us)

    # -- one way ------------------------------------------------------------------------------------------------------

    def _begin(  # noqa: PLR0915 -- each call takes as long as five lines
        self, client: ClientConnection, plan: HeadPlan, headers: Mapping[str, str], body: bytes, at_us: int
    ) -> bool:
        """Begin the exchange of a whole request. Return False if it has ended with an error of the gateway itself.

        Raises
        ------
        GatewayError
            The request is refused.
        """
        gateway = self._gateway
        began = time.perf_counter()
        envelope = read_envelope(body)
        route = plan.route(gateway, envelope.model)
        exchange_id = new_id_text(at_us // 1000)
        directives, sent = plan.directives, body
        if "traceparent" in headers:
            directives = directives.with_tags(trace_tags(headers))
        if route.trial is not None:
            part = route.trial.take_part(plan.endpoint.path, body, directives.tags)
            directives = structs.replace(directives, tags={**directives.tags, **part.tags})
            sent = body if part.body is None else part.body
        sampling = route.sampling or plan.endpoint.capture(route.config.seed, route.route, directives, exchange_id)
        header_id = request_id(headers, exchange_id) if "x-request-id" in headers else derived_request_id(exchange_id)
        chosen = route.choose()
        exchange = ActiveExchange(
            self._parts, client, plan, route, headers, envelope, body, exchange_id, header_id, at_us, began,
            self._now(), directives, sampling, sent, chosen,
        )  # fmt: skip
        self._counts[route.in_flight] += 1
        key = plan.key
        if key is not None and route.is_client:
            try:
                tokens = TokenCount(len(body) // BYTES_PER_TOKEN, envelope.token_limit or 0)
                exchange.grant = gateway.admit(key, tokens)
            except Exception as error:
                exchange.refused(error)
                raise
        client.exchange = exchange
        connection = None
        try:
            connection = self._pool.take(chosen.connection_key())
            ticket = None if connection is None else chosen.access.take()
            if connection is None or ticket is None:
                if connection is not None:
                    self._pool.put_back(connection)
                begin_obtaining(exchange)
            else:
                exchange.ticket = ticket
                due = exchange.since + (chosen.first_token if envelope.stream else chosen.total)
                self._batch.ask(Attempt(exchange, chosen, connection, due))
        except UpstreamFailed as failure:  # the request cannot be written, or the authority not be read
            exchange.guard(partial(go_on_after, exchange, failure))
            return client.exchange is exchange
        except Exception as error:  # noqa: BLE001 -- the exchange answers
            if connection is not None:  # nobody else may know of it
                connection.abort()
            exchange.broken(error)
            return False
        return True

    def _refuse(self, client: ClientConnection, known: KnownHead, error: Exception) -> None:
        """Answer with an error."""
        plan = known.plan
        if not isinstance(error, GatewayError):
            log_failure("POST", plan.path, error)
            error = INTERNAL_ERROR
        header_id = request_id(known.headers, new_id_text(time.time_ns() // 1_000_000))
        ends = client.is_last
        answer = error_answer(error, {"x-request-id": header_id})
        client.finish(answer.write("POST", plan.minor, ends=ends), ends=ends)
