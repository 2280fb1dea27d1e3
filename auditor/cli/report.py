"""``tiltmeter report``: a report over a period that can be made again, byte for byte, from what the store holds."""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.config import Config


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    app.command("report")(_report)


def _report(
    config: ConfigOption,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The folder of the report.")],
    since: Annotated[
        str | None, typer.Option("--from", metavar="WHEN", help="First moment: 2026-03-01 or 2026-03-01T12:00, UTC.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="WHEN", help="First moment that is not in it.")] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Make this report.json again, or say what is gone.")
    ] = None,
    by: Annotated[
        str, typer.Option(metavar="FIELD,...", help="Also by: category, region, intersectional, or a prompt's factor.")
    ] = "",
    quotes: Annotated[
        bool, typer.Option("--quotes/--no-quotes", help="Quote a few answers to probes as case studies.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Report on a period: report.json and report.html in the folder -o.

    What is counted are the codings, and the scores of peers, that exist now; made again later (--replay), the same are
    counted. A report that quotes can be made again as long as the quoted answers are kept.
    """
    import os

    from auditor.analysis.output import check_folder, write_files
    from auditor.config import load
    from auditor.errors import UsageError
    from auditor.report.period import pages

    loaded = load(config, os.environ)
    check_folder(out)
    if replay is not None:
        if since or until or by:
            raise UsageError("--replay takes its period and groups from the file: leave --from, --to and --by out")
        content = _again(loaded, replay)
    else:
        if not since or not until:
            raise UsageError("name the period with --from and --to, or a report to make again with --replay")
        content = _new(loaded, (_moment("--from", since), _moment("--to", until)), _fields(by), quotes=quotes)
    files = {"report.json": content, **pages(json.loads(content))}
    write_files(out, files)
    paths = [str(out / name) for name in files]
    typer.echo(json.dumps({"files": paths}) if as_json else "\n".join(paths))


def _moment(option: str, given: str) -> datetime:
    from datetime import UTC

    from auditor.errors import UsageError

    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise UsageError(f"{option} {given!r} is no date or time such as 2026-03-01 or 2026-03-01T12:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def _with_store(config: "Config", work: "Callable[[AsyncEngine], Awaitable[bytes]]") -> bytes:
    import asyncio
    import os

    from auditor.store.engine import make_engine
    from auditor.store.opening import opened
    from auditor.store.schema import check_version

    async def run(url: str) -> bytes:
        engine = make_engine(url)
        try:
            await check_version(engine)
            return await work(engine)
        finally:
            await engine.dispose()

    with opened(config.data_dir, config.database_url(os.environ)) as url:
        return asyncio.run(run(url))


def _fields(by: str) -> tuple[str, ...]:
    from auditor.cli.analyze import fields
    from auditor.errors import UsageError
    from auditor.jobs.period import GROUPED_BY

    names = tuple(name for name in fields(by) if name != "deployment")
    unknown = [name for name in names if name not in GROUPED_BY]
    if unknown:
        raise UsageError(f"--by {by}: {unknown[0]!r} is none of {', '.join(GROUPED_BY)}")
    return names


def _new(config: "Config", span: tuple[datetime, datetime], by: Sequence[str], *, quotes: bool) -> bytes:
    from auditor.errors import UsageError
    from auditor.jobs.period import report_period

    since, until = span
    if since >= until:
        raise UsageError("--from must be before --to")
    return _with_store(config, lambda engine: report_period(engine, config, since, until, by=by, quotes=quotes))


def _again(config: "Config", path: Path) -> bytes:
    from auditor.jobs.period import report_again

    report = _read(path)
    return _with_store(config, lambda engine: report_again(engine, report))


def _read(path: Path) -> dict[str, Any]:
    from auditor.errors import InputError
    from auditor.live.period import SCHEMA

    try:
        report = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except ValueError:
        raise InputError(f"{path}: is not JSON") from None
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise InputError(f"{path}: is no report of this release (schema {SCHEMA})")
    return report
