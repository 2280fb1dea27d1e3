"""The hand-over from the short way: the ordinary way goes on with an attempt that has been made already."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from typing_extensions import override

from auditor.config import Config, Deployment, WeightedDeployment
from gateway.app import Gateway, Router
from gateway.attempts import Forwarder
from gateway.endpoints import Answer, run
from gateway.relay import Attempt
from gateway.routing import RoutingTable
from gateway.server import Request, WholeAnswer
from gateway.server.short_connection import ShortConnection
from gateway.slots import Slot
from gateway.tap import Tap
from gateway.upstreams import Upstream, UpstreamAnswer, UpstreamRequest
from gateway.upstreams.answer import PooledAnswer
from gateway.upstreams.connection import HungUp, UpstreamConnection


@dataclass(slots=True)
class MadeAttempt:
    """A request that a deployment has got, and the answer as far as it has come."""

    deployment: Deployment
    config: Config  #: with the table, those that the deployment was chosen from
    table: RoutingTable
    slot: Slot
    connection: UpstreamConnection
    answer: PooledAnswer
    asked_at: float  #: `time.perf_counter` when the deployment was asked
    usage_injected: bool  #: whether the request asks for usage although the client's does not


class ResumedForwarder(Forwarder):
    """A forwarder whose first attempt has been made already."""

    def __init__(self, gateway: Gateway, request: Request, tap: Tap, made: MadeAttempt) -> None:
        upstream = _ResumedUpstream(gateway.upstream, made)
        super().__init__(replace(gateway, config=made.config, table=made.table, upstream=upstream), request, tap)
        self._made: MadeAttempt | None = made
        spent = self._spent = time.perf_counter() - made.asked_at
        tap.upstream_s += spent
        tap.attempts = 0  # it is counted when it goes on
        self._began -= spent
        self._end -= spent
        self._client_deadline -= spent

    @override
    def _choose_next(self, entries: tuple[WeightedDeployment, ...], tried: list[str]) -> str | None:
        return self._made.deployment.name if self._made is not None else super()._choose_next(entries, tried)

    @override
    async def _acquire(self, deployment: Deployment, attempt: Attempt) -> Slot:
        made = self._made
        if made is None:
            return await super()._acquire(deployment, attempt)
        attempt.first_byte_due -= self._spent
        return made.slot

    @override
    def _build_request(self, deployment: Deployment) -> tuple[UpstreamRequest, bool]:
        made, self._made = self._made, None
        ask, injects = super()._build_request(deployment)
        return ask, injects or (made is not None and made.usage_injected)


class _ResumedUpstream(Upstream):
    """Gives the answer that is under way to the first request, and sends the others."""

    def __init__(self, upstream: Upstream, made: MadeAttempt) -> None:
        self._upstream = upstream
        self._made: MadeAttempt | None = made

    @override
    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        made, self._made = self._made, None
        if made is None:
            return await self._upstream.send(request)
        try:
            return await made.connection.wait_for_head(made.answer)
        except HungUp:  # the kept connection has been closed at the moment of its reuse
            return await self._upstream.send(request)

    @override
    async def close(self) -> None:
        raise NotImplementedError  # the worker closes the other one


def answer_by_task(
    client: ShortConnection,
    router: Router,
    request: Request,
    tap: Tap,
    answer: Callable[[], Awaitable[Answer]],
    *,
    has_begun: bool = False,
) -> None:
    """Have a task answer a request; ``has_begun``: some of its answer has been sent."""

    async def handle(request: Request) -> Answer:
        return await run(request, tap, answer)

    client.answer_by(partial(router.serve_by, handle), request, has_begun=has_begun)


async def fail(error: Exception) -> WholeAnswer:
    """Raise an error where an answer is expected."""
    raise error
