"""Loaders: statements from data sets in their public formats, which are recognised by their columns.

A ``Loader`` makes the project's record of a row, which then passes the checks of ``pool``. What a data set does not
have stays empty, which limits the tasks a statement can be asked in. docs/loaders.md has the table of formats and
fields.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from auditor.documents.jsonl import BadRow, Record
from auditor.domain.condition import Task
from auditor.domain.statement import Statement
from auditor.errors import InputError
from auditor.instrument.loaders.bbq import BBQ
from auditor.instrument.loaders.loader import LeftOut, Loader
from auditor.instrument.loaders.pairs import CLEAR_BIAS, CROWS_PAIRS, STEREOSET
from auditor.instrument.loaders.table import Place, read_table
from auditor.instrument.pool import SHIPPED_POOLS, missing_for, read_pool, shipped_pool

#: The project's own records, which ``pool`` reads.
OWN: Final = "own"

_LOADERS: Final = {loader.name: loader for loader in (CROWS_PAIRS, STEREOSET, BBQ, CLEAR_BIAS)}
#: Every format, with the columns it is known by.
FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    OWN: ("id", "statement"),
    **{name: loader.columns for name, loader in _LOADERS.items()},
}
_REPEATED: Final = "the statement is that of an earlier row"


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """The statements of a file, in its order, and how many of its rows are left out for which reasons."""

    format: str
    statements: tuple[Statement, ...]
    left_out: Mapping[str, int]

    def for_tasks(self, tasks: Collection[Task]) -> "Loaded":
        """Leave out the statements that cannot be asked in each of the tasks.

        Of the project's own records none is left out: what is missing there was forgotten, and a plan refuses it.
        """
        if self.format == OWN:
            return self
        left_out = dict(self.left_out)
        kept = self.statements
        for task in tasks:
            able = tuple(statement for statement in kept if not missing_for(task, statement))
            if len(able) < len(kept):
                left_out[f"cannot be asked in {task}"] = len(kept) - len(able)
            kept = able
        return replace(self, statements=kept, left_out=left_out)


def load(path: Path) -> Loaded:
    """Read the statements of a file in any of the formats, seen from its columns, or a shipped pool by its name.

    Raises
    ------
    InputError
        For a file of no known format, for the first bad row (with its place), for one that gives no statement.
    UsageError
        There is no such file.
    """
    if str(path) in SHIPPED_POOLS and not path.exists():
        return Loaded(format=OWN, statements=shipped_pool(str(path)), left_out={})
    table = read_table(path)
    name = next((name for name, columns in FORMATS.items() if table.columns.issuperset(columns)), None)
    if name is None:
        known = "; ".join(f"{name} ({', '.join(columns)})" for name, columns in FORMATS.items())
        raise InputError(f"{path}: is of no known format, by the columns of its first row; known are {known}")
    if name == OWN:
        return Loaded(format=OWN, statements=read_pool(path), left_out={})
    loaded = _load(_LOADERS[name], table.rows)
    if not loaded.statements:
        why = "; ".join(f"{reason} ({count})" for reason, count in loaded.left_out.items())
        raise InputError(f"{path}: gives no statement: {why}")
    return loaded


def _load(loader: Loader, rows: Iterable[tuple[Place, Record]]) -> Loaded:
    statements: list[Statement] = []
    left_out: Counter[str] = Counter()
    ids: dict[str, Place] = {}
    texts: set[str] = set()
    for place, row in rows:
        try:
            made = loader.make(row)
        except LeftOut as reason:
            left_out[str(reason)] += 1
            continue
        except BadRow as bad:
            raise InputError(f"{place}: {bad}") from bad
        plain = " ".join(made.statement.split()).casefold()
        if plain in texts:
            left_out[_REPEATED] += 1
            continue
        if made.id in ids:
            raise InputError(f"{place}: the id {made.id!r} is already that of {ids[made.id]}")
        ids[made.id] = place
        texts.add(plain)
        statements.append(made)
    return Loaded(format=loader.name, statements=tuple(statements), left_out=dict(left_out))
