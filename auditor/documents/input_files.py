"""Open files of users: gzipped or not, and of bounded size; an error is one line that names the file.

Rows are read one at a time, so their number is not bounded; what is held in memory as a whole is. ``jsonl`` reads rows
of JSON, ``csv_rows`` those of CSV.
"""

import csv
import gzip
import io
import os
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from io import BufferedReader
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import msgspec
from typing_extensions import override  # in typing from 3.12 on

from auditor.documents.csv_cells import unescape_formula
from auditor.errors import InputError, UsageError

BOM: Final = b"\xef\xbb\xbf"
#: Bytes of a document that is held in memory as a whole, unpacked.
LARGEST_DOCUMENT: Final = 256 << 20
#: Bytes of a line, and of a field of CSV: a field may hold a whole conversation.
LONGEST_LINE: Final = 64 << 20
#: What reading of gzipped data raises where the data is damaged.
DAMAGED: Final = (EOFError, zlib.error, gzip.BadGzipFile)

_GZIP_MAGIC: Final = b"\x1f\x8b"
#: Rows of JSON are packed to a tenth, and the most repetitive ones to a hundredth; what unpacks to more was made to
#: fill memory. Small data may.
_MOST_TIMES: Final = 250
_SMALL: Final = 16 << 20
_BUFFER: Final = 128 << 10
_PIECE: Final = 1 << 20


def require_file(path: Path) -> None:
    """Refuse a path that names no file.

    Raises
    ------
    UsageError
        For a missing file or a directory.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    if path.is_dir():
        raise UsageError(f"{path}: is a directory")


def check_unpacked(unpacked: int, packed: int, place: str) -> None:
    """Refuse data that unpacks to far more than it takes packed; both in bytes.

    Raises
    ------
    InputError
        It unpacks to more than 16 MiB and more than 250 times its size.
    """
    if unpacked > max(_SMALL, _MOST_TIMES * packed):
        raise InputError(f"{place}: unpacks to more than {_MOST_TIMES} times its size")


class _Unpacked(io.RawIOBase):
    """What a gzipped file unpacks to, until it is too much."""

    def __init__(self, path: Path, packed: BufferedReader) -> None:
        self._path = path
        self._size = os.fstat(packed.fileno()).st_size
        self._plain = gzip.GzipFile(fileobj=packed)
        self._unpacked = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any, /) -> int:
        count = self._plain.readinto(buffer)
        self._unpacked += count
        check_unpacked(self._unpacked, self._size, str(self._path))
        return count


@contextmanager
def opened(path: Path) -> Iterator[tuple[BufferedReader, BufferedReader]]:
    """Open a file: as it is on disk, and as it is unpacked; both are the same where it is not gzipped.

    Raises
    ------
    InputError
        Also inside the block, where the file cannot be read or is not what it seems.
    UsageError
        There is no such file.
    """
    require_file(path)
    try:
        with path.open("rb") as raw:
            is_packed = raw.peek(2)[:2] == _GZIP_MAGIC
            if path.suffix == ".gz" and not is_packed:
                raise InputError(f"{path}: is named .gz but is not gzipped")
            yield raw, BufferedReader(_Unpacked(path, raw), _BUFFER) if is_packed else raw
    except DAMAGED as error:
        raise InputError(f"{path}: the gzipped data is cut off or damaged") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text") from error
    except PermissionError as error:
        raise InputError(f"{path}: may not be read") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_document(path: Path, most: int = LARGEST_DOCUMENT) -> bytes:
    """Read a whole file, of at most ``most`` bytes when it is unpacked; errors are those of ``opened``."""
    with opened(path) as (_, plain):
        return read_all(path, plain, most)


def read_all(path: Path, plain: BufferedReader, most: int = LARGEST_DOCUMENT) -> bytes:
    """Read the rest of an opened file, of at most ``most`` bytes.

    Raises
    ------
    InputError
        It is larger.
    """
    content = bytearray()
    # A piece at a time: a large number would be allocated whatever the file holds.
    while len(content) <= most and (piece := plain.read(_PIECE)):
        content += piece
    if len(content) > most:
        raise InputError(f"{path}: is larger than {most >> 20} MiB, which is too large for such a file")
    return bytes(content.removeprefix(BOM))


def parse_document(path: Path) -> Any:
    """Read a whole file of JSON; errors are those of ``opened``."""
    content = read_document(path)
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {' '.join(str(error).split())}") from None


def csv_rows(path: Path, plain: BufferedReader) -> Generator[tuple[int, list[str]]]:
    """Yield the line on which each row of CSV begins, and its values; the first row is the header.

    Raises
    ------
    InputError
        It is not CSV, or a line is too long.
    """
    csv.field_size_limit(LONGEST_LINE)
    text = io.TextIOWrapper(plain, encoding="utf-8-sig", newline="")
    reader = csv.reader(_short_lines(path, text), strict=True)
    begin = 1
    try:
        for values in reader:
            if values:
                yield begin, values
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}:{max(1, reader.line_num)}: is not CSV: {error}") from None
    finally:
        text.detach()  # the file is not this generator's to close


def _short_lines(path: Path, text: io.TextIOWrapper) -> Iterator[str]:
    number = 0
    while line := text.readline(LONGEST_LINE):
        number += 1
        if len(line) >= LONGEST_LINE:
            raise InputError(f"{path}:{number}: the line is longer than {LONGEST_LINE >> 20} MiB; is this CSV?")
        yield line


def csv_records(path: Path, needed: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Yield the line and the values by column of each row of a CSV file; a missing cell is None, a formula unescaped.

    Parameters
    ----------
    needed
        Columns that the header must name.

    Raises
    ------
    InputError
        The file cannot be read or holds no rows, its header lacks a column, or a row has more cells than the header.
    UsageError
        There is no such file.
    """
    with opened(path) as (_, plain), closing(csv_rows(path, plain)) as rows:
        _, header = next(rows, (1, []))
        for missing in sorted(set(needed) - set(header)):
            raise InputError(f"{path}:1: the header names no column {missing!r}")
        is_empty = True
        for line, values in rows:
            if len(values) > len(header):
                raise InputError(f"{path}:{line}: has more cells than the header")
            is_empty = False
            cells = map(unescape_formula, values)
            yield line, dict(zip_longest(header, cells))
    if is_empty:
        raise InputError(f"{path}: holds no rows")
