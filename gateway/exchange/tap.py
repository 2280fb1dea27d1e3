"""The tap: records one exchange with a bounded copy of its content, and stores it as an `Exchange` when it has ended.

It never changes or delays a byte. `end` is called before the terminator of the answer is sent, and the terminator waits
for `storing`, so every answer that a client has received in full is in the spool.
"""

import asyncio
import re
import time
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from auditor.config import Deployment, Route
from auditor.domain.exchange import Capture, Exchange, Outcome
from gateway.auth import Directives
from gateway.exchange.sse import StreamTerminator, payloads_at
from gateway.headers import naming_lines, own_headers
from gateway.limits.key_limits import Grant
from gateway.recording.recorder import Recorder
from gateway.wire import AnswerSummary, ReportedUsage, read_answer

if TYPE_CHECKING:
    import hashlib

#: Members are looked up in Python, and each exchange asks for these.
_FULL, _HASHED = Capture.FULL, Capture.HASHED


class _Fact(NamedTuple):
    """A member of an event that may tell something: how most servers write it, and how JSON may be written."""

    key: bytes
    nothing: bytes  #: with a value that tells nothing
    usual: bytes  #: with one that does
    any: re.Pattern[bytes]  #: the same, however it is written


#: Deployments that report usage put ``"usage":null`` into each chunk except the last, and all put
#: ``"finish_reason":null`` there.
_FACTS = (
    _Fact(b'"usage"', b'"usage":null', b'"usage":{', re.compile(rb'"usage"\s*:\s*[^n\s]')),
    _Fact(b'"finish_reason"', b'"finish_reason":null', b'"finish_reason":"', re.compile(rb'"finish_reason"\s*:\s*"')),
)


class RequestContext(msgspec.Struct, frozen=True):
    """What is known about an exchange before a deployment is asked.

    It is made in the order of its fields: with their names it takes seven times as long, while a client waits.
    """

    id: str
    at_us: int
    path: str  #: of the endpoint, after a deployment's ``base_url``
    endpoint: str  #: its name in series and records
    ending: StreamTerminator
    model: str
    stream: bool
    route: Route
    directives: Directives
    key_id: str | None
    request_id: str
    config_hash: str
    body: bytes
    capture: Capture
    inclusion: float  #: 0 when no copy is kept
    key_models: tuple[str, ...] = ()  #: the models that the key may ask for; empty: all
    skip_reason: str = ""  #: why no copy is kept
    asked_tokens: int | None = None  #: the maximum output, if the request limits it
    injects_usage: bool = False  #: whether the gateway asks for usage although the client does not
    instructed: bytes | None = None  #: what deployments get in place of the body: with the instruction of a trial's arm


