"""From a request to an answer that has begun: which deployment is asked, how often, and who is asked instead.

A retry or a fallback comes only while the client has not got a byte, and only inside the request's deadline.
"""

import asyncio
import math
import time
from dataclasses import dataclass

from auditor.config import Deployment, Route, WeightedDeployment
from auditor.domain.exchange import Origin, Outcome
from gateway.app import Gateway
from gateway.board import Turn
from gateway.breaker import Verdict
from gateway.errors import Saturated, UpstreamFailed, UpstreamTimeout
from gateway.failures import (
    AttemptFailed,
    UpstreamRefused,
    asking_again_may_help,
    fallbacks,
    kind_of,
    patience,
    refuses_stream_options,
    wait_before,
)
from gateway.headers import upstream_headers
from gateway.recorder import Recorder
from gateway.relay import STOPPED, Begun, Waits, begin
from gateway.routing import choose
from gateway.server import Request
from gateway.tap import Subject, Tap
from gateway.upstreams import UpstreamRequest
from gateway.usage import inject_usage
from gateway.wire import replace_model

#: Seconds; while one request tries a deployment, nobody knows how long that will take.
LONGEST_REST = 10
#: Seconds by which the event loop's timer, which counts whole milliseconds, may ring too soon.
_TOO_SOON = 0.002
_NO_PLACE = 429


@dataclass(slots=True)
class Answering:
    """A deployment that has begun to answer, and the place that the request takes there."""

    begun: Begun
    waits: Waits
    turn: Turn
    usage_injected: bool

    def settle(self, tap: Tap, recorder: Recorder) -> None:
        """Give the place back, and say how the deployment has done, once the answer has been relayed."""
        if tap.outcome is Outcome.COMPLETE:
            self.turn.end(Verdict.OK)
        elif tap.outcome in {None, Outcome.CLIENT_GONE} or tap.error_type == STOPPED:
            self.turn.end(Verdict.NONE)
        else:
            self.turn.end(Verdict.FAILED)
            assert tap.deployment is not None
            recorder.count_failure(tap.deployment.name, tap.subject.directives.origin, tap.error_type or "")


