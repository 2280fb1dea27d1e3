"""Attempts at a request: choose a deployment, retry, and fall back to other routes until an answer begins.

A retry or a fallback is made only before the client has received a byte, and only within the request's deadline.
"""

import asyncio
import math
import time

from auditor.config import Deployment, Route, WeightedDeployment
from auditor.domain.exchange import Origin
from gateway.errors import Saturated, UpstreamFailed, UpstreamTimeout
from gateway.exchange.app import Gateway
from gateway.exchange.attempt import Attempt, begin
from gateway.exchange.tap import RequestContext, Tap
from gateway.exchange.usage import inject_usage
from gateway.headers import upstream_headers
from gateway.http import Request
from gateway.routing.breaker import BreakerVerdict
from gateway.routing.failures import (
    AttemptFailed,
    UpstreamRefused,
    client_timeout,
    fallbacks,
    kind_of,
    refuses_stream_options,
    retry_may_help,
    wait_before,
)
from gateway.routing.slots import Slot
from gateway.routing.table import WeightedChoice
from gateway.upstreams import UpstreamRequest
from gateway.wire import replace_model

#: The longest Retry-After in seconds: how long the trial of a deployment takes is not known.
LONGEST_RETRY_AFTER_S = 10
#: Seconds by which the event loop's timer, which counts whole milliseconds, may fire too early.
_TIMER_ERROR = 0.002
_NO_SLOT = 429


