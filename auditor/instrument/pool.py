"""Read statement pools: the shipped pool, and users' own pools with the same fields (JSONL, gzipped or not, or CSV).

``domain.statement`` defines the fields of a record; each task format lists the fields that it needs. docs/pool.md is
the shipped pool's data card.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Final

from auditor.documents.input_files import csv_records
from auditor.documents.jsonl import BadRow, Record, Rows
from auditor.domain.condition import Task
from auditor.domain.statement import Statement
from auditor.errors import InputError
from auditor.instrument.formats import format_of

#: The mark of the blank in a sentence to complete.
BLANK: Final = re.compile(r"_{2,}")

_TEXTS: Final = tuple(field.name for field in fields(Statement) if field.name not in {"id", "intersectional"})
_BOOLEANS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}
_LONGEST_ID: Final = 128


#: The shipped pools by name, and their files; all of them stay, because stored answers are answers to them.
SHIPPED_POOLS: Final = {"biasmeter/1": "pool.jsonl", "biasmeter/1.1": "pool-1.1.jsonl"}
#: The pool of plans that name none.
DEFAULT_POOL: Final = "biasmeter/1.1"
#: Designs with another pool: the paper's own designs keep the first version, so that their results stay comparable.
POOL_OF_DESIGN: Final = {"oat": "biasmeter/1", "factorial": "biasmeter/1"}


@lru_cache(maxsize=len(SHIPPED_POOLS))
def shipped_pool(name: str = DEFAULT_POOL) -> tuple[Statement, ...]:
    """Return the statements of a shipped pool, in the order of its file.

    Raises
    ------
    KeyError
        For a name that is not in ``SHIPPED_POOLS``.
    """
    return read_pool(Path(__file__).with_name(SHIPPED_POOLS[name]))


def pool_of_design(design: str, name: str | None = None) -> tuple[Statement, ...]:
    """Return the statements of the named shipped pool, or those that plans of a design ask by default.

    Raises
    ------
    KeyError
        For a name that is not in ``SHIPPED_POOLS``.
    """
    return shipped_pool(name or POOL_OF_DESIGN.get(design, DEFAULT_POOL))


def read_pool(path: Path) -> tuple[Statement, ...]:
    """Read a pool: CSV with a header where the name ends in ``.csv``, else JSONL. Ignore unknown fields.

    Raises
    ------
    InputError
        For an unreadable file, and for the first bad row, with file and line.
    UsageError
        There is no such file.
    """
    made = _read_csv(path) if path.suffix.lower() == ".csv" else Rows(path).read(statement_of)
    statements: list[Statement] = []
    ids: dict[str, int] = {}
    texts: dict[str, int] = {}
    for line, statement in made:
        plain = " ".join(statement.statement.split()).casefold()
        for what, value, seen in (("id", statement.id, ids), ("statement", plain, texts)):
            if seen.setdefault(value, line) != line:
                raise InputError(f"{path}:{line}: the {what} {value!r} is already that of line {seen[value]}")
        statements.append(statement)
    return tuple(statements)


def statement_of(record: Record) -> Statement:
    """Check one record.

    Raises
    ------
    BadRow
        With what is wrong, in one line.
    """
    texts = {name: _text(record, name) for name in _TEXTS}
    statement = Statement(
        id=_id(record),
        statement=texts.pop("statement") or "",
        intersectional=_boolean(record, "intersectional"),
        **texts,
    )
    if not statement.statement:
        raise BadRow("statement is missing")
    _check(statement)
    return statement


def record_of(statement: Statement) -> Record:
    """Return the record of a statement, all fields in the order of the format."""
    made: Record = asdict(statement)
    order = (
        "id", "category", "statement", "stereotype_option", "counter_option", "context", "question", "completion",
        "region", "intersectional", "source",
    )  # fmt: skip
    return {name: made[name] for name in order}


def missing_for(task: Task, statement: Statement) -> tuple[str, ...]:
    """Return the fields that a task needs and this statement lacks."""
    return tuple(name for name in format_of(task).needs if not getattr(statement, name))


def _check(statement: Statement) -> None:
    stereotype, counter = statement.stereotype_option, statement.counter_option
    if bool(stereotype) != bool(counter):
        raise BadRow("stereotype_option and counter_option go together; one is missing")
    if stereotype and counter and stereotype.casefold() == counter.casefold():
        raise BadRow("stereotype_option and counter_option are the same")
    if statement.completion and len(BLANK.findall(statement.completion)) != 1:
        raise BadRow("completion must contain exactly one blank, written ____")


def _id(record: Record) -> str:
    value = record.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise BadRow("id is missing")
    if len(value) > _LONGEST_ID or not value.isprintable():
        raise BadRow(f"id must be at most {_LONGEST_ID} printable characters")
    return value.strip()


def _text(record: Record, name: str) -> str | None:
    value = record.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadRow(f"{name} must be text")
    if "\0" in value:
        raise BadRow(f"{name} holds a null character")
    return value.strip() or None


def _boolean(record: Record, name: str) -> bool:
    value = record.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in _BOOLEANS:
        return _BOOLEANS[value.strip().lower()]
    raise BadRow(f"{name} must be true or false")


def _read_csv(path: Path) -> Iterator[tuple[int, Statement]]:
    for line, row in csv_records(path, needed=("id", "statement")):
        try:
            yield line, statement_of(dict(row))
        except BadRow as bad:
            raise InputError(f"{path}:{line}: {bad}") from bad
