"""Obtaining an answer where something is waited for: a slot, a connection, a pause before the next attempt.

Deployments are asked, again and others, until one begins to answer: retries, and fallbacks to other routes. A retry or
a fallback is made only before the client has received a byte, and only within the request's deadline. The task ends
when an answer has begun, which its relay then sends to the client.
"""

import asyncio
import math
import time
from typing import Final

from auditor.config import Route, WeightedDeployment
from gateway.errors import Saturated, UpstreamFailed, UpstreamTimeout
from gateway.exchange.attempt import Attempt
from gateway.exchange.exchange import ActiveExchange
from gateway.exchange.route_plans import DeploymentPlan
from gateway.routing.breaker import BreakerVerdict, Ticket
from gateway.routing.failures import (
    AttemptFailed,
    HungUp,
    UpstreamRefused,
    client_timeout,
    fallbacks,
    kind_of,
    refuses_stream_options,
    retry_may_help,
    wait_before,
)
from gateway.routing.table import WeightedChoice
from gateway.upstreams import upstream_failed
from gateway.upstreams.connection import UpstreamConnection

#: The longest Retry-After in seconds: how long the trial of a deployment takes is not known.
LONGEST_RETRY_AFTER_S: Final = 10
#: Seconds by which the event loop's timer, which counts whole milliseconds, may fire too early.
_TIMER_ERROR: Final = 0.002
_NO_SLOT: Final = 429


def begin_obtaining(exchange: ActiveExchange) -> None:
    """Obtain an answer by a task, which asks the chosen deployment first, if it can be asked."""
    first, exchange.chosen, exchange.attempts = exchange.chosen, None, 0
    exchange.task = asyncio.get_running_loop().create_task(_run(Obtaining(exchange, first, None)))


def go_on_after(exchange: ActiveExchange, failure: "HungUp | AttemptFailed") -> None:
    """Go on with an exchange whose first attempt has failed without a task: by one, if there is anything to try."""
    if _is_final(exchange, failure):
        assert isinstance(failure, UpstreamRefused)
        exchange.release(_verdict_on(failure))
        exchange.answer_whole(failure.refusal.head, failure.refusal.body)
        return
    assert exchange.chosen is not None
    exchange.task = asyncio.get_running_loop().create_task(_run(Obtaining(exchange, exchange.chosen, failure)))


def _is_final(exchange: ActiveExchange, failure: "HungUp | AttemptFailed") -> bool:
    """Return whether nothing can follow from a failure but its answer. Most are the fault of their request."""
    if not isinstance(failure, UpstreamRefused) or failure.code != "http_4xx" or exchange.usage_injected:
        return False
    route = exchange.route.route
    return not retry_may_help(failure.refusal.head.status) and not (
        route.context_window_fallbacks or route.content_filter_fallbacks
    )


async def _run(obtaining: "Obtaining") -> None:
    exchange = obtaining.exchange
    try:
        await obtaining.run()
    except UpstreamRefused as refused:
        exchange.answer_whole(refused.refusal.head, refused.refusal.body)
    except (UpstreamFailed, UpstreamTimeout, Saturated) as error:
        exchange.fail(error)
    except Exception as error:  # noqa: BLE001 -- the exchange ends with it
        exchange.broken(error)
    finally:
        exchange.task = None


