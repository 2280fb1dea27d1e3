"""``biasmeter export-coded``: write stored codings as rows that ``biasmeter analyze`` reads."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from auditor.errors import UsageError
from biasmeter.options import ConfigOption, JsonOption, LastOption, SinceOption, UntilOption, read_period
from biasmeter.progress import counting

app = typer.Typer()


@app.command("export-coded")
def export_coded(
    config: ConfigOption,
    out: Annotated[
        Path,
        typer.Option("-o", "--out", metavar="FILE", help="The file to write: .jsonl, .jsonl.gz, .csv or .parquet."),
    ],
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
    """
    from auditor.cli.store import in_store
    from auditor.coding.coded_rows import export_coded as export
    from auditor.config import load
    from auditor.documents.jsonl import require_target
    from auditor.documents.row_files import FORMATS
    from auditor.domain.exchange import Origin
    from auditor.store.answers import CodedSelection

    if origin is not None and origin not in list(Origin):
        raise UsageError(f"--origin {origin!r} is not one of {', '.join(Origin)}")
    if not out.name.endswith(FORMATS):
        raise UsageError(f"{out}: the name must end in one of {', '.join(FORMATS)}")
    begin, end = read_period(since, until, last)
    require_target(out)
    loaded = load(config, os.environ)
    equal = {name: value for name, value in (("origin", origin), ("deployment", deployment)) if value is not None}
    selection = CodedSelection(equal=equal, since=begin, until=end)
    with counting("exporting") as on_progress:
        count = in_store(
            loaded,
            lambda engine: export(
                engine,
                loaded,
                selection,
                out,
                content=not no_content,
                templates=with_templates,
                on_row=lambda done: on_progress(done, 0),
            ),
        )
    typer.echo(json.dumps({"out": str(out), "rows": count}) if as_json else f"{out}: {count:,} rows")
