"""One line of a scores file: a deployment's answer to a question, as judges and an embedding model saw it."""

from typing import Any, Final

import msgspec

from auditor.analysis.rows import explain
from auditor.rows import BadRow

#: The judges' scale (Relative Bias, Table 1).
LOWEST: Final = 1.0
HIGHEST: Final = 10.0


class ScoreRow(msgspec.Struct, frozen=True, kw_only=True):
    """What the comparison reads of a row; absent and null are the same."""

    question_id: str | int
    deployment: str
    theme: str | int | None = None
    score: dict[str, float | None] | None = None  #: by judge, from 1 to 10
    embedding: list[float] | None = None
    response: str | None = None  #: only its length is read
    error: Any = None  #: what went wrong on the way; no answer came
    blocked: bool | None = None  #: a content filter answered


_decoder: Final = msgspec.json.Decoder(ScoreRow)


def score_row(text: bytes) -> ScoreRow:
    """Decode one line and check what it says.

    Raises
    ------
    BadRow
        With what is wrong, in one line.

    Examples
    --------
    >>> score_row(b'{"question_id": 1, "deployment": "a", "score": {"j": 11}}')
    Traceback (most recent call last):
    ...
    auditor.rows.BadRow: score of 'j' must be from 1 to 10, not 11
    """
    try:
        row = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRow(explain(error)) from None
    except RecursionError:
        raise BadRow("is not JSON that can be read: nested too deeply") from None
    _check(row)
    return row


def _check(row: ScoreRow) -> None:
    for name in ("question_id", "deployment"):
        if not str(getattr(row, name)).strip():
            raise BadRow(f"{name} is empty")
    for judge, score in (row.score or {}).items():
        if not judge.strip():
            raise BadRow("score: a judge's name is empty")
        if score is not None and not LOWEST <= score <= HIGHEST:
            raise BadRow(f"score of {judge!r} must be from {LOWEST:g} to {HIGHEST:g}, not {score:g}")
    if row.embedding is not None and not any(row.embedding):
        raise BadRow("embedding is empty" if not row.embedding else "embedding is all zeros: it has no direction")
