"""``biasmeter export-parquet``: copy facts, codings and tallies to a folder of Parquet files."""

import json
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from biasmeter.options import ConfigOption, JsonOption, LastOption, SinceOption, UntilOption, read_period
from biasmeter.progress import counting

app = typer.Typer()


@app.command("export-parquet")
def export_parquet(
    config: ConfigOption,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The folder; it is created.")],
    since: SinceOption = None,
    until: UntilOption = None,
    last: LastOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy facts, codings and tallies to Parquet files, one a table and day. Only days that changed are written.

    The files have no prompts and no answers. `biasmeter analyze DIR --from parquet` counts them with DuckDB. Days that
    `retention.facts` no longer keeps are deleted from the folder. After `biasmeter erase`, run it again.
    """
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.cli.store import in_store
    from auditor.coding.coders import open_coders
    from auditor.config import load
    from auditor.documents.output import check_folder
    from auditor.export.parquet.days import DayFile, export_days
    from auditor.store.retention import first_kept_day

    begin, end = read_period(since, until, last)
    check_folder(out)
    loaded = load(config, os.environ)
    keep_from = first_kept_day(datetime.now(UTC), loaded.retention.facts)

    async def run(engine: AsyncEngine) -> list[DayFile]:
        async with open_coders(loaded, asking=False) as coders:
            ids = [coder.id for coder in coders]
        return await export_days(
            engine,
            out,
            ids,
            since=None if begin is None else begin.date(),
            until=None if end is None else _last_day(end),
            keep_from=keep_from,
            on_file=lambda _: on_progress(1, 0),
        )

    with counting("exporting") as on_progress:
        files = in_store(loaded, run)
    written = [file for file in files if file.written]
    rows = sum(file.rows for file in written)
    if as_json:
        found = {"out": str(out), "files": len(files), "written": len(written), "rows": rows}
        typer.echo(json.dumps(found))
    else:
        typer.echo(f"{out}: {len(written)} of {len(files)} files written, {rows:,} rows; the others were up to date")


def _last_day(end: datetime) -> date:
    """Return the last day (UTC) of a period that ends before ``end``."""
    return (end - timedelta(microseconds=1)).astimezone(UTC).date()
