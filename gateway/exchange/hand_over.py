"""The hand-over from the short way: the ordinary way goes on with an attempt that has been made already."""

import time
from dataclasses import replace

from typing_extensions import override

from auditor.config import Deployment, WeightedDeployment
from gateway.exchange.asked_exchange import AskedExchange
from gateway.exchange.attempt import Attempt
from gateway.exchange.forwarder import Forwarder
from gateway.http import Request
from gateway.routing.slots import Slot
from gateway.upstreams import Upstream, UpstreamAnswer, UpstreamRequest
from gateway.upstreams.answer import PooledAnswer
from gateway.upstreams.connection import HungUp


class ResumedForwarder(Forwarder):
    """A forwarder whose first attempt has been made already."""

    def __init__(self, asked: AskedExchange, request: Request, answer: PooledAnswer) -> None:
        upstream = _ResumedUpstream(asked, answer)
        gateway = replace(asked.gateway, config=asked.config, table=asked.table, upstream=upstream)
        super().__init__(gateway, request, asked.tap)
        self._made: AskedExchange | None = asked
        spent = self._spent = time.perf_counter() - asked.asked_at
        asked.tap.upstream_s += spent
        asked.tap.attempts = 0  # it is counted when it goes on
        self._began -= spent
        self._end -= spent
        self._client_deadline -= spent

    @override
    def _choose_next(self, entries: tuple[WeightedDeployment, ...], tried: list[str]) -> str | None:
        if self._made is None:
            return super()._choose_next(entries, tried)
        deployment = self._made.tap.deployment
        return None if deployment is None else deployment.name

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

    def __init__(self, asked: AskedExchange, answer: PooledAnswer) -> None:
        self._upstream = asked.gateway.upstream
        self._connection = asked.connection
        self._answer: PooledAnswer | None = answer

    @override
    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        answer, self._answer = self._answer, None
        if answer is None:
            return await self._upstream.send(request)
        try:
            return await self._connection.wait_for_head(answer)
        except HungUp:  # the kept connection has been closed at the moment of its reuse
            return await self._upstream.send(request)

    @override
    async def close(self) -> None:
        raise NotImplementedError  # the worker closes the other one
