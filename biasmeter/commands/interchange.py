"""``biasmeter import-responses``, ``export-inspect|coded|parquet``: files of other tools."""

import json
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from auditor.errors import UsageError
from biasmeter.terminal.options import ConfigOption, JsonOption, LastOption, SinceOption, UntilOption, read_period
from biasmeter.terminal.progress import counting, progress

app = typer.Typer()

#: The format of ``import-responses`` that is not one row a line.
_INSPECT: Final = "inspect"


@app.command("import-responses")
def import_responses(
    source: Annotated[
        Path,
        typer.Argument(
            help="The foreign file, JSONL or JSONL.gz; Inspect's log, or a folder of them.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="File for the rows of responses.jsonl; .gz compresses.")],
    form: Annotated[str, typer.Option("--format", help="Format of the foreign file: bbq, decodingtrust, inspect.")],
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count bad rows instead of stopping at the first.")
    ] = False,
) -> None:
    """Convert recorded answers of another project to responses.jsonl.

    Rows of a log that Biasmeter has written have their labels, and can be analyzed as they are.

    Example: biasmeter import-responses logs/ --format inspect -o responses.jsonl

    Documentation: docs/interchange.md
    """
    from auditor.coding.responses import SOURCES
    from auditor.documents.input_files import require_file
    from auditor.documents.jsonl import Rows, require_target, writing

    known = sorted([*SOURCES, _INSPECT])
    if form not in known:
        raise UsageError(f"--format {form!r} is not known; known: {', '.join(known)}")
    if form == _INSPECT:
        _import_logs(source, out)
        return
    require_file(source)
    require_target(out, source)
    count = 0
    with progress(source, "importing") as on_bytes, writing(out) as write:
        rows = Rows(source, skip_bad=skip_bad, on_bytes=on_bytes)
        for _, records in rows.read(SOURCES[form]):
            for record in records:
                write(record)
                count += 1
    typer.echo(f"{out}: {count} responses" + (f", {rows.skipped} bad rows skipped" if rows.skipped else ""))


def _import_logs(source: Path, out: Path) -> None:
    from auditor.documents.jsonl import require_target, writing
    from auditor.export.inspect_reader import read_inspect_logs

    if not source.exists():
        raise UsageError(f"{source}: no such file or folder")
    require_target(out, source)
    count = 0
    with writing(out) as write:
        for record in read_inspect_logs(source):
            write(record)
            count += 1
    typer.echo(f"{out}: {count} responses")


@app.command("export-inspect")
def export_inspect(
    coded: Annotated[Path, typer.Argument(metavar="CODED.jsonl", help="Coded rows, .gz or not.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the logs.")],
) -> None:
    """Write coded rows as logs of Inspect AI, one for each deployment, with labels as scores and rates as metrics.

    Example: biasmeter export-inspect coded.jsonl -o logs, and then: inspect view --log-dir logs

    Documentation: docs/interchange.md
    """
    from auditor.documents.input_files import require_file
    from auditor.documents.jsonl import Rows
    from auditor.documents.output import check_folder
    from auditor.export.inspect_writer import write_inspect_logs

    require_file(coded)
    check_folder(out)
    rows = (record for _, record in Rows(coded).read(lambda record: record))
    for path in write_inspect_logs(rows, out):
        typer.echo(str(path))


@app.command("export-coded")
def export_coded(
    config: ConfigOption,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="The file to write: .jsonl, .jsonl.gz, .csv or .parquet."),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Instead of -o: write a data set for Hugging Face's datasets here."),
    ] = None,
    origin: Annotated[str | None, typer.Option(help="Only this origin: client, probe or replay.")] = None,
    deployment: Annotated[str | None, typer.Option(metavar="NAME", help="Only this deployment.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    last: LastOption = None,
    no_content: Annotated[
        bool, typer.Option("--no-content", help="Write labels only, without statements and responses.")
    ] = False,
    with_templates: Annotated[
        bool,
        typer.Option(
            "--with-templates",
            help="Also write template_id. `analyze` then takes wordings for a sample, which stored estimates cannot.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the codings of the configuration's coders, one row for each exchange, the oldest first.

    `biasmeter analyze` on the file gives the estimates of the same selection. Exchanges without a coding are left out.

    Example: biasmeter export-coded -c biasmeter.yaml --last 30d -o coded.jsonl.gz

    Documentation: docs/python.md
    """
    from auditor.config import load_without_upstream_keys
    from auditor.domain.exchange import Origin
    from auditor.export.coded_rows import export_coded as export_file
    from auditor.export.coded_rows import export_dataset
    from auditor.store.answers import CodedSelection
    from biasmeter.store_work import in_store

    if origin is not None and origin not in list(Origin):
        raise UsageError(f"--origin {origin!r} is not one of {', '.join(Origin)}")
    target = _target(out, dataset)
    begin, end = read_period(since, until, last)
    loaded = load_without_upstream_keys(config, os.environ)
    equal = {name: value for name, value in (("origin", origin), ("deployment", deployment)) if value is not None}
    selection = CodedSelection(equal=equal, since=begin, until=end)
    with counting("exporting") as on_progress:
        count = in_store(
            loaded,
            lambda engine: (export_file if dataset is None else export_dataset)(
                engine,
                loaded,
                selection,
                target,
                content=not no_content,
                templates=with_templates,
                on_row=lambda done: on_progress(done, 0),
            ),
        )
    typer.echo(json.dumps({"out": str(target), "rows": count}) if as_json else f"{target}: {count:,} rows")


def _target(out: Path | None, dataset: Path | None) -> Path:
    """Return the file or the folder to write, when it can be written."""
    from auditor.documents.jsonl import require_target
    from auditor.documents.output import check_folder
    from auditor.documents.row_files import FORMATS

    if dataset is not None and out is None:
        check_folder(dataset)
        return dataset
    if out is None or dataset is not None:
        raise UsageError("name one of -o FILE and --dataset DIR")
    if not out.name.endswith(FORMATS):
        raise UsageError(f"{out}: the name must end in one of {', '.join(FORMATS)}")
    require_target(out)
    return out


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

    from auditor.coding.coders import open_coders
    from auditor.config import load_without_upstream_keys
    from auditor.documents.output import check_folder
    from auditor.export.parquet.days import DayFile, export_days
    from auditor.store.engine import transaction
    from auditor.store.expiry import find_expiry
    from biasmeter.store_work import in_store

    begin, end = read_period(since, until, last)
    check_folder(out)
    loaded = load_without_upstream_keys(config, os.environ)

    async def run(engine: AsyncEngine) -> list[DayFile]:
        async with open_coders(loaded, asking=False) as coders:
            ids = [coder.id for coder in coders]
        async with transaction(engine) as connection:
            expiry = await find_expiry(connection, loaded.retention.content, loaded.retention.facts)
        return await export_days(
            engine,
            out,
            ids,
            since=None if begin is None else begin.date(),
            until=None if end is None else _last_day(end),
            keep_from=expiry.bounds.facts,
            on_file=lambda _: on_progress(1, 0),
        )

    with counting("exporting") as on_progress:
        files = in_store(loaded, run)
    written = [file for file in files if file.written]
    rows = sum(file.rows for file in written)
    if as_json:
        summary = {"out": str(out), "files": len(files), "written": len(written), "rows": rows}
        typer.echo(json.dumps(summary))
    else:
        typer.echo(f"{out}: {len(written)} of {len(files)} files written, {rows:,} rows; the others were up to date")


def _last_day(end: datetime) -> date:
    """Return the last day (UTC) of a period that ends before ``end``."""
    return (end - timedelta(microseconds=1)).astimezone(UTC).date()
