"""``biasmeter audit batch|import-batch``: a plan through OpenAI's batch API, at half the price."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.audit import (
    DeploymentOption,
    DesignOption,
    DrawsOption,
    OrdersOption,
    PassOption,
    PerspectiveOption,
    RoleOption,
    SeedOption,
    SentimentOption,
    StatementsOption,
    TaskOption,
    TemplatesOption,
    load_deployments,
    plan_of,
)
from biasmeter.options import ConfigOption, JsonOption
from biasmeter.progress import progress

if TYPE_CHECKING:
    from auditor.probes.batch import BatchCounts

app = typer.Typer()


@app.command("batch")
def _batch(
    config: ConfigOption,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the files to upload.")],
    design: DesignOption = "sentinel",
    deployment: DeploymentOption = None,
    statements: StatementsOption = None,
    draws: DrawsOption = 1,
    seed: SeedOption = None,
    number: PassOption = 0,
    task: TaskOption = None,
    perspective: PerspectiveOption = None,
    role: RoleOption = None,
    sentiment: SentimentOption = None,
    templates: TemplatesOption = None,
    orders: OrdersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Store a plan, and write its unanswered calls as files for OpenAI's batch API. Sends nothing.

    Example: biasmeter audit batch --design sentinel --deployment gpt-4o -o batches

    Documentation: docs/interchange.md
    """
    from auditor.cli.store import in_store
    from auditor.documents.output import check_folder
    from auditor.probes.batch import write_batches

    loaded, chosen = load_deployments(config, deployment)
    check_folder(out)
    levels = {"task": task, "perspective": perspective, "role": role, "sentiment": sentiment}
    planned = plan_of(
        loaded, design, statements, levels, draws=draws, seed=seed, number=number, templates=templates, orders=orders
    )
    written = in_store(loaded, lambda engine: write_batches(engine, loaded, planned, chosen, out))
    if as_json:
        files = [{"path": str(one.path), "deployment": one.deployment, "calls": one.calls} for one in written]
        typer.echo(json.dumps({"plan": planned.plan.id, "files": files}))
        return
    typer.echo(f"plan {planned.plan.id}")
    for one in written:
        typer.echo(f"{one.path}: {one.calls:,} calls to {one.deployment}")
    if not written:
        typer.echo("every call has an answer")


@app.command("import-batch")
def _import_batch(
    output: Annotated[Path, typer.Argument(metavar="OUTPUT.jsonl", help="The batch's output file.")],
    config: ConfigOption,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip bad rows and count them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Store the answers of a batch's output file as answers to the planned calls. Failed calls can be asked again.

    Example: biasmeter audit import-batch batch_abc_output.jsonl

    Documentation: docs/interchange.md
    """
    from auditor.cli.store import in_store
    from auditor.config import load
    from auditor.documents.jsonl import require_file
    from auditor.probes.batch import import_batch

    require_file(output)
    loaded = load(config, os.environ)
    with progress(output, "importing") as on_bytes:
        found = in_store(
            loaded, lambda engine: import_batch(engine, loaded, output, skip_bad=skip_bad, on_bytes=on_bytes)
        )
    for complaint in found.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    typer.echo(_json(output, found) if as_json else _text(output, found))


def _json(output: Path, found: "BatchCounts") -> str:
    failed = dict(sorted(found.failed.items()))
    counts = {"stored": found.stored, "known": found.known, "failed": failed, "skipped": found.skipped}
    return json.dumps({"source": str(output), **counts}, sort_keys=True)


def _text(output: Path, found: "BatchCounts") -> str:
    skipped = f", {found.skipped:,} bad rows skipped" if found.skipped else ""
    lines = [f"{output}: {found.stored:,} answers stored, {found.known:,} were there already{skipped}"]
    lines += [f"  not answered: {reason} {count:,}" for reason, count in sorted(found.failed.items())]
    return "\n".join(lines)
