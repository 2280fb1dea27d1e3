"""Read the scores that answers to clients contain."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.coding.exchanges import stored_text
from auditor.coding.paths import Path, as_text, read_json
from auditor.store.codings import read_again

#: Answers that are read at once.
_CHUNK: Final = 500


async def with_scores(
    connection: AsyncConnection, rows: Sequence[Mapping[str, Any]], path: Path
) -> list[dict[str, Any]]:
    """Add to each row the number at a path of the JSON of its answer, as ``score``; none where there is no number.

    Parameters
    ----------
    rows
        Each with the id of an exchange, ``exchange``.
    path
        Path of the score.
    """
    scores: dict[Any, float] = {}
    for start in range(0, len(rows), _CHUNK):
        ids = [row["exchange"] for row in rows[start : start + _CHUNK]]
        for stored in await read_again(connection, ids):
            score = _number(as_text(path.follow(read_json(stored_text(stored) or ""))))
            if score is not None:
                scores[stored.facts["id"]] = score
    return [{**row, "score": scores.get(row["exchange"])} for row in rows]


def _number(text: str | None) -> float | None:
    try:
        number = None if text is None else float(text)
    except ValueError:
        return None
    return number if number is None or isfinite(number) else None