class Tap:
    """Records one exchange.

    Parameters
    ----------
    context
        The request.
    recorder
        Stores and counts the exchange when it has ended.
    limit
        Maximum bytes to copy of request and answer each; the rest is counted, and the copy marked as truncated.
    began
        `time.perf_counter` when the exchange began, if it has been counted as in flight already.
    """

    # Values of the class stand for those that an exchange begins with: a client waits until it is made.
    deployment: Deployment | None = None  #: the last one that was asked
    attempts = 0
    upstream_s = 0.0  #: spent waiting for deployments: for answers, for a slot, and before a retry
    status = 0
    content_encoding: str | None = None
    outcome: Outcome | None = None  #: None until the exchange has ended
    error_type: str | None = None
    grant: Grant | None = None  #: the reservation in the key's limits
    storing: "asyncio.Task[None] | None" = None  #: writes a large copy to the spool
    _skip_reason: str | None = None
    _first_byte_s: float | None = None
    _copied = 0
    _seen = 0
    _hash: "hashlib._Hash | None" = None
    _usage: ReportedUsage | None = None
    _finish_reason: str | None = None
    _error: str | None = None

    def __init__(self, context: RequestContext, recorder: Recorder, limit: int, began: float | None = None) -> None:
        self.context = context
        self._recorder = recorder
        self._limit = limit
        self._began = time.perf_counter() if began is None else began
        self._copy: list[bytes] = []
        if not context.inclusion:
            self._skip_reason = context.skip_reason
        elif context.capture is _HASHED:
            self._hash = sha256()
        if began is None:
            recorder.counters.add(("biasmeter_in_flight", context.directives.origin))

    @property
    def ended(self) -> bool:
        """Whether the exchange has ended and was recorded."""
        return self.outcome is not None

    @property
    def finished(self) -> bool:
        """Whether an event contained a finish reason or an error."""
        return self._finish_reason is not None or self._error is not None

    def own_headers(self) -> dict[str, str]:
        """Return the headers that name the exchange and its deployment."""
        name = self.deployment.name if self.deployment else None
        return own_headers(self.context.id, self.context.request_id, name, self.attempts)

    def naming_lines(self) -> bytes:
        """Return the same as lines of a head, each with a line break before it."""
        assert self.deployment is not None
        return naming_lines(self.context.id, self.context.request_id, self.deployment.name, self.attempts)

    def drop(self, reason: str) -> None:
        """Keep no copy, for this reason."""
        self._skip_reason = reason

    def bytes_passed(self, data: bytes) -> None:
        """Copy a piece of the answer."""
        if self._first_byte_s is None:
            self._first_byte_s = time.perf_counter() - self._began
        self._seen += len(data)
        if self._hash is not None:
            self._hash.update(data)
        elif self.context.inclusion and self._copied < self._limit:
            piece = data[: self._limit - self._copied]
            self._copy.append(piece)
            self._copied += len(piece)

    def events(self, events: bytes, relayed: bytes | None = None) -> None:
        """Read usage, finish reason and errors of complete events, and copy what is relayed of them (``None``: all).

        Only events in which a search over bytes finds one of these are parsed.
        """
        self.bytes_passed(events if relayed is None else relayed)
        for payload in payloads_at(events, _places(events)):
            self._note(read_answer(payload))

    def body(self, body: bytes) -> None:
        """Copy a complete answer, and read its usage, finish reason and error."""
        self.bytes_passed(body)
        self._note(read_answer(body))

    def _note(self, answer: AnswerSummary | None) -> None:
        if answer is None:
            return
        answer = answer.response or answer  # some events contain the whole response
        # Any event may contain them; the last one counts.
        self._usage = answer.usage or self._usage
        self._finish_reason = answer.finish_reason or self._finish_reason
        if answer.error and self._error is None:
            self._error = "in_band"

    def end(self, outcome: Outcome, status: int, error_type: str | None = None) -> None:
        """End the exchange and record it. Only the first call counts."""
        if self.outcome is not None:
            return
        if self._error is not None:
            if outcome is Outcome.CLIENT_GONE:
                # SDKs disconnect at an error inside a stream, before it has ended.
                outcome, status, error_type = Outcome.FAILED, self.status, self._error
            error_type = error_type or self._error
        if error_type is not None and outcome is Outcome.COMPLETE:
            outcome = Outcome.FAILED
        self.outcome, self.error_type = outcome, error_type
        total_us = round((time.perf_counter() - self._began) * 1e6)
        upstream_us = round(self.upstream_s * 1e6)
        first_byte_us = None if self._first_byte_s is None else round(self._first_byte_s * 1e6)
        context, recorder, usage, deployment = self.context, self._recorder, self._usage, self.deployment
        prompt, completion = (None, None) if usage is None else (usage.prompt, usage.completion)
        name = "" if deployment is None else deployment.name
        origin, route = context.directives.origin, context.route.model
        recorder.counters.add(("biasmeter_in_flight", origin), -1)
        if self._skip_reason is None:
            told = (error_type, self._finish_reason, prompt, completion, total_us, upstream_us, first_byte_us)
            self.storing = recorder.keep(self._exchange(route, name, status, outcome, told))
        else:
            recorder.count_skipped(self._skip_reason)
        recorder.series(context.endpoint, route, name, origin).count(
            status, prompt, completion, total_us, upstream_us, first_byte_us if context.stream else None
        )
        if self.grant is not None:
            price = None if deployment is None else deployment.price
            failed = usage is None and outcome is Outcome.FAILED
            self.grant.settle(prompt, completion, price, failed=failed)

    def _exchange(
        self, route: str, deployment: str, status: int, outcome: Outcome, told: tuple[str | int | None, ...]
    ) -> Exchange:
        """Make the exchange; ``told`` are its fields from the type of its error to the time of its first byte."""
        context, directives = self.context, self.context.directives
        body, answer_hash, limit = context.body, self._hash, self._limit
        full = context.capture is _FULL
        # All fields in their order: with their names it takes three times as long.
        return Exchange._make(
            (
                context.id,
                context.at_us,
                directives.origin,
                context.endpoint,
                route,
                deployment,
                context.model[:200],
                status,
                outcome,
                context.stream,
                self.attempts,
                context.capture,
                context.inclusion,
                context.config_hash,
                context.request_id,
                directives.tags,
                context.key_id,
                directives.ref,
                directives.parent,
                *told,
                len(body),
                self._seen,
                full and (self._copied < self._seen or len(body) > limit),
                False,  # redacted
                self.content_encoding and _as_text(self.content_encoding),
                None if answer_hash is None else sha256(body).digest(),
                None if answer_hash is None else answer_hash.digest(),
                body[:limit] if full else None,
                b"".join(self._copy) if full else None,
            )
        )


def _places(events: bytes) -> list[int]:
    """Return the places at which events may tell something, in order."""
    found = list(_find_all(events, b'"error"'))
    for fact in _FACTS:
        told = events.count(fact.key) - events.count(fact.nothing)
        if told:
            usual = list(_find_all(events, fact.usual))
            found += usual if len(usual) == told else [match.start() for match in fact.any.finditer(events)]
    return sorted(found)


def _find_all(events: bytes, text: bytes) -> Iterator[int]:
    place = events.find(text)
    while place >= 0:
        yield place
        place = events.find(text, place + 1)


def _as_text(header: str) -> str:
    # A header's value may contain any bytes; the store needs text.
    return ascii(header)[1:-1][:100]
