"""OpenAI's POST endpoints: read the head of a request, have it answered, relay. One code path for all."""

import asyncio
import time
from dataclasses import dataclass
from uuid import UUID

from auditor.config import Route
from auditor.domain.exchange import Capture, Origin, Outcome
from auditor.domain.ids import new_id
from auditor.domain.keys import Key
from auditor.domain.sampling import sampled
from gateway.app import Gateway, error_answer
from gateway.attempts import Attempts
from gateway.auth import Directives
from gateway.endings import DONE, LAST_RESPONSE, Ending
from gateway.errors import BadRequest, Forbidden, Limited, Saturated, UpstreamFailed, UpstreamTimeout
from gateway.failures import UpstreamRefused
from gateway.headers import request_id
from gateway.limits import TokenCount
from gateway.relay import STOPPED, STOPPING, relay, relay_refusal, survives_cancellation
from gateway.server import OpenAnswer, Request, WholeAnswer
from gateway.tap import Subject, Tap
from gateway.wire import read_envelope

_GONE = (Outcome.CLIENT_GONE, 499, "client_gone")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of OpenAI's POST endpoints.

    ``path`` continues both our ``/v1/`` and a deployment's ``base_url``; ``usage_on_request`` tells that its streams
    report usage only to those who ask for it.
    """

    path: str
    ending: Ending = DONE
    usage_on_request: bool = False

    async def forward(self, gateway: Gateway, request: Request) -> WholeAnswer | OpenAnswer:
        """Forward one request."""
        now_us = time.time_ns() // 1000
        key = gateway.doorkeeper.identify(request.headers)
        directives = gateway.doorkeeper.directives(request.headers, key)
        _refuse_compressed(request)
        body = await request.body(gateway.config.gateway.body_limit)
        subject = self._subject(gateway, request, now_us, key, directives, body)
        tap = Tap(subject, gateway.recorder, gateway.config.gateway.capture_limit)
        try:
            if key is not None and directives.origin is Origin.CLIENT:
                _admit(gateway, key, tap)
            return await _forward(gateway, request, tap)
        except ConnectionResetError:  # from a write to the client
            tap.end(*_GONE)
            raise
        except asyncio.CancelledError:
            return _stop(request, tap)
        except Exception:
            tap.end(Outcome.FAILED, 500, "internal_error")
            raise

    def _subject(
        self,
        gateway: Gateway,
        request: Request,
        now_us: int,
        key: Key | None,
        directives: Directives,
        body: bytes,
    ) -> Subject:
        envelope = read_envelope(body)
        if key is not None and not key.may_ask_for(envelope.model):
            raise Forbidden("This key may not use this model.", code="model_not_allowed", param="model")
        route = gateway.table.route(envelope.model)
        if directives.pin is not None:
            gateway.table.pinned(directives.pin)
        exchange_id = new_id(now_us // 1000)
        capture, inclusion, passed_over = _capture(gateway.config.seed, route, directives, exchange_id)
        return Subject(
            id=exchange_id,
            at_us=now_us,
            endpoint=self.path,
            ending=self.ending,
            model=envelope.model,
            stream=bool(envelope.stream),
            route=route,
            directives=directives,
            key_id=key.id if key else None,
            request_id=request_id(request.headers, exchange_id),
            config_hash=gateway.config.config_hash,
            body=body,
            capture=capture,
            inclusion=inclusion,
            passed_over=passed_over,
            asked_tokens=envelope.asked_tokens,
            injects_usage=self.usage_on_request and envelope.omits_usage,
        )


ENDPOINTS = (
    Endpoint("chat/completions", usage_on_request=True),
    Endpoint("completions", usage_on_request=True),
    Endpoint("embeddings"),
    Endpoint("responses", LAST_RESPONSE),
)


def _refuse_compressed(request: Request) -> None:
    if request.headers.get("content-encoding", "identity") != "identity":
        raise BadRequest(
            "Compressed request bodies are not accepted.",
            code="unsupported_encoding",
            param="content-encoding",
            status=415,
        )


def _capture(seed: int, route: Route, directives: Directives, exchange_id: UUID) -> tuple[Capture, float, str]:
    """Decide what is kept: how much, with which probability, and if nothing, why."""
    if directives.origin is not Origin.CLIENT:
        return Capture.FULL, 1.0, ""
    capture = Capture(route.capture)
    if capture is Capture.OFF:
        return capture, 0.0, "capture_off"
    if not directives.audit:
        return capture, 0.0, "audit_off"
    if not sampled(seed, exchange_id.bytes, route.sample):
        return capture, 0.0, "not_sampled"
    return capture, route.sample, ""


def _admit(gateway: Gateway, key: Key, tap: Tap) -> None:
    """Hold the request against its key's limits.

    Raises
    ------
    Limited
        It is over one of them. It is counted, but no copy is kept: a flood of refused requests is no one's evidence.
    """
    snapshot = gateway.snapshot.current
    elsewhere = snapshot.spent_elsewhere.get(key.id, 0) if snapshot is not None else 0
    # Four bytes are about a token, in most languages and formats.
    estimate = TokenCount(prompt=len(tap.subject.body) // 4, completion=tap.subject.asked_tokens or 0)
    try:
        tap.grant = gateway.limits.admit(key, elsewhere, estimate)
    except Limited as error:
        tap.drop("dropped_limited")
        tap.end(Outcome.FAILED, error.http_status, error.code)
        raise


async def _forward(gateway: Gateway, request: Request, tap: Tap) -> WholeAnswer | OpenAnswer:
    try:
        answering = await Attempts(gateway, request, tap).run()
    except UpstreamRefused as refused:
        return relay_refusal(refused.refusal, tap)
    except (UpstreamFailed, UpstreamTimeout, Saturated) as error:
        tap.end(Outcome.FAILED, error.http_status, error.code)
        return error_answer(error, tap.own_headers())
    try:
        return await relay(request, answering.begun, tap, answering.waits, strip_usage=answering.usage_injected)
    finally:
        answering.settle(tap, gateway.recorder)


def _stop(request: Request, tap: Tap) -> WholeAnswer:
    """End an exchange whose handler has been cancelled, in whichever way is left."""
    if not survives_cancellation(request):
        tap.end(*_GONE)
        raise asyncio.CancelledError
    if tap.status:  # some of a unary body has been sent
        tap.end(Outcome.CUT, tap.status, STOPPED)
        raise asyncio.CancelledError
    tap.end(Outcome.FAILED, 503, STOPPED)
    return error_answer(Saturated(STOPPING, code=STOPPED, retry_after=1), tap.own_headers())
