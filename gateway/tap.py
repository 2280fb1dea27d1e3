"""The tap: watches one exchange pass, keeps a bounded copy, and turns it into an `Exchange` once it has ended.

It never changes or delays a byte. `end` comes before the answer's terminator is released to the client, so that
whatever the client got in full is in the spool.
"""

import re
import time
from hashlib import sha256
from uuid import UUID

import msgspec

from auditor.config import Deployment, Route
from auditor.domain.exchange import Capture, Exchange, Outcome
from gateway.auth import Directives
from gateway.endings import Ending
from gateway.headers import own_headers
from gateway.limits import Grant
from gateway.recorder import Recorder
from gateway.sse import payloads
from gateway.wire import Answer, Usage, read_answer

_FINISHED = re.compile(rb'"finish_reason"\s*:\s*"')
#: A deployment that is asked for usage puts ``"usage":null`` into each chunk but the last.
_USAGE = re.compile(rb'"usage"\s*:\s*[^n\s]')


class Subject(msgspec.Struct, kw_only=True, frozen=True):
    """What is known of an exchange before the deployment is asked."""

    id: UUID
    at_us: int
    endpoint: str
    ending: Ending
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
    passed_over: str = ""  #: why no copy is kept
    asked_tokens: int | None = None  #: the most that it lets be written, where it says so
    injects_usage: bool = False  #: whether a deployment is asked for the stream's usage in the client's stead


class Tap:
    """Follows one exchange.

    Parameters
    ----------
    subject
        The request.
    recorder
        Takes the exchange when it has ended.
    limit
        How many bytes of a side are copied; the rest is counted, and the copy marked as truncated.
    """

    def __init__(self, subject: Subject, recorder: Recorder, limit: int) -> None:
        self.subject = subject
        self.deployment: Deployment | None = None  # the one asked last
        self.attempts = 0
        self.upstream_s = 0.0  # spent waiting for deployments: their answers, a place there, and before a retry
        self.status = 0
        self.content_encoding: str | None = None
        self.outcome: Outcome | None = None  # known once it has ended
        self.error_type: str | None = None
        self.grant: Grant | None = None  # what the key's limits have let through
        self._passed_over = None if subject.inclusion else subject.passed_over
        self._recorder = recorder
        self._limit = limit
        self._began = time.perf_counter()
        self._first_byte_s: float | None = None
        self._copy: list[bytes] = []
        self._copied = 0
        self._seen = 0
        self._hash = sha256() if subject.capture is Capture.HASHED and subject.inclusion else None
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._error: str | None = None
        recorder.counters.add(("tiltmeter_in_flight", subject.directives.origin))

    @property
    def ended(self) -> bool:
        """Whether the exchange has been handed over."""
        return self.outcome is not None

    @property
    def finished(self) -> bool:
        """Whether some event said why the answer ends, be it an error."""
        return self._finish_reason is not None or self._error is not None

    def own_headers(self) -> dict[str, str]:
        """Say which exchange this is and who has answered."""
        name = self.deployment.name if self.deployment else None
        return own_headers(self.subject.id, self.subject.request_id, name, self.attempts)

    def drop(self, reason: str) -> None:
        """Keep no copy after all, and say why."""
        self._passed_over = reason

    def bytes_passed(self, data: bytes) -> None:
        """Copy a piece of the answer."""
        if self._first_byte_s is None:
            self._first_byte_s = time.perf_counter() - self._began
        self._seen += len(data)
        if self._hash is not None:
            self._hash.update(data)
        elif self.subject.inclusion and self._copied < self._limit:
            piece = data[: self._limit - self._copied]
            self._copy.append(piece)
            self._copied += len(piece)

    def events(self, events: bytes, relayed: bytes | None = None) -> None:
        """Read what whole events tell, and copy what is relayed of them; ``None``: all.

        A byte search comes first: most events tell nothing.
        """
        self.bytes_passed(events if relayed is None else relayed)
        if b'"error"' in events or _USAGE.search(events) or _FINISHED.search(events):
            for payload in payloads(events):
                self._note(read_answer(payload))

    def body(self, body: bytes) -> None:
        """Copy a whole answer and read what it tells."""
        self.bytes_passed(body)
        self._note(read_answer(body))

    def _note(self, answer: Answer | None) -> None:
        if answer is None:
            return
        answer = answer.response or answer  # some events carry the whole of it
        # Any event may carry them, and the last one counts.
        self._usage = answer.usage or self._usage
        self._finish_reason = answer.finish_reason or self._finish_reason
        if answer.error and self._error is None:
            self._error = "in_band"

    def end(self, outcome: Outcome, status: int, error_type: str | None = None) -> None:
        """Hand the exchange over. Only the first call counts."""
        if self.ended:
            return
        if outcome is Outcome.CLIENT_GONE and self._error is not None:
            # SDKs leave at an error inside a stream, before it has ended.
            outcome, status, error_type = Outcome.FAILED, self.status, self._error
        error_type = error_type or self._error
        if outcome is Outcome.COMPLETE and error_type is not None:
            outcome = Outcome.FAILED
        self.outcome, self.error_type = outcome, error_type
        exchange = self._exchange(outcome, status, error_type)
        recorder = self._recorder
        recorder.counters.add(("tiltmeter_in_flight", exchange.origin), -1)
        if self._passed_over is None:
            recorder.keep(exchange)
        else:
            recorder.pass_over(self._passed_over)
        recorder.count(exchange)
        if self.grant is not None:
            price = self.deployment.price if self.deployment else None
            failed = outcome is Outcome.FAILED and self._usage is None
            self.grant.settle(exchange.prompt_tokens, exchange.completion_tokens, price, failed=failed)

    def _exchange(self, outcome: Outcome, status: int, error_type: str | None) -> Exchange:
        subject, usage = self.subject, self._usage
        full = subject.capture is Capture.FULL
        hashed = self._hash is not None
        return Exchange(
            id=subject.id,
            at_us=subject.at_us,
            origin=subject.directives.origin,
            endpoint=subject.endpoint,
            route=subject.route.model,
            deployment=self.deployment.name if self.deployment else "",
            model=subject.model[:200],
            status=status,
            outcome=outcome,
            stream=subject.stream,
            attempts=self.attempts,
            capture=subject.capture,
            inclusion=subject.inclusion,
            config_hash=subject.config_hash,
            request_id=subject.request_id,
            key_id=subject.key_id,
            ref=subject.directives.ref,
            parent=subject.directives.parent,
            tags=subject.directives.tags,
            error_type=error_type,
            finish_reason=self._finish_reason,
            prompt_tokens=usage.prompt if usage else None,
            completion_tokens=usage.completion if usage else None,
            total_us=round((time.perf_counter() - self._began) * 1e6),
            upstream_us=round(self.upstream_s * 1e6),
            first_byte_us=None if self._first_byte_s is None else round(self._first_byte_s * 1e6),
            request_bytes=len(subject.body),
            response_bytes=self._seen,
            truncated=full and (self._copied < self._seen or len(subject.body) > self._limit),
            # A header's value may be any bytes; the store takes text.
            content_encoding=self.content_encoding and ascii(self.content_encoding)[1:-1][:100],
            request_hash=sha256(subject.body).digest() if hashed else None,
            response_hash=self._hash.digest() if self._hash is not None else None,
            request=subject.body[: self._limit] if full else None,
            response=b"".join(self._copy) if full else None,
        )
