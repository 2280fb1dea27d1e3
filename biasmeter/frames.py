"""Convert between data frames and rows: pandas, whatever exports Arrow (Polars, DuckDB, pyarrow), or mappings."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from auditor.documents.jsonl import Records
from auditor.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

#: A data frame, or one mapping a row.
Rows: TypeAlias = Any


def records_of(rows: Rows) -> Records:
    """Return the rows as records without numpy values; a value that is missing in a frame is absent.

    Raises
    ------
    UsageError
        The rows are neither a data frame nor mappings.
    """
    return Records(tuple(_records(rows)))


def frame_of(records: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """Return the records as a pandas frame, one row each.

    Raises
    ------
    ModuleNotFoundError
        pandas is not installed.
    """
    import pandas as pd  # noqa: PLC0415 -- part of the extra frames

    return pd.DataFrame.from_records(list(records), columns=columns)


def _records(rows: Rows) -> Iterator[dict[str, Any]]:
    if isinstance(rows, str | bytes | Mapping):
        raise UsageError(f"rows must be a data frame or mappings, one a row, not {type(rows).__name__}")
    if hasattr(rows, "to_dict") and hasattr(rows, "columns") and hasattr(rows, "iloc"):
        records: Iterable[Any] = rows.to_dict("records")
    elif hasattr(rows, "__arrow_c_stream__"):
        import pyarrow as pa  # noqa: PLC0415 -- part of the extra frames

        records = pa.table(rows).to_pylist()
    elif hasattr(rows, "__dataframe__"):
        from pyarrow.interchange import from_dataframe  # noqa: PLC0415 -- part of the extra frames

        records = from_dataframe(rows).to_pylist()
    elif isinstance(rows, Iterable):
        records = rows
    else:
        raise UsageError(f"rows must be a data frame or mappings, one a row, not {type(rows).__name__}")
    for number, record in enumerate(records, start=1):
        if not isinstance(record, Mapping):
            raise UsageError(f"row {number} must be a mapping, not {type(record).__name__}")
        yield {str(name): _plain(value) for name, value in record.items() if not _is_missing(value)}


def _is_missing(value: object) -> bool:
    """Return whether a frame has no value here: None, NaN, NaT or pandas.NA."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return type(value).__name__ in {"NAType", "NaTType"}


def _plain(value: object) -> object:
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items() if not _is_missing(each)}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime | date) else value
