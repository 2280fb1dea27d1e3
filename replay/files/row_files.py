"""Rows of a file that is JSONL, CSV or one JSON document, gzipped or not, each with the line on which it begins.

JSONL and CSV are read row by row. A document (a list of objects, or an object whose ``data`` is one, as HTTP interfaces
answer) is read whole.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import BinaryIO, Final, TypeVar, cast

import msgspec

from auditor.errors import InputError
from auditor.rows import BadRow, Record, Rows, parse, require_file

_Made = TypeVar("_Made")
#: A row's first line, and how to read it.
_Row = tuple[int, Callable[[], Record]]

_GZIP_MAGIC: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
#: A field of CSV may hold a whole conversation.
_LONGEST_FIELD: Final = 64 << 20


class _Page(msgspec.Struct):
    """A document that is an object."""

    data: list[msgspec.Raw]


def read_rows(
    rows: Rows, make: Callable[[Record], _Made], on_bytes: Callable[[int], None]
) -> Iterator[tuple[int, _Made]]:
    """Yield line numbers and what ``make`` makes of each row, whatever kind of file it is.

    Raises
    ------
    InputError
        At the first bad row, unless ``rows`` skips them; for a file that cannot be read, or that holds no rows.
    """
    with _opened(rows) as (raw, plain):
        if rows.path.name.removesuffix(".gz").endswith(".csv"):
            found = _csv_rows(rows, plain)
        elif _is_document(plain):
            found = _document_rows(rows, plain)
        else:
            yield from rows.read(make)
            return
        count = 0
        with closing(found):
            for line, read in found:
                count += 1
                on_bytes(raw.tell())
                try:
                    made = make(read())
                except BadRow as bad:
                    rows.complain(line, str(bad))
                    continue
                yield line, made
    if count == 0:
        raise InputError(f"{rows.path}: holds no rows")
    if rows.skipped == count:
        raise InputError(f"{rows.path}: every row is bad; the first: {rows.complaints[0]}")


@contextmanager
def _opened(rows: Rows) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    require_file(rows.path)
    try:
        with rows.path.open("rb") as raw:
            packed = raw.peek(2)[:2] == _GZIP_MAGIC
            yield raw, cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else raw
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{rows.path}: the gzipped data is cut off or damaged") from None
    except PermissionError:
        raise InputError(f"{rows.path}: may not be read") from None


def _is_document(plain: BinaryIO) -> bool:
    """Tell a document from lines that are one each; the file is at its beginning again afterwards."""
    start = plain.read(4096).removeprefix(_BOM).lstrip()
    plain.seek(0)
    if not start.startswith(b"{"):
        return start.startswith(b"[")
    # An object of many lines, or a whole page on the first.
    return start[1:].lstrip(b" \t\r").startswith(b"\n") or start[1:].lstrip().startswith(b'"data"')


def _document_rows(rows: Rows, plain: BinaryIO) -> Generator[_Row]:
    text = plain.read()
    body = text.removeprefix(_BOM)
    try:
        found = msgspec.json.decode(body, type=list[msgspec.Raw] | _Page)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{rows.path}: is neither a JSON list of rows nor an object with data: {reason}") from None
    line, place = 1, 0
    for part in found.data if isinstance(found, _Page) else found:
        row = bytes(part)
        start = body.index(row, place)
        line, place = line + body.count(b"\n", place, start), start
        yield line, lambda row=row: parse(row)  # type: ignore[misc]
        line, place = line + row.count(b"\n"), start + len(row)


def _csv_rows(rows: Rows, plain: BinaryIO) -> Generator[_Row]:
    csv.field_size_limit(_LONGEST_FIELD)
    with io.TextIOWrapper(plain, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            header = next(reader, [])
            line = reader.line_num + 1
            for values in reader:
                if values:
                    yield line, lambda values=values: _named(header, values)  # type: ignore[misc]
                line = reader.line_num + 1
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{rows.path}:{reader.line_num}: is not CSV: {error}") from None


def _named(header: list[str], values: list[str]) -> Record:
    if len(values) != len(header):
        raise BadRow(f"has {len(values)} fields, and the header {len(header)}")
    # PostgreSQL writes NULL as nothing.
    return {name: value for name, value in zip(header, values, strict=True) if value}