class Attempts:
    """Asks for one request.

    Parameters
    ----------
    gateway
        The parts it works with.
    request
        The client's request; only its header is read.
    tap
        Follows the exchange; its subject is the request.
    """

    def __init__(self, gateway: Gateway, request: Request, tap: Tap) -> None:
        self._gateway = gateway
        # Taken once: a reload in the middle of a request is for the next one.
        self._config = gateway.config.gateway
        self._table = gateway.table
        self._request = request
        self._tap = tap
        self._subject: Subject = tap.subject
        self._blamed: set[str] = set()
        # Who sends audit traffic tries again by itself, and must see a deployment as it is.
        self._is_client = self._subject.directives.origin is Origin.CLIENT
        self._most = 1 + self._config.retries if self._is_client else 1
        self._now = asyncio.get_running_loop().time
        self._began = self._now()
        self._end = self._began + self._config.timeouts.total  # until a deployment's own holds
        self._last_call = self._began + patience(request.headers)

    async def run(self) -> Answering:
        """Ask until a deployment has begun to answer.

        Raises
        ------
        UpstreamRefused, UpstreamFailed, UpstreamTimeout
            What the route's own deployment said last; the fallbacks, if there are any, could not help either.
        Saturated
            No deployment of the route may be asked now, or none had a place in time.
        """
        route = self._subject.route
        pin = self._subject.directives.pin
        if pin is not None:
            return await self._ask((WeightedDeployment(name=self._table.pinned(pin).name),))
        try:
            return await self._ask(route.deployments)
        except (UpstreamRefused, UpstreamFailed, UpstreamTimeout, Saturated) as failure:
            answering = await self._ask_fallbacks(route, failure) if self._is_client else None
            if answering is None:
                raise
            return answering

    async def _ask_fallbacks(self, route: Route, failure: AttemptFailed | Saturated) -> Answering | None:
        names = route.fallbacks if isinstance(failure, Saturated) else fallbacks(route, kind_of(failure))
        first_asked = self._tap.deployment
        for name in names:
            if self._now() >= min(self._end, self._last_call):
                break
            try:
                return await self._ask(self._table.routes[name].deployments)
            except (UpstreamRefused, UpstreamFailed, UpstreamTimeout, Saturated):
                continue
        self._tap.deployment = first_asked
        return None

    async def _ask(self, entries: tuple[WeightedDeployment, ...]) -> Answering:
        """Ask some deployments, each anew before one a second time."""
        tried: list[str] = []
        failure: AttemptFailed | None = None
        try:
            for retry in range(self._most):
                name = self._next(entries, tried)
                if name is None or (failure and name in tried and not await self._pause(retry, failure)):
                    break
                tried.append(name)
                try:
                    return await self._attempt(self._table.deployments[name])
                except (UpstreamRefused, UpstreamFailed, UpstreamTimeout) as error:
                    failure = error
                    if not self._again(error, entries, tried):
                        break
                except Saturated as saturated:
                    if saturated.http_status == _NO_PLACE:
                        raise
                    # Its breaker has opened since it was chosen: on to whoever else there is.
            raise failure or self._none_closed(entries)
        finally:
            del failure  # or it and this frame would hold one another, and all of the request

    def _next(self, entries: tuple[WeightedDeployment, ...], tried: list[str]) -> str | None:
        board = self._gateway.board
        if len(entries) == 1:
            only = entries[0]
            return only.name if only.weight > 0 and not board.open_for(only.name) else None
        usable = [entry for entry in entries if entry.weight > 0 and not board.open_for(entry.name)]
        fresh = [entry for entry in usable if entry.name not in tried] or usable
        free = [entry for entry in fresh if not self._is_full(entry.name)] or fresh
        return choose(free, board.pending) if free else None

    def _is_full(self, name: str) -> bool:
        concurrency = self._table.deployments[name].concurrency
        return concurrency is not None and self._gateway.board.pending(name) >= concurrency

    def _none_closed(self, entries: tuple[WeightedDeployment, ...]) -> Saturated:
        soonest = min(self._gateway.board.open_for(entry.name) for entry in entries if entry.weight > 0)
        return Saturated(
            "All deployments of this model have failed lately and are not asked for a moment.",
            code="deployments_unavailable",
            retry_after=min(max(1, math.ceil(soonest)), LONGEST_REST),
        )

    def _again(self, failure: AttemptFailed, entries: tuple[WeightedDeployment, ...], tried: list[str]) -> bool:
        if self._now() >= min(self._end, self._last_call):
            return False
        if isinstance(failure, UpstreamTimeout):  # it would only take as long again
            return any(entry.weight > 0 and entry.name not in tried for entry in entries)
        return not isinstance(failure, UpstreamRefused) or asking_again_may_help(failure.refusal.status)

    async def _pause(self, retry: int, failure: AttemptFailed) -> bool:
        """Wait before the same deployment is asked again; say whether there is time for that."""
        wait = wait_before(retry, failure)
        if self._now() + wait >= min(self._end, self._last_call):
            return False
        self._tap.upstream_s += wait
        await asyncio.sleep(wait + _TOO_SOON)  # a Retry-After is kept to the millisecond
        return True

    async def _attempt(self, deployment: Deployment) -> Answering:
        tap = self._tap
        tap.deployment = deployment
        timeouts = self._table.timeouts[deployment.name]
        self._end = self._began + timeouts.total
        waits = Waits.starting_now(self._gateway.deadlines, timeouts, stream=tap.subject.stream, end=self._end)
        turn = await self._turn(deployment, waits)
        ask, injected = self._ask_for(deployment)
        try:
            tap.attempts += 1
            begun = await begin(ask, self._gateway.upstream, tap, waits)
        except (UpstreamRefused, UpstreamFailed, UpstreamTimeout) as failure:
            self._blame(deployment, failure, turn)
            if not (injected and refuses_stream_options(failure)):
                raise
            # Asked in the client's stead, so it must not be the client who is refused.
            self._gateway.refusing_stream_options.add(deployment.name)
            return await self._attempt(deployment)
        except BaseException:  # the client has left
            turn.end(Verdict.NONE)
            raise
        return Answering(begun, waits, turn, injected)

    async def _turn(self, deployment: Deployment, waits: Waits) -> Turn:
        """Take a place at the deployment, waiting for one where all are taken."""
        board, concurrency = self._gateway.board, deployment.concurrency
        turn = board.begin(deployment.name, concurrency, counts=self._is_client)
        if turn is None and concurrency is not None:
            began = time.perf_counter()
            try:
                turn = await board.turn(deployment.name, concurrency, waits.first_byte, counts=self._is_client)
            except TimeoutError:
                raise Saturated(
                    f"The deployment is answering its {concurrency} requests, and had no place for this one in time.",
                    code="concurrency_exceeded",
                    status=_NO_PLACE,
                    retry_after=1,
                ) from None
            finally:
                self._tap.upstream_s += time.perf_counter() - began
        if turn is None:  # its breaker has opened since it was chosen
            raise self._none_closed((WeightedDeployment(name=deployment.name),))
        return turn

    def _ask_for(self, deployment: Deployment) -> tuple[UpstreamRequest, bool]:
        """Make the request as this deployment wants it; say whether usage was asked for in the client's stead."""
        subject = self._subject
        body = subject.body
        if deployment.model is not None and deployment.model != subject.model:
            body = replace_model(body, deployment.model)
        injects = (
            subject.injects_usage
            and deployment.stream_usage
            and deployment.name not in self._gateway.refusing_stream_options
        )
        if injects:
            asking = inject_usage(body)
            injects = asking is not body
            body = asking
        also = self._config.forward_headers
        ask = UpstreamRequest(
            url=deployment.url(subject.endpoint),
            headers=upstream_headers(self._request.headers, deployment, subject.request_id, also),
            body=body,
            connect_timeout=self._table.timeouts[deployment.name].connect,
            ca_file=deployment.ca_file,
        )
        return ask, injects

    def _blame(self, deployment: Deployment, failure: AttemptFailed, turn: Turn) -> None:
        """Give the place back, and say what the failure says of the deployment.

        One request blames a deployment once: it may be the request that breaks it.
        """
        verdict = _verdict_on(failure)
        turn.end(Verdict.NONE if verdict is Verdict.FAILED and deployment.name in self._blamed else verdict)
        self._blamed.add(deployment.name)
        if failure.code != "http_4xx":  # which is the request's own
            self._gateway.recorder.count_failure(deployment.name, self._subject.directives.origin, failure.code)


def _verdict_on(failure: AttemptFailed) -> Verdict:
    if not isinstance(failure, UpstreamRefused):
        return Verdict.FAILED
    status = failure.refusal.status
    if status == 429:  # it is well, and busy
        return Verdict.NONE
    return Verdict.FAILED if status >= 500 else Verdict.OK
