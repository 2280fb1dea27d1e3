"""Write rows to a file of the format that its name says: JSONL (gzipped or not), CSV or Parquet."""

import csv
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from auditor.documents.csv_cells import escape_formula
from auditor.documents.jsonl import Record, writing
from auditor.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

#: Endings of the names of files.
FORMATS: Final = (".jsonl", ".jsonl.gz", ".csv", ".parquet")
#: Rows of a row group of a Parquet file.
_GROUP: Final = 20_000


@contextmanager
def writing_rows(path: Path, columns: Sequence[str], types: Mapping[str, str]) -> Iterator[Callable[[Record], None]]:
    """Return a function that writes rows. The file appears only when the block ends without an error.

    Parameters
    ----------
    path
        Path of the file, with one of the endings in ``FORMATS``.
    columns
        Columns of CSV and Parquet, in order. A value that is a list or an object is JSON in CSV, and text that a
        spreadsheet would execute is escaped there.
    types
        Arrow types of the columns that are not text, for Parquet.

    Raises
    ------
    ModuleNotFoundError
        The file is Parquet, and pyarrow is not installed.
    """
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        with writing(path) as write:
            yield write
        return
    rough = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with _csv(rough, columns) if path.suffix.lower() == ".csv" else _parquet(rough, columns, types) as write:
            yield write
        rough.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        rough.unlink(missing_ok=True)


@contextmanager
def _csv(path: Path, columns: Sequence[str]) -> Iterator[Callable[[Record], None]]:
    with path.open("w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        table = csv.writer(file)
        table.writerow(columns)
        yield lambda record: table.writerow([_cell(record.get(name)) for name in columns])


def _cell(value: object) -> object:
    return escape_formula(json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value)


@contextmanager
def _parquet(path: Path, columns: Sequence[str], types: Mapping[str, str]) -> Iterator[Callable[[Record], None]]:
    import pyarrow as pa  # noqa: PLC0415 -- part of the extra frames
    from pyarrow import parquet  # noqa: PLC0415 -- part of the extra frames

    schema = pa.schema([(name, _type(types.get(name, "string"))) for name in columns])
    waiting: list[Record] = []
    with parquet.ParquetWriter(path, schema) as file:

        def flush() -> None:
            file.write_table(pa.Table.from_pylist(waiting, schema=schema))
            waiting.clear()

        def write(record: Record) -> None:
            waiting.append(record)
            if len(waiting) == _GROUP:
                flush()

        yield write
        if waiting:
            flush()


def _type(name: str) -> "pa.DataType":
    import pyarrow as pa  # noqa: PLC0415 -- part of the extra frames

    if name == "votes":
        return pa.list_(pa.struct([("judge", pa.string()), ("label", pa.string())]))
    kind: Any = pa.type_for_alias(name)
    return kind
