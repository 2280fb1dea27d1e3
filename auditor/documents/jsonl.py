"""Read and write JSONL, gzipped or not; errors name the file and the line, and output is complete or absent.

Every command that reads or writes rows uses it. Callers know what a row means.
"""

import gzip
import os
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar, cast

import msgspec

from auditor.documents.input_files import BOM, DAMAGED, LONGEST_LINE, opened
from auditor.errors import InputError, UsageError

Record = dict[str, object]
_Made = TypeVar("_Made")

#: Complaints that are kept: enough to see what is wrong with a file. The count is always complete.
_COMPLAINTS_KEPT: Final = 5
#: Lines between two reports of progress.
_EVERY: Final = 200

_decoder: Final = msgspec.json.Decoder()
_encoder: Final = msgspec.json.Encoder()


class BadRow(Exception):  # noqa: N818 -- said of the row; becomes an InputError with its place
    """One row holds something that cannot be read; the message says what."""


@dataclass(frozen=True, slots=True)
class Records:
    """Rows that are in memory, for readers that otherwise read a file."""

    records: Iterable[Mapping[str, Any]]


#: What rows are read from: a file, gzipped or not, or memory.
Source = Path | Records


class Rows:
    """The rows of one source. Bad ones raise, or are counted when they are to be skipped."""

    def __init__(
        self, source: Source, *, skip_bad: bool = False, on_bytes: Callable[[int], None] | None = None
    ) -> None:
        self._source = source
        self.name = "the rows" if isinstance(source, Records) else str(source)
        self.skipped = 0
        self.complaints: list[str] = []
        self._skip_bad = skip_bad
        self._on_bytes = on_bytes or (lambda _: None)

    @property
    def path(self) -> Path:
        """The file that the rows are read from; rows in memory have none."""
        assert isinstance(self._source, Path)
        return self._source

    def complain(self, line: int, what: str) -> None:
        """Report a bad row.

        Raises
        ------
        InputError
            Unless bad rows are skipped.
        """
        place = f"row {line}" if isinstance(self._source, Records) else f"{self._source}:{line}"
        message = f"{place}: {what}"
        if not self._skip_bad:
            raise InputError(message)
        self.skipped += 1
        if len(self.complaints) < _COMPLAINTS_KEPT:
            self.complaints.append(message)

    def read(self, make: Callable[[Record], _Made]) -> Iterator[tuple[int, _Made]]:
        """Yield line numbers and what ``make`` makes of each row; raises as ``read_lines`` does."""
        yield from self.read_lines(lambda text: make(parse(text)))

    def read_lines(self, make: Callable[[bytes], _Made]) -> Iterator[tuple[int, _Made]]:
        """Yield line numbers and what ``make`` makes of each line, for readers that decode only what they need.

        Raises
        ------
        InputError
            At the first bad row (unless skipped), for an unreadable file, for one without any row.
        """
        count = 0
        with closing(self._lines()) as lines:
            for number, text in lines:
                if not text.strip():
                    continue
                count += 1
                try:
                    made = make(text)
                except BadRow as bad:
                    self.complain(number, str(bad))
                    continue
                yield number, made
        if count == 0:
            raise InputError(
                "there are no rows" if isinstance(self._source, Records) else f"{self.name}: holds no rows"
            )
        if self.skipped == count:
            raise InputError(f"{self.name}: every row is bad; the first: {self.complaints[0]}")

    def _lines(self) -> Generator[tuple[int, bytes]]:
        """Yield the number and the text of each row."""
        if isinstance(self._source, Records):
            for number, record in enumerate(self._source.records, start=1):
                try:
                    text = _encoder.encode(record)
                except (TypeError, ValueError, OverflowError, RecursionError) as error:
                    raise InputError(f"row {number}: {error}") from None
                yield number, text
            return
        with opened(self._source) as (raw, lines):
            for number, line in _numbered(self._source, lines):
                if number % _EVERY == 0:
                    self._on_bytes(raw.tell())
                yield number, line.removeprefix(BOM) if number == 1 else line
            self._on_bytes(raw.tell())


def _numbered(path: Path, lines: BufferedReader) -> Iterator[tuple[int, bytes]]:
    number = 0
    while True:
        try:
            line = lines.readline(LONGEST_LINE)
        except DAMAGED as error:
            raise InputError(f"{path}:{number + 1}: the gzipped data is cut off or damaged") from error
        except OSError as error:
            raise InputError(f"{path}:{number + 1}: cannot be read: {error.strerror}") from error
        if not line:
            return
        number += 1
        if len(line) >= LONGEST_LINE:
            raise InputError(f"{path}:{number}: the line is longer than {LONGEST_LINE >> 20} MiB; is this JSONL?")
        yield number, line


def parse(text: bytes) -> Record:
    """Parse one line.

    Raises
    ------
    BadRow
        When it is not a JSON object.
    """
    try:
        value = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise BadRow(f"is not JSON: {reason}") from error
    except RecursionError as error:
        raise BadRow("is not JSON that can be read: nested too deeply") from error
    if not isinstance(value, dict):
        raise BadRow("is not a JSON object")
    return value


def require_target(path: Path, *inputs: Path) -> None:
    """Refuse a target that cannot be written, or that is one of the inputs.

    Raises
    ------
    UsageError
        With what is wrong.
    """
    parent = path.parent
    if path.is_dir():
        raise UsageError(f"{path}: is a directory; name a file")
    if not parent.is_dir():
        what = "is not a directory" if parent.exists() else "no such directory"
        raise UsageError(f"{path}: {parent}: {what}")
    if not os.access(parent, os.W_OK):
        raise UsageError(f"{path}: the directory may not be written")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise UsageError(f"{path}: is the input; name another file")


@contextmanager
def writing(path: Path) -> Iterator[Callable[[Record], None]]:
    """Return a function that writes rows. The file appears only when the block ends without an error.

    Gzipped when its name ends in ``.gz``; the same rows give the same bytes.
    """
    rough = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with rough.open("wb") as raw:
            # No file name and no clock in the header.
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else None
            sink = cast("BinaryIO", packed or raw)
            yield lambda record: _write(sink, record)
            if packed is not None:
                packed.close()
        rough.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        rough.unlink(missing_ok=True)


def _write(sink: BinaryIO, record: Record) -> None:
    sink.write(_encoder.encode(record))
    sink.write(b"\n")
