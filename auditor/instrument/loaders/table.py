"""Read the rows of a file: CSV with a header, JSON lines, or one JSON document of StereoSet, each gzipped or not.

The first line shows which of them it is. Rows come with their place for messages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from auditor.documents.input_files import BOM, LARGEST_DOCUMENT, csv_records, opened, read_document
from auditor.documents.jsonl import BadRow, Record, Rows, parse
from auditor.errors import InputError

#: Where a row is: the file and its line, or the way to it in a document.
Place = str

_SPLITS: Final = ("intrasentence", "intersentence")


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """The columns that the header or the first row has, and all rows."""

    columns: frozenset[str]
    rows: Iterator[tuple[Place, Record]]


def read_table(path: Path) -> Table:
    """Open a file. Rows are read when they are asked for, and raise as this does.

    Raises
    ------
    InputError
        It cannot be read, with the line where there is one, or holds no rows.
    UsageError
        There is no such file.
    """
    with opened(path) as (_, plain):
        start = plain.readline(LARGEST_DOCUMENT).removeprefix(BOM).lstrip()
    if not start.startswith((b"{", b"[")):
        rows = _csv_rows(path)
    elif _is_row(start):
        rows = ((f"{path}:{line}", row) for line, row in Rows(path).read(dict))
    else:
        rows = _document_rows(path)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: holds no rows")
    return Table(columns=frozenset(first[1]), rows=chain((first,), rows))


def _is_row(start: bytes) -> bool:
    """Whether the first line is a row by itself; a document that is all on one line is none."""
    try:
        return not isinstance(parse(start).get("data"), dict)
    except BadRow:
        return False


def _csv_rows(path: Path) -> Iterator[tuple[Place, Record]]:
    return ((f"{path}:{line}", dict(row)) for line, row in csv_records(path))


def _document_rows(path: Path) -> Iterator[tuple[Place, Record]]:
    """Return StereoSet's examples; any other document is one row, of whatever it is."""
    try:
        document = parse(read_document(path))
    except BadRow as bad:
        raise InputError(f"{path}:1: neither this line nor the whole file can be read: {bad}") from bad
    data = document.get("data")
    splits = {name: data.get(name) for name in _SPLITS} if isinstance(data, dict) else {}
    if not any(splits.values()):
        yield f"{path}:1", document
    for split, rows in splits.items():
        for index, row in enumerate(rows if isinstance(rows, list) else ()):
            place = f"{path}: data.{split}[{index}]"
            if not isinstance(row, dict):
                raise InputError(f"{place}: is not a JSON object")
            yield place, row
