"""Unary exchanges on the short way: the whole answer is read in callbacks, recorded and passed on.

An exchange ends here with the whole body of an answer of status 200, or of a refusal that nothing can be done about. A
stream goes on in `gateway.exchange.stream_exchange`, and everything else in `gateway.exchange.hand_over`, with what has
come. What an exchange writes waits for the end of the event loop's turn (`gateway.exchange.turn_batch`).
"""

import time
from functools import partial
from typing import Final

from typing_extensions import override

from auditor.domain.exchange import Outcome
from gateway.exchange.asked_exchange import AskedExchange
from gateway.exchange.attempt import settle
from gateway.exchange.due_exchanges import DueExchange
from gateway.exchange.endpoints import DISCONNECTED, forward_by
from gateway.exchange.hand_over import ResumedForwarder
from gateway.exchange.relay import ended
from gateway.exchange.stream_exchange import StreamExchange
from gateway.exchange.turn_batch import BatchedExchange, TurnBatch
from gateway.exchange.usual_records import record
from gateway.headers import naming_lines
from gateway.http.answer import status_line
from gateway.http.short_connection import ShortExchange
from gateway.recording.recorder import LARGE_COPY
from gateway.routing.breaker import BreakerVerdict
from gateway.upstreams.answer_heads import AnswerHead, AnswerHeads, read_chunks
from gateway.upstreams.chunks import begins
from gateway.upstreams.connection import AnswerFollower

#: Members are looked up in Python, and each request asks for these.
_COMPLETE: Final = Outcome.COMPLETE
_OK: Final = BreakerVerdict.OK
_HTTP_OK: Final = 200
_OK_LINE: Final = b"HTTP/1.1 200 OK"
_SHOULD_RETRY: Final = b"\r\nx-should-retry: "
_NO_RETRY: Final = b"\r\nx-should-retry: false"


