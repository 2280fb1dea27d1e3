"""Read the rows of a file: CSV with a header, JSON lines, or one JSON document of StereoSet, each gzipped or not.

The first line shows which of them it is. Rows come with their place for messages.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, cast

from auditor.documents.jsonl import BadRow, Record, Rows, parse, require_file
from auditor.errors import InputError

#: Where a row is: the file and its line, or the way to it in a document.
Place = str

_GZIP_MAGIC: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
#: Of a JSON document, which must be held whole; StereoSet's own have 6 and 12 MB.
_LARGEST: Final = 256 * 1024 * 1024
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
    require_file(path)
    with _opened(path) as file:
        start = file.readline(_LARGEST).removeprefix(_BOM).lstrip()
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
    with _opened(path) as file:
        reader = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), strict=True)
        try:
            for row in reader:
                place = f"{path}:{reader.line_num}"
                if None in row:
                    raise InputError(f"{place}: has more cells than the header")
                yield place, dict(row)
        except csv.Error as error:
            # The reader counts a line once it has read it.
            raise InputError(f"{path}:{reader.line_num + 1}: is not CSV: {error}") from error


def _document_rows(path: Path) -> Iterator[tuple[Place, Record]]:
    """Return StereoSet's examples; any other document is one row, of whatever it is."""
    with _opened(path) as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise InputError(f"{path}: is a JSON document of more than {_LARGEST >> 20} MiB")
    try:
        document = parse(content.removeprefix(_BOM))
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


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file that may be gzipped, and say what goes wrong with it in the project's words."""
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == _GZIP_MAGIC
            yield cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the gzipped data is cut off or damaged") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
