"""``biasmeter export-exchanges`` and ``import-exchanges``: write stored exchanges to a file, and read them back."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.errors import UsageError
from biasmeter.terminal.options import ConfigOption, JsonOption
from biasmeter.terminal.progress import counting, progress

if TYPE_CHECKING:
    from auditor.config import Config
    from replay.files.imports import ImportCounts, ImportFormat

app = typer.Typer()

#: Reasons that are printed; the JSON has all of them.
_REASONS_TOLD = 8


@app.command("export-exchanges")
def export_command(
    config: ConfigOption,
    select: Annotated[
        str,
        typer.Option(
            metavar="KEY=VALUE,...", help="Which exchanges, as for `biasmeter replay`; or 'all'.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", metavar="FILE", help="The file to write; .gz compresses it.", show_default=False),
    ],
    no_content: Annotated[
        bool, typer.Option("--no-content", help="Write facts only, without requests and answers.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write stored exchanges as JSONL, the oldest first: facts, and request and answer if they are stored.

    Example: biasmeter export-exchanges --select route=support,from=2026-03-01 -o exchanges.jsonl.gz

    Documentation: docs/exchanges.md
    """
    from auditor.config import load_without_upstream_keys
    from auditor.documents.jsonl import require_target
    from biasmeter.store_work import in_store
    from replay.files.export import export_exchanges
    from replay.selection import read_selection

    selection = read_selection(select)
    require_target(out)
    loaded = load_without_upstream_keys(config, os.environ)
    with counting("exporting") as on_progress:
        count = in_store(
            loaded,
            lambda engine: export_exchanges(engine, selection, out, content=not no_content, on_progress=on_progress),
        )
    typer.echo(json.dumps({"out": str(out), "exchanges": count}) if as_json else f"{out}: {count:,} exchanges")


@app.command("import-exchanges")
def import_command(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to read; it may be gzipped.", show_default=False)
    ],
    config: ConfigOption,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="The format of the file: biasmeter (JSONL), litellm (its spend log), langfuse (observations) or "
            "spans (OpenTelemetry, Phoenix).",
        ),
    ] = "biasmeter",
    deployment: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]OURS",
            help="Our deployment that answered: all rows, or those whose deployment or model is NAME.",
        ),
    ] = None,
    content: Annotated[
        bool, typer.Option("--content", help="Store requests and answers, not only their hashes.")
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count and skip bad rows instead of stopping at the first.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Store exchanges that another gateway or another Biasmeter recorded, as client traffic.

    An exchange that is already stored is not stored again. LiteLLM's spend log may be its table as CSV, the answer of
    /spend/logs, or one row per line.

    Example: biasmeter import-exchanges spend_logs.csv --format litellm --deployment gpt-4o=azure-eu

    Documentation: docs/exchanges.md
    """
    from auditor.config import load_without_upstream_keys
    from auditor.documents.input_files import require_file
    from biasmeter.store_work import in_store
    from replay.files.imports import ImportOptions, import_exchanges

    named = _form(form)
    require_file(source)
    loaded = load_without_upstream_keys(config, os.environ)
    terms = ImportOptions(
        form=named, deployments=_deployments(deployment or [], loaded), content=content, now=datetime.now(UTC)
    )
    with progress(source, "importing") as on_bytes:
        taken = in_store(
            loaded,
            lambda engine: import_exchanges(engine, loaded, source, terms, skip_bad=skip_bad, on_bytes=on_bytes),
        )
    for complaint in taken.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    typer.echo(json.dumps(_summary(source, taken), sort_keys=True) if as_json else "\n".join(_lines(source, taken)))


def _form(name: str) -> "ImportFormat":
    from replay.files.imports import ImportFormat

    if name not in set(ImportFormat):
        raise UsageError(f"--format {name!r} is not known; the formats are {', '.join(ImportFormat)}")
    return ImportFormat(name)


def _deployments(options: list[str], config: "Config") -> dict[str, str]:
    """Read ``OURS`` and ``NAME=OURS``."""
    from replay.files.imports import ANY

    declared = [deployment.name for deployment in config.deployments]
    deployments: dict[str, str] = {}
    for option in options:
        # A model's name may hold an equals sign; ours cannot.
        name, _, ours = option.rpartition("=")
        name = name or ANY
        if ours not in declared:
            raise UsageError(f"--deployment {option}: {ours!r} is not declared; there are {', '.join(declared)}")
        if name in deployments:
            raise UsageError(
                f"--deployment {option}: {'all rows' if name == ANY else name} are given a deployment twice"
            )
        deployments[name] = ours
    return deployments


def _summary(source: Path, taken: "ImportCounts") -> dict[str, Any]:
    return {
        "source": str(source),
        "stored": taken.stored,
        "known": taken.known,
        "left_out": dict(sorted(taken.left_out.items())),
        "skipped": taken.skipped,
    }


def _lines(source: Path, taken: "ImportCounts") -> list[str]:
    skipped = f", {taken.skipped:,} bad rows skipped" if taken.skipped else ""
    lines = [f"{source}: {taken.stored:,} exchanges stored, {taken.known:,} were there already{skipped}"]
    ordered = sorted(taken.left_out.items(), key=lambda item: (-item[1], item[0]))
    lines += [f"  left out: {reason.replace('_', ' ')} {count:,}" for reason, count in ordered[:_REASONS_TOLD]]
    if len(ordered) > _REASONS_TOLD:
        rest = sum(count for _, count in ordered[_REASONS_TOLD:])
        lines.append(f"  left out for {len(ordered) - _REASONS_TOLD} more reasons: {rest:,}")
    return lines
