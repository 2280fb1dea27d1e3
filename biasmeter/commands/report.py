"""``biasmeter report``: a report over a period that can be made again, byte for byte, from what the store holds."""

import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.errors import InputError, UsageError
from biasmeter.terminal.options import (
    ConfigOption,
    JsonOption,
    LastOption,
    SinceOption,
    UntilOption,
    read_fields,
    read_period,
)

if TYPE_CHECKING:
    from auditor.config import Config

app = typer.Typer()


@app.command("report")
def _report(
    config: ConfigOption,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The folder of the report.")],
    since: SinceOption = None,
    until: UntilOption = None,
    last: LastOption = None,
    replay: Annotated[
        Path | None,
        typer.Option("--replay", metavar="FILE", help="Make this report.json again, or name the inputs that are gone."),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            metavar="FIELD,...",
            help="Also group by: category, region, intersectional, or a factor (task, perspective, role, sentiment).",
        ),
    ] = "",
    quotes: Annotated[
        bool, typer.Option("--quotes/--no-quotes", help="Quote a few answers to probes as case studies.")
    ] = True,
    console: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of the console, to which rates lead; auditor.public_url by default."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Report on a period. Writes report.json, report.html and evidence.json to the folder -o.

    The report counts the answers that are coded and scored now. --replay makes the same report again later. A
    report with quotations can be made again as long as the quoted answers are kept.
    """
    from auditor.config import load_without_upstream_keys
    from auditor.documents.codec import decode
    from auditor.documents.output import check_folder, write_files
    from auditor.period.document import ReportDocument
    from auditor.period.evidence import write_evidence
    from auditor.report.period import render_period

    loaded = load_without_upstream_keys(config, os.environ)
    if console is not None and not console.startswith(("http://", "https://")):
        raise UsageError(f"--console: {console!r} is no address that begins with http:// or https://")
    check_folder(out)
    if replay is not None:
        if since or until or last or by:
            raise UsageError(
                "--replay takes its period and groups from the file: do not give --from, --to, --last or --by"
            )
        content = _again(loaded, replay)
    else:
        begin, end = read_period(since, until, last)
        if begin is None or end is None:
            raise UsageError("name the period with --last or --from and --to, or a report to make again with --replay")
        content = _new(loaded, (begin, end), _fields(by), quotes=quotes)
    files = {
        "report.json": content,
        "evidence.json": write_evidence(content),
        **render_period(decode(content, ReportDocument, "report.json"), console or loaded.auditor.public_url),
    }
    write_files(out, files)
    paths = [str(out / name) for name in files]
    typer.echo(json.dumps({"files": paths}) if as_json else "\n".join(paths))


def _fields(by: str) -> tuple[str, ...]:
    from auditor.period.report import GROUPED_BY

    names = tuple(name for name in read_fields(by) if name != "deployment")
    unknown = [name for name in names if name not in GROUPED_BY]
    if unknown:
        raise UsageError(f"--by {by}: {unknown[0]!r} is not one of {', '.join(GROUPED_BY)}")
    return names


def _new(config: "Config", span: tuple[datetime, datetime], by: Sequence[str], *, quotes: bool) -> bytes:
    from auditor.period.report import report_period
    from biasmeter.store_work import in_store

    since, until = span
    return in_store(config, lambda engine: report_period(engine, config, since, until, by=by, quotes=quotes))


def _again(config: "Config", path: Path) -> bytes:
    from auditor.period.report import report_again
    from biasmeter.store_work import in_store

    report = _read(path)
    return in_store(config, lambda engine: report_again(engine, report))


def _read(path: Path) -> dict[str, Any]:
    from auditor.documents.input_files import parse_document
    from auditor.period.document import SCHEMA

    report = parse_document(path)
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise InputError(f"{path}: is not a report of this release (schema {SCHEMA})")
    return report