class Obtaining:
    """Asks deployments for one exchange until one of them begins to answer.

    Parameters
    ----------
    exchange
        The exchange.
    first
        The deployment that is asked first.
    failure
        Failure of the attempt at that deployment, if it has been made; its slot is still held.
    """

    def __init__(
        self, exchange: ActiveExchange, first: DeploymentPlan | None, failure: "HungUp | AttemptFailed | None"
    ) -> None:
        self.exchange = exchange
        parts = exchange.parts
        self._slots, self._pool, self._recorder = parts.gateway.slots, parts.pool, parts.recorder
        self._table = exchange.route.table
        self._first = first
        self._failure = failure
        self._failed_deployments: set[str] = set()
        self._is_client = exchange.route.is_client
        self._max_attempts = 1 + exchange.route.config.gateway.retries if self._is_client else 1
        self._now = parts.deadlines.now
        #: Until when the answer must be complete, and must have begun, in the event loop's time.
        self._end = self._first_due = exchange.since + exchange.route.config.gateway.timeouts.total
        if exchange.chosen is not None:  # it has been asked
            is_stream = exchange.envelope.stream
            self._end = exchange.end_due
            self._first_due = exchange.since + exchange.chosen.first_token if is_stream else self._end
        self._client_deadline = exchange.since + client_timeout(exchange.headers)

    async def run(self) -> None:
        """Ask deployments until one has begun to answer.

        Raises
        ------
        UpstreamRefused, UpstreamFailed, UpstreamTimeout
            The last failure of the route's own deployments; no fallback succeeded either.
        Saturated
            All circuit breakers of the route are open, or no slot became free in time.
        """
        plan = self.exchange.route
        if plan.pinned is not None:
            await self._try_deployments((WeightedDeployment(name=plan.pinned.deployment.name),))
            return
        try:
            await self._try_deployments(plan.route.deployments)
        except (UpstreamRefused, UpstreamFailed, UpstreamTimeout, Saturated) as failure:
            if not self._is_client or not await self._try_fallbacks(plan.route, failure):
                raise

    async def _try_fallbacks(self, route: Route, failure: AttemptFailed | Saturated) -> bool:
        names = route.fallbacks if isinstance(failure, Saturated) else fallbacks(route, kind_of(failure))
        exchange = self.exchange
        first_chosen = exchange.chosen
        models = () if exchange.head.key is None else exchange.head.key.models
        for name in names:
            if models and name not in models and not route.fallbacks_for_all_keys:
                continue
            if self._now() >= min(self._end, self._client_deadline):
                break
            try:
                await self._try_deployments(self._table.routes[name].deployments)
            except (UpstreamRefused, UpstreamFailed, UpstreamTimeout, Saturated):
                continue
            return True
        exchange.chosen = first_chosen
        return False

    async def _try_deployments(self, entries: tuple[WeightedDeployment, ...]) -> None:
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
                    failure = await self._attempt(self.exchange.route.deployment(name))
                except Saturated as saturated:
                    if saturated.http_status == _NO_SLOT:
                        raise
                    continue  # its breaker has opened since it was chosen: try another deployment
                if failure is None:
                    return
                if not self._may_retry(failure, entries, tried):
                    break
            raise failure or self._all_open(entries)
        finally:
            del failure  # otherwise the error and this frame form a cycle that keeps the request in memory

    def _choose_next(self, entries: tuple[WeightedDeployment, ...], tried: list[str]) -> str | None:
        slots, first, caller = self._slots, self._first, self.exchange.route.caller
        self._first = None
        if self._failure is not None and first is not None:
            return first.deployment.name  # it has been asked already
        if len(entries) == 1:
            only = entries[0]
            return only.name if only.weight > 0 and not slots.seconds_until_open(only.name, caller) else None
        usable = [entry for entry in entries if entry.weight > 0 and not slots.seconds_until_open(entry.name, caller)]
        fresh = [entry for entry in usable if entry.name not in tried] or usable
        free = [entry for entry in fresh if not self._is_full(entry.name)] or fresh
        if first is not None and any(entry.name == first.deployment.name for entry in free):
            return first.deployment.name
        return WeightedChoice([(entry.name, entry.weight) for entry in free]).choose(slots.pending) if free else None

    def _is_full(self, name: str) -> bool:
        concurrency = self._table.deployments[name].concurrency
        return concurrency is not None and self._slots.pending(name) >= concurrency

    def _all_open(self, entries: tuple[WeightedDeployment, ...]) -> Saturated:
        caller = self.exchange.route.caller
        soonest = min(self._slots.seconds_until_open(entry.name, caller) for entry in entries if entry.weight > 0)
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
        return not isinstance(failure, UpstreamRefused) or retry_may_help(failure.refusal.head.status)

    async def _pause(self, retry: int, failure: AttemptFailed) -> bool:
        """Wait before the same deployment is asked again. Return False if the deadline leaves no time for it."""
        wait = wait_before(retry, failure)
        if self._now() + wait >= min(self._end, self._client_deadline):
            return False
        self.exchange.upstream_s += wait
        await asyncio.sleep(wait + _TIMER_ERROR)  # a Retry-After is kept to the millisecond
        return True

    # -- one attempt --------------------------------------------------------------------------------------------------

    async def _attempt(self, plan: DeploymentPlan) -> AttemptFailed | None:
        """Ask a deployment, and wait until its answer begins. Return how that failed, if it did.

        Raises
        ------
        Saturated
            Its breaker has opened, or no slot became free in time.
        """
        exchange = self.exchange
        failure, self._failure = self._failure, None
        try:
            try:
                if failure is None:
                    exchange.chosen = plan
                    self._end = self._first_due = exchange.end_due
                    if exchange.envelope.stream:
                        self._first_due = min(self._now() + plan.first_token, self._end)
                    exchange.ticket = await self._acquire(plan)
                    exchange.attempts += 1
                    failure = await self._ask(plan)
                elif isinstance(failure, HungUp):
                    failure = await self._ask_on_new(plan)
            except (UpstreamFailed, UpstreamTimeout) as error:
                failure = error
            except BaseException:  # the client has left
                exchange.release(BreakerVerdict.NONE)
                raise
            if failure is None:
                return None
            assert not isinstance(failure, HungUp)
            self._record_failure(plan.deployment.name, failure)
            if not (exchange.usage_injected and refuses_stream_options(failure)):
                return failure
        finally:
            del failure  # as above
        # The gateway asked for usage, not the client: the client must not get this refusal.
        exchange.parts.gateway.refusing_stream_options.add(plan.deployment.name)
        return await self._attempt(plan)

    async def _ask(self, plan: DeploymentPlan) -> AttemptFailed | None:
        """Ask a deployment on a kept connection, or on a new one."""
        kept = self._pool.take(plan.connection_key())
        if kept is not None:
            failure = await self._wait_for_answer(plan, kept)
            if not isinstance(failure, HungUp):
                return failure
        # A server may close an idle connection at the moment of its reuse: it is the same attempt.
        return await self._ask_on_new(plan)

    async def _ask_on_new(self, plan: DeploymentPlan) -> AttemptFailed | None:
        failure = await self._wait_for_answer(plan, await self._connect(plan))
        return upstream_failed("upstream_reset") if isinstance(failure, HungUp) else failure

    async def _wait_for_answer(
        self, plan: DeploymentPlan, connection: UpstreamConnection
    ) -> "HungUp | AttemptFailed | None":
        begun: asyncio.Future[HungUp | AttemptFailed | None] = asyncio.get_running_loop().create_future()
        Attempt(self.exchange, plan, connection, self._first_due, begun).ask()
        return await begun

    async def _connect(self, plan: DeploymentPlan) -> UpstreamConnection:
        exchange, began = self.exchange, time.perf_counter()
        try:
            async with asyncio.timeout_at(self._first_due):
                return await self._pool.connect(plan.connection_key(), plan.timeouts.connect)
        except TimeoutError:
            code = "first_token_timeout" if exchange.envelope.stream else "total_timeout"
            raise UpstreamTimeout("The deployment did not answer in time.", code=code) from None
        finally:
            exchange.upstream_s += time.perf_counter() - began

    async def _acquire(self, plan: DeploymentPlan) -> Ticket:
        """Take a slot of the deployment, and wait for one if all are taken."""
        access, exchange, concurrency = plan.access, self.exchange, plan.deployment.concurrency
        ticket = access.take()
        if ticket is None and concurrency is not None:
            began = time.perf_counter()
            try:
                ticket = await access.wait(self._first_due)
            except TimeoutError:
                raise Saturated(
                    f"The deployment is at its limit of {concurrency} concurrent requests, and none ended in time.",
                    code="concurrency_exceeded",
                    status=_NO_SLOT,
                    retry_after=1,
                ) from None
            finally:
                exchange.upstream_s += time.perf_counter() - began
        if ticket is None:  # its breaker has opened since it was chosen
            raise self._all_open((WeightedDeployment(name=plan.deployment.name),))
        return ticket

    def _record_failure(self, name: str, failure: AttemptFailed) -> None:
        """Release the slot with a verdict on the deployment, and count the failure.

        One request blames a deployment at most once, because the request itself may be the cause.
        """
        verdict = _verdict_on(failure)
        is_known = verdict is not BreakerVerdict.OK and name in self._failed_deployments
        self.exchange.release(BreakerVerdict.NONE if is_known else verdict)
        self._failed_deployments.add(name)
        if failure.code != "http_4xx":  # a 4xx is the request's fault
            self._recorder.count_failure(name, self.exchange.directives.origin, failure.code)


def _verdict_on(failure: AttemptFailed) -> BreakerVerdict:
    if not isinstance(failure, UpstreamRefused):
        return BreakerVerdict.FAILED
    status = failure.refusal.head.status
    if status == 429:  # it works, and is busy
        return BreakerVerdict.NONE
    return BreakerVerdict.ERROR if status >= 500 else BreakerVerdict.OK
