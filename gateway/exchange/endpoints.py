"""OpenAI's POST endpoints: check a request, forward it, relay the answer. All endpoints share one code path."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec import structs

from auditor.config import Config, Route
from auditor.domain.exchange import Capture, Origin, Outcome
from auditor.domain.ids import new_id_text
from auditor.domain.keys import Key
from auditor.domain.sampling import sampled
from gateway.auth import Directives
from gateway.errors import BadRequest, Forbidden, Limited, Saturated, UpstreamFailed, UpstreamTimeout
from gateway.exchange.app import Gateway, error_answer
from gateway.exchange.attempt import settle
from gateway.exchange.forwarder import Forwarder
from gateway.exchange.relay import relay, relay_refusal
from gateway.exchange.sse import DONE, LAST_RESPONSE, StreamTerminator
from gateway.exchange.stopping import STOPPED, STOPPING, survives_cancellation
from gateway.exchange.tap import RequestContext, Tap
from gateway.headers import request_id, trace_tags
from gateway.http import OpenAnswer, Request, WholeAnswer
from gateway.limits.key_limits import Grant, TokenCount
from gateway.routing.failures import UpstreamRefused
from gateway.routing.trials import Trial
from gateway.wire import Envelope, read_envelope

Answer = WholeAnswer | OpenAnswer

#: Members are looked up in Python, and each request asks for these.
_CLIENT, _OFF = Origin.CLIENT, Capture.OFF
_CAPTURES = {str(capture): capture for capture in Capture}
_NOT_COPIED = (Capture.OFF, 0.0, "pass_through")
#: Endpoints whose requests may get an instruction.
TEXT_ENDPOINTS: Final = ("chat/completions", "completions", "responses")
DISCONNECTED = (Outcome.CLIENT_GONE, 499, "client_gone")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A POST endpoint.

    ``path`` follows our ``/v1/`` and a deployment's ``base_url``. ``usage_on_request``: its streams report usage only
    if the request asks for it. ``label`` names it in series and records, if not ``path`` does. ``copied``: whether
    copies of its exchanges may be kept.
    """

    path: str
    ending: StreamTerminator = DONE
    usage_on_request: bool = False
    label: str | None = None
    copied: bool = True

    async def forward(self, gateway: Gateway, request: Request) -> Answer:
        """Forward one request."""
        now_us = time.time_ns() // 1000
        key = gateway.authenticator.identify(request.headers)
        directives = gateway.authenticator.directives(request.headers, key)
        _refuse_compressed(request)
        body = await request.body(gateway.config.gateway.body_limit)
        context = self._context(gateway, request, now_us, key, directives, body)
        tap = Tap(context, gateway.recorder, gateway.config.gateway.capture_limit)
        return await run(request, tap, partial(_forward, gateway, request, tap, key))

    def _context(
        self,
        gateway: Gateway,
        request: Request,
        now_us: int,
        key: Key | None,
        directives: Directives,
        body: bytes,
    ) -> RequestContext:
        envelope = read_envelope(body)
        if key is not None and not key.may_ask_for(envelope.model):
            raise Forbidden("This key may not use this model.", code="model_not_allowed", param="model")
        route = gateway.table.route(envelope.model)
        if directives.pin is not None:
            _check_pin(gateway, directives.pin, key)
        exchange_id = new_id_text(now_us // 1000)
        if "traceparent" in request.headers:
            directives = directives.with_tags(trace_tags(request.headers))
        context = self.context(
            gateway.config, route, key, directives, envelope, exchange_id=exchange_id,
            asked_id=request_id(request.headers, exchange_id), at_us=now_us, body=body,
        )  # fmt: skip
        trial = gateway.table.trials.get(route.model)
        return context if trial is None else _in_trial(trial, context)

    def context(  # noqa: PLR0913 -- what is known of a request
        self,
        config: Config,
        route: Route,
        key: Key | None,
        directives: Directives,
        envelope: Envelope,
        *,
        exchange_id: str,
        asked_id: str,
        at_us: int,
        body: bytes,
    ) -> RequestContext:
        """Describe a request that may be forwarded; ``asked_id`` is its request id."""
        capture, inclusion, skip_reason = self.capture(config.seed, route, directives, exchange_id)
        stream = bool(envelope.stream)
        return RequestContext(
            exchange_id,
            at_us,
            self.path,
            self.label or self.path,
            self.ending,
            envelope.model,
            stream,
            route,
            directives,
            None if key is None else key.id,
            asked_id,
            config.config_hash,
            body,
            capture,
            inclusion,
            () if key is None else key.models,
            skip_reason,
            envelope.asked_tokens,
            stream and self.usage_on_request and envelope.omits_usage,
        )

    def capture(self, seed: int, route: Route, directives: Directives, exchange_id: str) -> tuple[Capture, float, str]:
        """Decide how much of an exchange is captured and with which probability, or why nothing is."""
        if not self.copied:
            return _NOT_COPIED
        if directives.origin is not _CLIENT:
            return Capture.FULL, 1.0, ""
        capture, sample = _CAPTURES[route.capture], route.sample
        if capture is _OFF:
            return capture, 0.0, "capture_off"
        if not directives.audit:
            return capture, 0.0, "audit_off"
        if sample <= 0 or (sample < 1 and not sampled(seed, bytes.fromhex(exchange_id.replace("-", "")), sample)):
            return capture, 0.0, "not_sampled"
        return capture, sample, ""


ENDPOINTS = (
    Endpoint("chat/completions", usage_on_request=True),
    Endpoint("completions", usage_on_request=True),
    Endpoint("embeddings"),
    Endpoint("responses", LAST_RESPONSE),
)


def _in_trial(trial: Trial, context: RequestContext) -> RequestContext:
    """Return the context of a request with its part in the trial of its route, if it may have one."""
    directives = context.directives
    asks_for_text = context.endpoint in TEXT_ENDPOINTS
    if directives.origin is not Origin.CLIENT or directives.pin or not directives.audit or not asks_for_text:
        return context
    part = trial.take_part(context.path, context.body, directives.tags)
    tagged = structs.replace(directives, tags={**directives.tags, **part.tags})
    return structs.replace(context, directives=tagged, instructed=part.body)


def _check_pin(gateway: Gateway, pin: str, key: Key | None) -> None:
    deployment = gateway.table.pinned(pin)
    if key is not None and key.models and deployment.name not in gateway.table.deployments_of(key.models):
        raise Forbidden(
            "This key may not use this deployment: no model that the key may ask for has it.",
            code="deployment_not_allowed",
            param="x-biasmeter-deployment",
        )


def _refuse_compressed(request: Request) -> None:
    if request.headers.get("content-encoding", "identity") != "identity":
        raise BadRequest(
            "Compressed request bodies are not accepted.",
            code="unsupported_encoding",
            param="content-encoding",
            status=415,
        )


def _admit(gateway: Gateway, key: Key, tap: Tap) -> None:
    """Check the request against the limits of its key, and reserve its tokens.

    Raises
    ------
    Limited
        It exceeds one of them. It is counted, but no copy is kept: refused requests are not evidence.
    """
    try:
        tap.grant = admit(gateway, key, tap.context.body, tap.context.asked_tokens)
    except Limited as error:
        tap.drop("dropped_limited")
        tap.end(Outcome.FAILED, error.http_status, error.code)
        raise


def admit(gateway: Gateway, key: Key, body: bytes, asked_tokens: int | None) -> Grant | None:
    """Check a request against the limits of its key, and reserve its tokens.

    Raises
    ------
    Limited
        It exceeds one of them.
    """
    elsewhere = 0
    if key.budget is not None and (snapshot := gateway.snapshot.current) is not None:
        elsewhere = snapshot.spent_elsewhere.get(key.id, 0)
    # A token has about four bytes in most languages and formats.
    return gateway.limits.admit(key, elsewhere, TokenCount(len(body) // 4, asked_tokens or 0))


async def run(request: Request, tap: Tap, answer: Callable[[], Awaitable[Answer]]) -> Answer:
    """Answer a request, and end its exchange however that ends."""
    try:
        return await answer()
    except ConnectionResetError:  # from a write to the client
        tap.end(*DISCONNECTED)
        raise
    except asyncio.CancelledError:
        return _stop(request, tap)
    except Exception:
        if request.client.has_begun:
            tap.end(Outcome.CUT, tap.status, "internal_error")
        else:
            tap.end(Outcome.FAILED, 500, "internal_error")
        raise


async def _forward(gateway: Gateway, request: Request, tap: Tap, key: Key | None) -> Answer:
    if key is not None and tap.context.directives.origin is _CLIENT:
        _admit(gateway, key, tap)
    return await forward_by(Forwarder(gateway, request, tap), gateway, request, tap)


async def forward_by(forwarder: Forwarder, gateway: Gateway, request: Request, tap: Tap) -> Answer:
    """Have a deployment asked, and relay its answer."""
    try:
        attempt = await forwarder.run()
    except UpstreamRefused as refused:
        return await relay_refusal(request, refused.refusal, tap)
    except (UpstreamFailed, UpstreamTimeout, Saturated) as error:
        tap.end(Outcome.FAILED, error.http_status, error.code)
        return error_answer(error, tap.own_headers())
    try:
        return await relay(request, attempt, tap, gateway.recorder.thread)
    finally:
        settle(attempt.slot, tap, gateway.recorder)


def _stop(request: Request, tap: Tap) -> WholeAnswer:
    """End an exchange whose handler has been cancelled: answer 503 if nothing has been sent yet."""
    if not survives_cancellation(request):
        tap.end(*DISCONNECTED)
        raise asyncio.CancelledError
    if tap.status:  # some of a unary body has been sent
        tap.end(Outcome.CUT, tap.status, STOPPED)
        raise asyncio.CancelledError
    tap.end(Outcome.FAILED, 503, STOPPED)
    return error_answer(Saturated(STOPPING, code=STOPPED, retry_after=1), tap.own_headers())
