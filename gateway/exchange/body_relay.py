"""The relay of a long answer that is no stream. Its last piece waits until the record is in the spool."""

from typing_extensions import override

from auditor.domain.exchange import Outcome
from gateway.exchange.exchange import ActiveExchange
from gateway.exchange.open_relay import OpenRelay
from gateway.routing.failures import error_type_of
from gateway.upstreams.answer_heads import AnswerHead
from gateway.upstreams.connection import UpstreamConnection


class BodyRelay(OpenRelay):
    """The relay of one body."""

    def __init__(self, exchange: ActiveExchange, connection: UpstreamConnection, head: AnswerHead) -> None:
        super().__init__(exchange, connection, head)
        self._piece = b""  # the one that may be the last

    @override
    def _fields(self) -> bytes:
        return self._head.fields + self._exchange.naming_lines()

    @override
    def _due(self) -> float:
        return self._exchange.end_due

    @override
    def _take(self, piece: bytes, chunk: bytes) -> None:
        if self._piece:
            self._exchange.body_passed(self._piece)
            self._write(self._piece)
        self._piece = piece

    @override
    def _note_rest(self) -> None:
        pass

    @override
    def _conclude(self) -> None:
        exchange, error = self._exchange, self._error
        if error is None:
            exchange.body_passed(self._piece)
            code = error_type_of(self._head.status)
            self._record(Outcome.COMPLETE if code is None else Outcome.FAILED, code, self._piece)
        else:
            exchange.end(Outcome.CUT, self._head.status, error.code)
            exchange.parts.recorder.write_held()
            self._cut()
