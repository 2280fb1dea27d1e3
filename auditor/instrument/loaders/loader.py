"""The loader type, and what several loaders need: texts and ids."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from auditor.documents.jsonl import BadRow, Record
from auditor.domain.statement import Statement


class LeftOut(Exception):  # noqa: N818 -- said of the row: nothing is wrong with it
    """The row is as its format has it and yet no statement; the message says why, in the same words for all such."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Loader:
    """One format.

    Parameters
    ----------
    name
        Name of the format in messages; the ids of its statements begin with it.
    columns
        Fields of every row, by which the format is known.
    make
        Makes the statement of a row; raises ``BadRow``, or ``LeftOut`` for a row that is none.
    """

    name: str
    columns: tuple[str, ...]
    make: Callable[[Record], Statement]


def text_of(row: Record, name: str) -> str:
    """Return a field that must be text, its white space as single spaces.

    Raises
    ------
    BadRow
        It is missing, empty, or something else.
    """
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRow(f"{name} must be text")
    text = " ".join((value or "").split())
    if not text:
        raise BadRow(f"{name} is missing")
    return text


def digest(*texts: str) -> str:
    """Make an id of texts, for rows that have none: the same texts, the same id."""
    return blake2b("\x1f".join(texts).encode(), digest_size=6).hexdigest()
