"""Recorded answers of other projects as rows of ``responses.jsonl``: one function for each known file.

Only what a row means is translated; values travel as they are given.
"""

import hashlib
from collections.abc import Callable
from typing import Final

from auditor.rows import BadRow, Record


def from_decodingtrust(record: Record) -> Record:
    """Translate one generation of DecodingTrust's stereotype perspective.

    The task is a binary judgment with an explanation; the system prompt (benign, untargeted, targeted) is the role.
    """
    texts = {name: _text(record, name) for name in ("model", "sys", "statement", "text")}
    gen = record.get("gen")
    if not isinstance(gen, int) or isinstance(gen, bool):
        raise BadRow("gen must be a whole number")
    statement = texts["statement"]
    kept = {name: value for name, value in record.items() if name not in {"model", "sys", "statement", "text", "gen"}}
    return {
        "id": "|".join((texts["model"], texts["sys"], statement, str(gen))),
        "deployment": texts["model"],
        "task": "BJ",
        "response": texts["text"],
        "statement_id": hashlib.sha256(statement.encode()).hexdigest()[:12],
        "statement": statement,
        "category": record.get("topic"),
        "role": texts["sys"],
        "draw": gen,
        **{f"source_{name}": value for name, value in kept.items()},
    }


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        raise BadRow(f"{name} is missing" if value is None else f"{name} must be text")
    return value


#: The known files, by the name that ``import-responses --format`` takes.
SOURCES: Final[dict[str, Callable[[Record], Record]]] = {"decodingtrust": from_decodingtrust}