class UnaryExchange(ShortExchange, AnswerFollower, DueExchange, BatchedExchange):
    """One exchange, from the moment at which its deployment has been chosen.

    Parameters
    ----------
    asked
        What belongs to it.
    request
        The whole request to the deployment, which follows `ask`.
    heads
        Reads the head of the answer.
    batch
        Of the turn.
    """

    def __init__(self, asked: AskedExchange, request: bytes, heads: AnswerHeads, batch: TurnBatch) -> None:
        self._asked = asked
        self._unsent = request  # empty as soon as it has been sent, or will never be
        self._heads = heads
        self._batch = batch
        self._data = b""  # of the answer
        self._head: AnswerHead | None = None
        self._body: bytes | None = None  # of the answer, as soon as it is complete
        self._arrived = 0.0  # `time.perf_counter` when it was

    # -- callbacks ---------------------------------------------------------------------------------------------------

    @override
    def received(self, data: bytes) -> None:
        if self._unsent:  # this answers nothing, so another connection is asked
            self._unsent = b""
            self._answer_by_task()
            self._asked.connection.abort("upstream_reset")
            return
        self._data = self._data + data if self._data else data
        head = self._head
        if head is None:
            head = self._head = self._heads.read(self._data)
        if (
            head is None
            or len(self._data) + len(self._asked.body) > LARGE_COPY
            or (head.status != _HTTP_OK and self._may_ask_again())
        ):
            self.hand_over()
        elif head.is_stream:
            self._begin_stream(head)
        else:
            try:
                body = _read_body(self._data, head)
            except ValueError:
                self.hand_over()
            else:
                if body is not None:
                    self._finish(head, body)

    @override
    def upstream_lost(self) -> None:
        self._unsent = b""
        self._answer_by_task()

    @override
    def client_lost(self) -> None:
        if self._body is not None:  # it is recorded all the same
            return
        self._unsent = b""
        asked = self._asked
        asked.due.forget(self)
        asked.connection.abort()
        tap = asked.tap
        tap.upstream_s += time.perf_counter() - asked.asked_at
        tap.end(*DISCONNECTED)
        asked.slot.release(BreakerVerdict.NONE)

    @override
    def hand_over(self) -> None:
        if self._unsent or self._body is not None:
            self._batch.flush()
        if self._body is None:
            self._answer_by_task()

    def _answer_by_task(self) -> None:
        asked = self._asked
        asked.due.forget(self)
        request, answer = asked.request(), asked.connection.parse(self._data)
        forwarder = ResumedForwarder(asked, request, answer)
        resume = partial(forward_by, forwarder, asked.gateway, request, asked.tap)
        asked.answer_by_task(request, resume, closing=answer)

    @override
    def on_due(self) -> None:
        self.hand_over()

    # -- the end of a turn -------------------------------------------------------------------------------------------

    @override
    def ask(self) -> None:
        unsent, self._unsent = self._unsent, b""
        if unsent:
            self._asked.connection.send(unsent)

    @override
    def record(self) -> bool:
        asked, head, body = self._asked, self._head, self._body
        assert head is not None
        assert body is not None
        try:
            if not record(asked, head.status, body, self._arrived):
                self._tap_answer(head.status, body)
        except Exception as error:  # noqa: BLE001 -- the ordinary way logs it and answers
            asked.fail(error)
            return False
        return True

    @override
    def answer(self, own: bytes) -> None:
        asked, head, body = self._asked, self._head, self._body
        assert head is not None
        assert body is not None
        first, last = _OK_LINE, b""
        if head.status != _HTTP_OK:
            first, last = status_line(head.status).encode(), b"" if _SHOULD_RETRY in head.fields else _NO_RETRY
        naming = naming_lines(asked.id, asked.request_id, asked.chosen.deployment.name, 1)
        asked.client.answer(
            b"%b%b%b%b%b\r\ncontent-length: %d\r\n\r\n%b" % (first, head.fields, naming, last, own, len(body), body)
        )

    # -- the end -----------------------------------------------------------------------------------------------------

    def _begin_stream(self, head: AnswerHead) -> None:
        """Have a stream relayed as soon as its first bytes have come."""
        if not self._asked.envelope.stream or head.length >= 0:
            self.hand_over()
            return
        try:
            has_begun = begins(self._data, head.body_at)
        except ValueError:
            self.hand_over()
            return
        if has_begun:
            self._asked.due.forget(self)
            StreamExchange(self._asked, head.seconds).begin(head, self._data)

    def _finish(self, head: AnswerHead, body: bytes) -> None:
        """End the exchange with the turn; its connection may serve another one before."""
        self._body, self._arrived = body, time.perf_counter()
        self._asked.due.forget(self)
        self._asked.connection.rest(head.seconds)
        self._batch.end(self)

    def _tap_answer(self, status: int, body: bytes) -> None:
        """Have the tap record an exchange."""
        asked, tap = self._asked, self._asked.tap
        tap.upstream_s += self._arrived - asked.asked_at
        tap.status = status
        tap.body(body)
        if status == _HTTP_OK:
            tap.end(_COMPLETE, _HTTP_OK)
            settle(asked.slot, tap, asked.gateway.recorder)
        else:  # the request's fault, not the deployment's
            asked.slot.release(_OK)
            tap.end(*ended(status))

    def _may_ask_again(self) -> bool:
        """Return whether a deployment may be asked again after a refusal, also without what the gateway has added."""
        route = self._asked.plan.route
        is_stream = bool(self._asked.envelope.stream)
        return is_stream or bool(route.context_window_fallbacks or route.content_filter_fallbacks)


def _read_body(data: bytes, head: AnswerHead) -> bytes | None:
    """Return the body of an answer; None if it is incomplete.

    Raises
    ------
    ValueError
        It is not as its head says, or not usual.
    """
    if head.length < 0:
        return read_chunks(data, head.body_at)
    missing = head.body_at + head.length - len(data)
    if missing < 0:
        raise ValueError("there is more than the length says")
    return None if missing else data[head.body_at :]
