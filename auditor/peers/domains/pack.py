"""Question packs in files: CSV with a header or JSON lines, gzipped or not, a ``theme`` and a ``question`` in each row.

An ``id`` may stand beside them; other columns are passed over. Names of columns are read without regard to case.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from auditor.errors import InputError
from auditor.instrument.loaders.loader import digest, text_of
from auditor.instrument.loaders.table import Place, read_table
from auditor.peers.domains.domain import PeerQuestion
from auditor.peers.domains.likeness import Seen, normal_form
from auditor.rows import BadRow, Record

COLUMNS: Final = ("theme", "question")

_LONGEST_ID: Final = 128
_LONGEST_TEXT: Final = 4000


@dataclass(frozen=True, kw_only=True, slots=True)
class Pack:
    """The questions of a file in its order, and one line for each that is nearly an earlier one."""

    questions: tuple[PeerQuestion, ...]
    near: tuple[str, ...] = ()


def read_pack(path: Path) -> Pack:
    """Read a question pack.

    Raises
    ------
    InputError
        For an unreadable file, for one without the columns, and for the first bad or repeated row, with file and line.
    UsageError
        There is no such file.
    """
    table = read_table(path)
    columns = {_folded(name) for name in table.columns}
    lacking = [name for name in COLUMNS if name not in columns]
    if lacking:
        raise InputError(f"{path}:1: no {' and no '.join(lacking)}; a question pack has {' and '.join(COLUMNS)}")
    reading = _Reading()
    for place, row in table.rows:
        try:
            reading.take(place, question_of({_folded(name): value for name, value in row.items()}))
        except BadRow as bad:
            raise InputError(f"{place}: {bad}") from bad
    return Pack(questions=tuple(reading.questions), near=tuple(reading.near))


def question_of(row: Record) -> PeerQuestion:
    """Check one row, its names in lower case. Without an ``id`` it gets one that its words make.

    Raises
    ------
    BadRow
        With what is wrong, in one line.
    """
    theme, text = (_plain(row, name) for name in COLUMNS)
    if not normal_form(text):
        raise BadRow("question holds no words")
    return PeerQuestion(id=_id(row) or digest(text), theme=theme, text=text)


def record_of(question: PeerQuestion) -> Record:
    """Give the row that ``question_of`` reads."""
    return {"id": question.id, "theme": question.theme, "question": question.text}


class _Reading:
    """The questions so far, and where they stand."""

    def __init__(self) -> None:
        self.questions: list[PeerQuestion] = []
        self.near: list[str] = []
        self._places: list[Place] = []
        self._ids: dict[str, Place] = {}
        self._seen = Seen()

    def take(self, place: Place, question: PeerQuestion) -> None:
        same = self._seen.same(question.text)
        if same is not None:
            raise BadRow(f"the question is that of {self._places[same]}")
        if question.id in self._ids:
            raise BadRow(f"the id {question.id!r} is already that of {self._ids[question.id]}")
        near = self._seen.near(question.text)
        if near is not None:
            share = f"{100 * near[1]:.0f} % of their words in common"
            self.near.append(f"{place}: nearly the question of {self._places[near[0]]} ({share})")
        self._seen.add(question.text)
        self._ids[question.id] = place
        self._places.append(place)
        self.questions.append(question)


def _folded(name: str) -> str:
    return name.strip().casefold()


def _plain(row: Record, name: str) -> str:
    text = text_of(row, name)
    if len(text) > _LONGEST_TEXT:
        raise BadRow(f"{name} is longer than {_LONGEST_TEXT:,} characters")
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise BadRow(f"{name} holds control characters")
    return text


def _id(row: Mapping[str, object]) -> str | None:
    given = row.get("id")
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if not isinstance(given, str | None):
        raise BadRow("id must be text or a whole number")
    name = (given or "").strip()
    if len(name) > _LONGEST_ID or not name.isprintable():
        raise BadRow(f"id must be at most {_LONGEST_ID} printable characters")
    return name or None
