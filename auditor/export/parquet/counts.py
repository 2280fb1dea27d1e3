"""Count codings in a folder of Parquet files with DuckDB, in bounded memory.

The counts are those that ``auditor.store.tallies`` keeps, so the estimates are the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import duckdb

from auditor.counting.stored import tallies_of, votes_of
from auditor.counting.tallies import GROUP_FIELDS, Tallies
from auditor.errors import InputError, UsageError
from auditor.export.parquet.tables import CODINGS, written_days
from auditor.store.tallies import OUTCOME

#: Memory that DuckDB may use, if nothing else is said. Larger groupings are sorted in a temporary folder.
MEMORY: Final = "1GB"
_SUBJECT: Final = (*GROUP_FIELDS, "cluster", "inclusion")
#: Columns of codings by which rows may be grouped in addition.
EXTRA: Final = ("origin", "audit", "sel_via", "invites_reason", "coder", "day")
_EXPRESSIONS: Final = {"day": "CAST(day AS VARCHAR) AS day"}
_FROM: Final = """
    FROM read_parquet($files, hive_partitioning = true, hive_types = {'day': DATE})
    WHERE day BETWEEN $since AND $until AND uncoded IS NULL
"""
_COUNTS: Final = "count(*) AS n, count(completion_tokens) AS n_tokens, sum(completion_tokens)::BIGINT AS tokens"
_PAGE: Final = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedFolder:
    """The counts of a folder's codings."""

    rows: Iterator[dict[str, Any]]  #: counts by subject and outcome: ``n``, ``n_tokens``, ``tokens``
    ballots: Sequence[Mapping[str, Any]]  #: ``deployment``, ``votes`` and ``n``


@contextmanager
def counting_folder(
    folder: Path,
    *,
    extra: Sequence[str] = (),
    since: date | None = None,
    until: date | None = None,
    memory: str = MEMORY,
) -> Iterator[CountedFolder]:
    """Count the codings of a folder that ``biasmeter export-parquet`` wrote, as long as the block lasts.

    Parameters
    ----------
    extra
        Further columns to count by, of ``EXTRA``.
    since, until
        First and last day (UTC); files of other days are not opened.
    memory
        Memory that DuckDB may use, such as ``1GB``. What needs more is sorted in a temporary folder.

    Raises
    ------
    UsageError
        The folder has no codings of these days, or the memory is not a size.
    InputError
        A file cannot be read.
    """
    days = [day for day in written_days(folder, CODINGS.name) if (since or day) <= day <= (until or day)]
    if not days:
        raise UsageError(f"{folder}: there are no codings of these days; write them with: biasmeter export-parquet")
    keys = ", ".join((*_SUBJECT, *(_EXPRESSIONS.get(name, name) for name in extra), *OUTCOME))
    files = folder / CODINGS.name / "day=*" / f"{CODINGS.name}.parquet"
    parameters = {"files": str(files), "since": days[0], "until": days[-1]}
    with TemporaryDirectory(prefix="biasmeter-") as spill, closing(_connect(memory, spill)) as connection:
        try:
            ballots = list(
                _read(connection, f"SELECT deployment, votes, count(*) AS n {_FROM} GROUP BY ALL", parameters)
            )
            for ballot in ballots:
                ballot["votes"] = [(vote["judge"], vote["label"]) for vote in ballot["votes"] or ()]
            yield CountedFolder(
                rows=_read(connection, f"SELECT {keys}, {_COUNTS} {_FROM} GROUP BY ALL", parameters),
                ballots=[ballot for ballot in ballots if ballot["votes"]],
            )
        except duckdb.OutOfMemoryException:
            raise InputError(f"{folder}: counting needs more memory than {memory}") from None
        except duckdb.Error as error:
            raise InputError(f"{folder}: {str(error).splitlines()[0]}") from None


def folder_tallies(
    folder: Path,
    by: Sequence[str],
    *,
    since: date | None = None,
    until: date | None = None,
    memory: str = MEMORY,
) -> Tallies:
    """Return the tallies of a folder's codings, for ``analyse``.

    Parameters
    ----------
    by
        Fields to group by, as for ``analyze``: those of every row, and ``EXTRA``.

    Raises
    ------
    UsageError, InputError
        The errors of ``counting_folder``, or a field is not a column of codings.
    """
    extra = [name for name in by if name not in (*GROUP_FIELDS, "condition")]
    for name in extra:
        if name not in EXTRA:
            raise UsageError(f"--by: codings have no column {name!r}; further columns: {', '.join(EXTRA)}")
    with counting_folder(folder, extra=extra, since=since, until=until, memory=memory) as counted:
        return tallies_of(counted.rows, votes_of(counted.ballots), extra=extra)


def _connect(memory: str, spill: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET memory_limit = $memory", {"memory": memory})
    except duckdb.Error:
        connection.close()
        raise UsageError(f"--memory {memory!r} is not a size such as 1GB") from None
    connection.execute("SET temp_directory = $spill", {"spill": spill})
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET preserve_insertion_order = false")
    return connection


def _read(connection: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    result = connection.execute(query, parameters)
    names = [column[0] for column in result.description]
    while page := result.fetchmany(_PAGE):
        for row in page:
            yield dict(zip(names, row, strict=True))
