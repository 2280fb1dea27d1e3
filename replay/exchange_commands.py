"""``tiltmeter export-exchanges`` and ``import-exchanges``: stored traffic out of the store and into it, as JSONL."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.cli.options import ConfigOption, JsonOption
from auditor.cli.progress import counting, progress

if TYPE_CHECKING:
    from auditor.config import Config
    from replay.files.intake import Form, Taken

#: Reasons that are told on the terminal; all of them stand in the JSON.
_REASONS_TOLD = 8


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    app.command("export-exchanges")(export_command)
    app.command("import-exchanges")(import_command)


def export_command(
    config: ConfigOption,
    select: Annotated[
        str,
        typer.Option(metavar="KEY=VALUE,...", help="Which exchanges, as for replay; or 'all'.", show_default=False),
    ],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", metavar="FILE", help="Where the lines go; .gz compresses.", show_default=False),
    ],
    no_content: Annotated[bool, typer.Option("--no-content", help="Facts alone, no request and no answer.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write stored exchanges as JSONL: facts, and request and answer where they are kept. The oldest first."""
    from auditor.cli.audit_store import in_store
    from auditor.config import load
    from auditor.rows import require_target
    from replay.files.export import export_exchanges
    from replay.selecting import read_selection

    selection = read_selection(select)
    require_target(out)
    loaded = load(config, os.environ)
    with counting("exporting") as on_progress:
        count = in_store(
            loaded,
            lambda engine: export_exchanges(engine, selection, out, content=not no_content, on_progress=on_progress),
        )
    typer.echo(json.dumps({"out": str(out), "exchanges": count}) if as_json else f"{out}: {count:,} exchanges")


def import_command(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The rows; gzipped or not.", show_default=False)],
    config: ConfigOption,
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help="Whose rows: tiltmeter (JSONL), litellm (its spend log).")
    ] = "tiltmeter",
    deployment: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]OURS",
            help="Which of our deployments answered: all rows, or those whose deployment or model has this name.",
        ),
    ] = None,
    content: Annotated[
        bool, typer.Option("--content", help="Keep requests and answers as they stand, not only their hashes.")
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count bad rows instead of stopping at the first.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Store exchanges that another gateway or another Tiltmeter recorded, as clients' traffic; each once.

    LiteLLM's spend log is taken as its table exported to CSV, or what /spend/logs answers, or one row a line.
    """
    from auditor.cli.audit_store import in_store
    from auditor.config import load
    from auditor.rows import require_file
    from replay.files.intake import Terms, import_exchanges

    named = _form(form)
    require_file(source)
    loaded = load(config, os.environ)
    terms = Terms(
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


def _form(name: str) -> "Form":
    from auditor.errors import UsageError
    from replay.files.intake import Form

    if name not in set(Form):
        raise UsageError(f"--format {name!r} is not known; known: {', '.join(Form)}")
    return Form(name)


def _deployments(given: list[str], config: "Config") -> dict[str, str]:
    """Read ``OURS`` and ``NAME=OURS``."""
    from auditor.errors import UsageError
    from replay.files.intake import ANY

    declared = [one.name for one in config.deployments]
    found: dict[str, str] = {}
    for one in given:
        # A model's name may hold an equals sign; ours cannot.
        name, _, ours = one.rpartition("=")
        name = name or ANY
        if ours not in declared:
            raise UsageError(f"--deployment {one}: {ours!r} is not declared; there are {', '.join(declared)}")
        if name in found:
            raise UsageError(f"--deployment {one}: {'all rows' if name == ANY else name} are given a deployment twice")
        found[name] = ours
    return found


def _summary(source: Path, taken: "Taken") -> dict[str, Any]:
    return {
        "source": str(source),
        "stored": taken.stored,
        "known": taken.known,
        "left_out": dict(sorted(taken.left_out.items())),
        "skipped": taken.skipped,
    }


def _lines(source: Path, taken: "Taken") -> list[str]:
    skipped = f", {taken.skipped:,} bad rows skipped" if taken.skipped else ""
    lines = [f"{source}: {taken.stored:,} exchanges stored, {taken.known:,} were there already{skipped}"]
    ordered = sorted(taken.left_out.items(), key=lambda item: (-item[1], item[0]))
    lines += [f"  left out: {reason.replace('_', ' ')} {count:,}" for reason, count in ordered[:_REASONS_TOLD]]
    if len(ordered) > _REASONS_TOLD:
        rest = sum(count for _, count in ordered[_REASONS_TOLD:])
        lines.append(f"  left out for {len(ordered) - _REASONS_TOLD} more reasons: {rest:,}")
    return lines
