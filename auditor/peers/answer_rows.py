"""One line of an answers file: what a deployment gave to a question, before anyone has scored it."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from auditor.analysis.rows import explain
from auditor.peers.scoring import PeerAnswer
from auditor.rows import BadRow, Record


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that are read; absent and null are the same."""

    question_id: str | int
    deployment: str
    question: str | None = None
    theme: str | int | None = None
    response: str | None = None
    blocked: bool | None = None
    error: Any = None


def answer_reader(questions: Mapping[str, str]) -> Callable[[Record], PeerAnswer]:
    """Make a reader of rows; a row without its question takes it from ``questions``, by id.

    Examples
    --------
    >>> read = answer_reader({"q1": "Who owns it?"})
    >>> read({"question_id": "q1", "deployment": "a", "response": "Nobody knows."}).question
    'Who owns it?'
    """
    seen: set[tuple[str, str]] = set()

    def read(record: Record) -> PeerAnswer:
        row = _convert(record)
        key = (str(row.question_id), row.deployment)
        if key in seen:
            raise BadRow(f"a second answer of {row.deployment!r} to question {row.question_id!r}")
        seen.add(key)
        question = row.question or questions.get(key[0])
        if question is None:
            raise BadRow("question is absent, and the domain has none of this question_id")
        return PeerAnswer(
            question_id=row.question_id,
            deployment=row.deployment,
            question=question,
            theme=row.theme,
            response=row.response,
            blocked=bool(row.blocked),
            error=row.error,
            fields=record,
        )

    return read


def _convert(record: Record) -> _Row:
    try:
        row = msgspec.convert(record, _Row)
    except msgspec.ValidationError as error:
        raise BadRow(explain(error)) from None
    for name in ("question_id", "deployment"):
        if not str(getattr(row, name)).strip():
            raise BadRow(f"{name} is empty")
    if row.response is None and not row.blocked and not row.error:
        raise BadRow("has no response, and neither a block nor an error")
    return row
