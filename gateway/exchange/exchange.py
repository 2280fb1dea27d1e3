"""One exchange, from the head of its request to its record.

It never changes or delays a byte. `ActiveExchange.end` is called before the last bytes of the answer are sent, which
wait until the record is in the spool. So every answer that a client has received in full is kept.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from auditor.domain.exchange import Capture, Origin, Outcome
from gateway.auth import Directives
from gateway.errors import INTERNAL_ERROR, GatewayError, Limited, Saturated
from gateway.exchange.app import Gateway, error_answer, log_failure
from gateway.exchange.batch import IterationBatch
from gateway.exchange.deadlines import Deadlines
from gateway.exchange.endpoints import TEXT_ENDPOINTS, Sampling
from gateway.exchange.event_facts import find_facts
from gateway.exchange.head_plans import HeadPlan
from gateway.exchange.records import make_record
from gateway.exchange.route_plans import DeploymentPlan, RoutePlan
from gateway.exchange.sse import payloads_at
from gateway.headers import exchange_headers, naming_lines
from gateway.http.answer import BODILESS, connection_line, write_head
from gateway.http.connection import ClientConnection
from gateway.limits.key_limits import Grant
from gateway.recording.recorder import LARGE_COPY, Recorder
from gateway.routing.breaker import BreakerVerdict, Ticket
from gateway.routing.failures import AttemptFailed, HungUp, error_type_of, retry_may_help
from gateway.upstreams.answer_heads import AnswerHead
from gateway.upstreams.pool import ConnectionPool
from gateway.wire import AnswerSummary, Envelope, ReportedUsage, read_answer

if TYPE_CHECKING:
    import hashlib

#: Members are looked up in Python, and each exchange asks for these.
_CLIENT, _HASHED = Origin.CLIENT, Capture.HASHED
_COMPLETE, _FAILED, _CUT, _GONE = Outcome.COMPLETE, Outcome.FAILED, Outcome.CUT, Outcome.CLIENT_GONE
_OK, _VERDICT_FAILED, _VERDICT_ERROR = BreakerVerdict.OK, BreakerVerdict.FAILED, BreakerVerdict.ERROR
_NOTHING_SAID = BreakerVerdict.NONE
#: The error type of an exchange that is not done when this process must end.
STOPPED: Final = "gateway_stopped"
STOPPING: Final = "The gateway is stopping."
_HTTP_OK: Final = 200
_OCTETS: Final = b"\r\ncontent-type: application/octet-stream"
_SHOULD_RETRY: Final = b"\r\nx-should-retry: "
_NO_RETRY: Final = b"\r\nx-should-retry: false"


class Relay(Protocol):
    """Relays the answer to one request to a deployment."""

    def ended(self) -> None:
        """Take note that the answer is complete."""

    def leave(self) -> bool:
        """Close the connection to the deployment, and wait for nothing more.

        Returns
        -------
        bool
            False if the answer is still being read. Then it calls `ActiveExchange.client_lost` when it has been.
        """

    def client_ready(self) -> None:
        """Go on: the client accepts more data."""

    def stop(self) -> None:
        """End the answer, of which the client has got some, because this process must end."""


class ExchangeParts(msgspec.Struct, eq=False):
    """What all exchanges of a worker use."""

    gateway: Gateway
    recorder: Recorder
    pool: ConnectionPool
    batch: IterationBatch
    deadlines: Deadlines
    #: Goes on with an exchange whose first attempt has failed without a task.
    go_on_after: "Callable[[ActiveExchange, HungUp | AttemptFailed], None]"


class ActiveExchange(msgspec.Struct, eq=False):
    """One exchange.

    It is made in the order of its fields, because a client waits until it is made.
    """

    parts: ExchangeParts
    client: ClientConnection
    head: HeadPlan
    route: RoutePlan
    headers: Mapping[str, str]  #: of the request
    envelope: Envelope
    body: bytes
    id: str
    request_id: str
    at_us: int  #: microseconds since 1970
    began: float  #: `time.perf_counter` when the request had arrived
    since: float  #: the same in the event loop's time
    directives: Directives
    sampling: Sampling
    sent: bytes  #: what deployments get as the body, before it is made fit for one of them
    chosen: DeploymentPlan | None  #: the deployment that is asked, or was asked last
    # -- asking
    grant: Grant | None = None  #: the reservation in the key's limits
    ticket: Ticket | None = None  #: of the slot that is held
    attempts: int = 1
    usage_injected: bool = False  #: whether the gateway has changed what the client says of usage
    upstream_s: float = 0.0  #: spent waiting for deployments: for answers, for a slot, and before a retry
    relay: Relay | None = None
    task: "asyncio.Task[None] | None" = None  #: waits for a slot, a connection, or the next attempt
    # -- the answer
    answer_head: AnswerHead | None = None  #: None until the client gets some of the answer
    answer_body: bytes | None = None  #: the whole answer, if the client gets it at once
    first_byte_s: float | None = None
    seen: int = 0  #: bytes
    usage: ReportedUsage | None = None
    finish_reason: str | None = None
    error: str | None = None  #: the type of an error that the answer contains
    outcome: Outcome | None = None  #: None until the exchange has been recorded
    error_type: str | None = None
    storing: "asyncio.Task[None] | None" = None  #: writes a large copy to the spool
    copy: list[bytes] = []  #: pieces, together at most one piece longer than what is copied
    hash: "hashlib._Hash | None" = None
    is_being_recorded: bool = False  #: the end of an answer in pieces has come, and waits for its record

    # -- what is read of the answer -----------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether an event contained a finish reason or an error."""
        return self.finish_reason is not None or self.error is not None

    def body_passed(self, data: bytes) -> None:
        """Copy a piece of the answer."""
        if self.first_byte_s is None:
            self.first_byte_s = time.perf_counter() - self.began
        capture, _, skip_reason = self.sampling
        if capture is _HASHED:
            if self.hash is None:
                self.hash = sha256()
            self.hash.update(data)
        elif self.seen < self.route.capture_limit and not skip_reason:
            self.copy.append(data)  # the record is cut to the limit
        self.seen += len(data)

    def read_events(self, events: bytes, relayed: bytes) -> None:
        """Read usage, finish reason and errors of complete events, and copy what is relayed of them.

        Only events in which a search over bytes finds one of these are parsed.
        """
        self.body_passed(relayed)
        for payload in payloads_at(events, find_facts(events)):
            self._note(read_answer(payload))

    def _note(self, answer: AnswerSummary | None) -> None:
        if answer is None:
            return
        answer = answer.response or answer  # some events contain the whole response
        # Any event may contain them; the last one counts.
        self.usage = answer.usage or self.usage
        self.finish_reason = answer.finish_reason or self.finish_reason
        if answer.error and self.error is None:
            self.error = "in_band"

    # -- the head of the answer ---------------------------------------------------------------------------------------

    @property
    def status(self) -> int:
        """The status that the client has got, or 0."""
        return 0 if self.answer_head is None else self.answer_head.status

    @property
    def is_ending(self) -> bool:
        """Whether it is known what the record says of the end, whatever the client does."""
        return self.outcome is not None or self.answer_body is not None or self.is_being_recorded

    @property
    def end_due(self) -> float:
        """Until when the answer of the deployment must be complete, in the event loop's time."""
        assert self.chosen is not None
        return self.since + self.chosen.total

    def naming_lines(self) -> bytes:
        """Return the lines of a head that name the exchange and its deployment, each with a line break before it."""
        assert self.chosen is not None
        return naming_lines(self.id, self.request_id, self.chosen.deployment.name, self.attempts)

    @property
    def ends_connection(self) -> bool:
        """Whether the connection of the client ends with the answer."""
        return not self.head.stays or self.client.is_last

    def answer_whole(self, head: AnswerHead, body: bytes) -> None:
        """Answer with a whole answer of a deployment, at the end of this iteration of the event loop."""
        self.answer_head, self.answer_body = head, body
        self.parts.batch.end(self)

    def record(self) -> None:
        """Record the exchange, which ends with a whole answer."""
        head, body = self.answer_head, self.answer_body
        assert head is not None
        assert body is not None
        self._note(read_answer(body))
        self.end(_COMPLETE if head.status < 300 else _FAILED, head.status, error_type_of(head.status))
        self.settle()

    def answer(self, lines: bytes) -> None:
        """Send the whole answer, with the lines of server and date, as soon as the record is in the spool."""
        if self.storing is not None and not self.storing.done():
            self.storing.add_done_callback(lambda _: self.guard(lambda: self.answer(lines)))
            return
        head, body = self.answer_head, self.answer_body
        assert head is not None
        assert body is not None
        client, plan = self.client, self.head
        naming = self.naming_lines()
        ends = self.ends_connection
        if head.status == _HTTP_OK and head.is_stream is not None and plan.minor and not ends:  # as below, in less time
            client.finish_and_rest(
                b"HTTP/1.1 200 OK%b%b%b\r\ncontent-length: %d\r\n\r\n%b" % (head.fields, naming, lines, len(body), body)
            )
        else:
            framing = connection_line(plan.minor, ends=ends)
            if head.status in BODILESS:
                body = b""
            else:
                framing += b"\r\ncontent-length: %d" % len(body)
            fields = head.fields + naming + _more_fields(head)
            client.finish(write_head(head.status, fields, lines, framing) + body, ends=ends)

    def refused(self, error: Exception) -> None:
        """Record that the request has been refused at the limits of its key: counted, and no evidence to keep."""
        self.chosen = None
        if isinstance(error, Limited):
            capture, inclusion, _ = self.sampling
            self.sampling = capture, inclusion, "dropped_limited"
            self.end(_FAILED, error.http_status, error.code)
        else:
            self.end(_FAILED, INTERNAL_ERROR.http_status, INTERNAL_ERROR.code)
        self.parts.recorder.write_held()

    def fail(self, error: GatewayError) -> None:
        """Record a failure of which the client has got nothing yet, and answer with it."""
        try:
            self.end(_FAILED, error.http_status, error.code)
            self.parts.recorder.write_held()
        finally:
            deployment = None if self.chosen is None else self.chosen.deployment.name
            naming = exchange_headers(self.id, self.request_id, deployment, self.attempts)
            ends = self.ends_connection
            self.client.finish(error_answer(error, naming).write("POST", self.head.minor, ends=ends), ends=ends)

    # -- the end ------------------------------------------------------------------------------------------------------

    def release(self, verdict: BreakerVerdict) -> None:
        """Release the slot that is held, if there is one, with a verdict on its deployment."""
        ticket, self.ticket = self.ticket, None
        if ticket is not None:
            assert self.chosen is not None
            self.chosen.access.release(ticket, verdict)

    def settle(self) -> None:
        """Release the slot with the verdict that follows from how the exchange has ended."""
        if self.ticket is None:
            return
        if self.outcome is _COMPLETE:
            self.release(_OK)
        elif self.outcome is _GONE or self.error_type == STOPPED:
            self.release(_NOTHING_SAID)
        else:
            self.release(_VERDICT_ERROR if self.outcome is _FAILED else _VERDICT_FAILED)
            assert self.chosen is not None
            self.parts.recorder.count_failure(
                self.chosen.deployment.name, self.directives.origin, self.error_type or ""
            )

    def guard(self, step: Callable[[], object]) -> None:
        """Take a step that something else than the exchange calls for, and end the exchange after an error of it."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 -- it ends the exchange
            self.broken(error)

    def client_lost(self) -> None:
        """End the exchange: the client has disconnected."""
        self.guard(self._leave)

    def _leave(self) -> None:
        if self.task is not None:
            self.task.cancel()
        if self.relay is None or self.relay.leave():
            self.end_for_client("client_gone")

    def end_for_client(self, error_type: str) -> None:
        """Record that the client takes no more of the answer, unless it is known already how the exchange ends."""
        if not self.is_ending:
            self.release(_NOTHING_SAID)
            self.end(_GONE, 499, error_type)
            self.parts.recorder.write_held()
        elif self.outcome is not None:  # the rest of an answer that has been recorded
            self.settle()

    def client_ready(self) -> None:
        """Go on: the client accepts more data."""
        if self.relay is not None:
            self.guard(self.relay.client_ready)

    def stop(self) -> None:
        """End the exchange, because this process must end: answer 503 if nothing has been sent yet."""
        self.guard(self._stop)

    def _stop(self) -> None:
        if self.relay is not None and self.status:
            self.relay.stop()
        elif not self.is_ending:
            if self.task is not None:
                self.task.cancel()
            if self.relay is not None:
                self.relay.leave()
            self.release(_NOTHING_SAID)
            self.fail(Saturated(STOPPING, code=STOPPED, retry_after=1))

    def broken(self, error: Exception) -> None:
        """End the exchange after an error of the gateway itself: answer 500, or cut the answer.

        It raises nothing: whatever fails of it, the rest is done.
        """
        log_failure("POST", self.head.path, error)
        is_unanswered = self.outcome is None and (not self.status or self.answer_body is not None)
        for step in (self._leave_relay, partial(self.release, _NOTHING_SAID),
                     partial(self.fail, INTERNAL_ERROR) if is_unanswered else self._cut):  # fmt: skip
            try:
                step()
            except Exception as another:  # noqa: BLE001 -- the other steps follow
                log_failure("POST", self.head.path, another)

    def _leave_relay(self) -> None:
        if self.relay is not None:
            self.relay.leave()

    def _cut(self) -> None:
        """End an answer of which the client may have got some, after an error of the gateway itself."""
        try:
            self.end(_CUT, self.status, INTERNAL_ERROR.code)
            self.parts.recorder.write_held()
        finally:
            if self.client.exchange is self:
                self.client.cut()

    # One function, because a client waits for each call.
    def end(self, outcome: Outcome, status: int, error_type: str | None = None) -> None:  # noqa: C901, PLR0912
        """Record the exchange. Only the first call counts. `Recorder.write_held` writes the record, or `storing` does.

        Parameters
        ----------
        status
            Status that the client gets.
        error_type
            The class of what went wrong, if something did.
        """
        if self.outcome is not None:
            return
        if self.error is not None:
            if outcome is _GONE:  # SDKs disconnect at an error inside a stream, before it has ended
                outcome, status, error_type = _FAILED, self.status, self.error
            error_type = error_type or self.error
        if error_type is not None and outcome is _COMPLETE:
            outcome = _FAILED
        self.outcome, self.error_type = outcome, error_type
        recorder, usage, chosen = self.parts.recorder, self.usage, self.chosen
        prompt, completion = (None, None) if usage is None else (usage.prompt, usage.completion)
        total_us = round((time.perf_counter() - self.began) * 1e6)
        upstream_us = round(self.upstream_s * 1e6)
        if self.answer_body is not None:  # the client gets all of it now
            first_byte_us: int | None = total_us
        else:
            first_byte_us = None if self.first_byte_s is None else round(self.first_byte_s * 1e6)
        head, route, origin = self.head, self.route, self.directives.origin
        name = "" if chosen is None else chosen.deployment.name
        seen = self.seen if self.answer_body is None else len(self.answer_body)
        # First what would be lost to others if a later step failed.
        if origin is _CLIENT:
            recorder.ended += 1
        else:
            recorder.counters.add(("biasmeter_in_flight", origin), -1)
        if self.grant is not None:
            self._settle(self.grant, status, prompt, completion, seen)
        if self.sampling[2]:
            recorder.count_skipped(self.sampling[2])
        else:
            record = make_record(self, status, seen, prompt, completion, total_us, upstream_us, first_byte_us)
            if len(self.body) + seen <= LARGE_COPY:
                recorder.hold(record)
            else:
                self.storing = recorder.keep(record)
        if chosen is None:
            series = recorder.series(head.endpoint_name, route.route.model, name, origin)
        else:
            series = chosen.series or chosen.open_series(recorder, origin)
        series.count(status, prompt, completion, total_us, upstream_us, first_byte_us if self.envelope.stream else None)

    def _settle(self, grant: Grant, status: int, prompt: int | None, completion: int | None, seen: int) -> None:
        price = None if self.chosen is None else self.chosen.deployment.price
        # A stream with an error inside has been generated up to there.
        failed = self.outcome is _FAILED and (status >= 300 or self.answer_body is not None)
        is_text = self.envelope.stream or self.head.endpoint_name in TEXT_ENDPOINTS  # others may answer with an image
        grant.settle(prompt, completion, price, failed=failed, answer_bytes=seen if is_text else 0)


def _more_fields(head: AnswerHead) -> bytes:
    """Return the lines that a whole answer gets although its deployment has not sent them."""
    if head.status >= 400:
        return b"" if _SHOULD_RETRY in head.fields or retry_may_help(head.status) else _NO_RETRY
    return _OCTETS if head.is_stream is None else b""
