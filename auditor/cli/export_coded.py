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
    from auditor.cli.store import in_store
    from auditor.config import load
    from auditor.domain.exchange import Origin
    from auditor.export.coded_rows import export_coded as export_file
    from auditor.export.coded_rows import export_dataset
    from auditor.store.answers import CodedSelection

    if origin is not None and origin not in list(Origin):
        raise UsageError(f"--origin {origin!r} is not one of {', '.join(Origin)}")
    target = _target(out, dataset)
    begin, end = read_period(since, until, last)
    loaded = load(config, os.environ)
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
