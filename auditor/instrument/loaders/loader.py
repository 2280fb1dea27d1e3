"""The loader type, and helpers of several loaders: texts, ids, and a pair of sentences as one with a blank."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from auditor.documents.jsonl import BadRow, Record
from auditor.domain.statement import Statement

#: How a blank is written.
GAP: Final = "____"

_PIECES: Final = re.compile(r"[\w'\N{RIGHT SINGLE QUOTATION MARK}-]+|[^\w'\N{RIGHT SINGLE QUOTATION MARK}-]+")


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


class OptionPair(NamedTuple):
    """A pair of sentences as one sentence with a blank, and what fills it in each."""

    completion: str
    first: str
    second: str


def choice(first: str, second: str) -> OptionPair | None:
    """Find the one place where two sentences differ; none where they differ in more than one.

    Examples
    --------
    >>> choice("My aunt is poor.", "My aunt is very rich.")
    OptionPair(completion='My aunt is ____.', first='poor', second='very rich')
    >>> choice("He washed his car.", "She washed her car.") is None
    True
    """
    first_pieces, second_pieces = _PIECES.findall(first), _PIECES.findall(second)
    start = _shared(first_pieces, second_pieces)
    end = _shared(first_pieces[start:][::-1], second_pieces[start:][::-1])
    spans = ["".join(pieces[start : len(pieces) - end]) for pieces in (first_pieces, second_pieces)]
    words = [_words(span) for span in spans]
    # A word that both share lies between two places; an underscore would lengthen the blank.
    if not all(words) or words[0] & words[1] or any(span != span.strip() for span in spans) or "_" in first:
        return None
    return OptionPair("".join(first_pieces[:start]) + GAP + "".join(first_pieces[len(first_pieces) - end :]), *spans)


def _shared(first: list[str], second: list[str]) -> int:
    """Count the pieces that two lists begin with alike."""
    pairs = zip(first, second, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(first), len(second)))


def _words(text: str) -> set[str]:
    return {piece for piece in _PIECES.findall(text.casefold()) if any(character.isalnum() for character in piece)}


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