class Forwarder:
    """Sends one request to deployments until one of them begins to answer.

    Parameters
    ----------
    gateway
        The parts of this worker.
    request
        The client's request; only its headers are read.
    tap
        Records the exchange; its ``context`` describes the request.
    """

    def __init__(self, gateway: Gateway, request: Request, tap: Tap) -> None:
        self._gateway = gateway
        # Read once: a reload during this request applies to the next one.
        self._config = gateway.config.gateway
        self._table = gateway.table
        self._request = request
        self._tap = tap
        self._context: RequestContext = tap.context
        self._failed_deployments: set[str] = set()
        # Senders of audit traffic retry themselves, and must see each failure of a deployment.
        self._is_client = self._context.directives.origin is Origin.CLIENT
        self._max_attempts = 1 + self._config.retries if self._is_client else 1
        self._now = asyncio.get_running_loop().time
        self._began = self._now()
        self._end = self._began + self._config.timeouts.total  # until a deployment's own holds
        self._client_deadline = self._began + client_timeout(request.headers)

    async def run(self) -> Attempt:
        """Ask deployments until one has begun to answer.

        Raises
        ------
        UpstreamRefused, UpstreamFailed, UpstreamTimeout
            The last failure of the route's own deployments; no fallback succeeded either.
        Saturated
            All circuit breakers of the route are open, or no slot became free in time.
        """
        route = self._context.route
        pin = self._context.directives.pin
        if pin is not None:
            return await self._try_deployments((WeightedDeployment(name=self._table.pinned(pin).name),))
        try:
            return await self._try_deployments(route.deployments)
        except (UpstreamRefused, UpstreamFailed, UpstreamTimeout, Saturated) as failure:
            attempt = await self._try_fallbacks(route, failure) if self._is_client else None
            if attempt is None:
                raise
            return attempt

    async def _try_fallbacks(self, route: Route, failure: AttemptFailed | Saturated) -> Attempt | None:
        names = route.fallbacks if isinstance(failure, Saturated) else fallbacks(route, kind_of(failure))
        first_asked = self._tap.deployment
        models = self._context.key_models
        for name in names:
            if models and name not in models and not route.fallbacks_for_all_keys:
                continue
            if self._now() >= min(self._end, self._client_deadline):
                break
            try:
                return await self._try_deployments(self._table.routes[name].deployments)
            except (UpstreamRefused, UpstreamFailed, UpstreamTimeout, Saturated):
                continue
        self._tap.deployment = first_asked
        return None

    async def _try_deployments(self, entries: tuple[WeightedDeployment, ...]) -> Attempt:
        """Ask deployments, first each of them once, until one begins to answer."""
        tried: list[str] = []
        failure: AttemptFailed | None = None
        try:
            for retry in range(self._max_attempts):
                name = self._choose_next(entries, tried)
                if name is None or (failure and name in tried and not await self._pause(retry, failure)):
                    break
                tried.append(name)
                try:
                    return await self._attempt(self._table.deployments[name])
                except (UpstreamRefused, UpstreamFailed, UpstreamTimeout) as error:
                    failure = error
                    if not self._may_retry(error, entries, tried):
                        break
                except Saturated as saturated:
                    if saturated.http_status == _NO_SLOT:
                        raise
                    # Its breaker has opened since it was chosen: try another deployment.
            raise failure or self._all_open(entries)
        finally:
            del failure  # otherwise the error and this frame form a cycle that keeps the request in memory

    def _choose_next(self, entries: tuple[WeightedDeployment, ...], tried: list[str]) -> str | None:
        slots = self._gateway.slots
        if len(entries) == 1:
            only = entries[0]
            return only.name if only.weight > 0 and not slots.seconds_until_open(only.name) else None
        usable = [entry for entry in entries if entry.weight > 0 and not slots.seconds_until_open(entry.name)]
        fresh = [entry for entry in usable if entry.name not in tried] or usable
        free = [entry for entry in fresh if not self._is_full(entry.name)] or fresh
        return WeightedChoice([(entry.name, entry.weight) for entry in free]).choose(slots.pending) if free else None

    def _is_full(self, name: str) -> bool:
        concurrency = self._table.deployments[name].concurrency
        return concurrency is not None and self._gateway.slots.pending(name) >= concurrency

    def _all_open(self, entries: tuple[WeightedDeployment, ...]) -> Saturated:
        soonest = min(self._gateway.slots.seconds_until_open(entry.name) for entry in entries if entry.weight > 0)
        return Saturated(
            "All deployments of this model have failed recently and are not asked for a moment.",
            code="deployments_unavailable",
            retry_after=min(max(1, math.ceil(soonest)), LONGEST_RETRY_AFTER_S),
        )

    def _may_retry(self, failure: AttemptFailed, entries: tuple[WeightedDeployment, ...], tried: list[str]) -> bool:
        if self._now() >= min(self._end, self._client_deadline):
            return False
        if isinstance(failure, UpstreamTimeout):  # the same deployment would probably take as long again
            return any(entry.weight > 0 and entry.name not in tried for entry in entries)
        return not isinstance(failure, UpstreamRefused) or retry_may_help(failure.refusal.status)

    async def _pause(self, retry: int, failure: AttemptFailed) -> bool:
        """Wait before the same deployment is asked again. Return False if the deadline leaves no time for it."""
        wait = wait_before(retry, failure)
        if self._now() + wait >= min(self._end, self._client_deadline):
            return False
        self._tap.upstream_s += wait
        await asyncio.sleep(wait + _TIMER_ERROR)  # a Retry-After is kept to the millisecond
        return True

    async def _attempt(self, deployment: Deployment) -> Attempt:
        tap = self._tap
        tap.deployment = deployment
        timeouts = self._table.timeouts[deployment.name]
        self._end = self._began + timeouts.total
        attempt = Attempt.start(self._gateway.deadlines, timeouts, stream=tap.context.stream, end_due=self._end)
        slot = attempt.slot = await self._acquire(deployment, attempt)
        try:
            ask, attempt.usage_injected = self._build_request(deployment)
            tap.attempts += 1
            await begin(ask, self._gateway.upstream, tap, attempt)
        except (UpstreamRefused, UpstreamFailed, UpstreamTimeout) as failure:
            self._record_failure(deployment, failure, slot)
            if not (attempt.usage_injected and refuses_stream_options(failure)):
                raise
            # The gateway asked for usage, not the client: the client must not get this refusal.
            self._gateway.refusing_stream_options.add(deployment.name)
            return await self._attempt(deployment)
        except BaseException:  # the client has left, or the request cannot be built
            slot.release(BreakerVerdict.NONE)
            raise
        return attempt

    async def _acquire(self, deployment: Deployment, attempt: Attempt) -> Slot:
        """Acquire a slot of the deployment, and wait for one if all are taken."""
        slots, concurrency = self._gateway.slots, deployment.concurrency
        slot = slots.try_acquire(deployment.name, concurrency, counts=self._is_client)
        if slot is None and concurrency is not None:
            began = time.perf_counter()
            try:
                slot = await slots.acquire(deployment.name, concurrency, attempt.first_byte_due, counts=self._is_client)
            except TimeoutError:
                raise Saturated(
                    f"The deployment is at its limit of {concurrency} concurrent requests, and none ended in time.",
                    code="concurrency_exceeded",
                    status=_NO_SLOT,
                    retry_after=1,
                ) from None
            finally:
                self._tap.upstream_s += time.perf_counter() - began
        if slot is None:  # its breaker has opened since it was chosen
            raise self._all_open((WeightedDeployment(name=deployment.name),))
        return slot

    def _build_request(self, deployment: Deployment) -> tuple[UpstreamRequest, bool]:
        """Build the request for this deployment. The second value says whether the gateway itself asks for usage."""
        context = self._context
        body = context.body if context.instructed is None else context.instructed
        if deployment.model is not None and deployment.model != context.model:
            body = replace_model(body, deployment.model)
        body, injects = ask_for_usage(self._gateway, deployment, body) if context.injects_usage else (body, False)
        also = self._config.forward_headers
        ask = UpstreamRequest(
            url=deployment.url(context.path),
            headers=upstream_headers(self._request.headers, deployment, context.request_id, also),
            body=body,
            connect_timeout=self._table.timeouts[deployment.name].connect,
            ca_file=deployment.ca_file,
        )
        return ask, injects

    def _record_failure(self, deployment: Deployment, failure: AttemptFailed, slot: Slot) -> None:
        """Release the slot with a verdict on the deployment, and count the failure.

        One request blames a deployment at most once, because the request itself may be the cause.
        """
        verdict = _verdict_on(failure)
        slot.release(
            BreakerVerdict.NONE
            if verdict is BreakerVerdict.FAILED and deployment.name in self._failed_deployments
            else verdict
        )
        self._failed_deployments.add(deployment.name)
        if failure.code != "http_4xx":  # a 4xx is the request's fault
            self._gateway.recorder.count_failure(deployment.name, self._context.directives.origin, failure.code)


def ask_for_usage(gateway: Gateway, deployment: Deployment, body: bytes) -> tuple[bytes, bool]:
    """Add to the body of a request for a stream that it reports usage, if the deployment knows it.

    The second value says whether it was added.
    """
    knows = deployment.stream_usage and deployment.name not in gateway.refusing_stream_options
    asking = inject_usage(body) if knows else body
    return asking, asking is not body


def _verdict_on(failure: AttemptFailed) -> BreakerVerdict:
    if not isinstance(failure, UpstreamRefused):
        return BreakerVerdict.FAILED
    status = failure.refusal.status
    if status == 429:  # it works, and is busy
        return BreakerVerdict.NONE
    return BreakerVerdict.FAILED if status >= 500 else BreakerVerdict.OK
