"""``biasmeter audit``: the cost of a probe plan, sending it, its progress, and the same through OpenAI's batch API."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.errors import AuditError, UsageError
from biasmeter.terminal.options import ConfigOption, JsonOption
from biasmeter.terminal.plan_options import (
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
from biasmeter.terminal.progress import bars, counting, progress, resumable
from biasmeter.terminal.spending import ask_leave

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.config import Config, Deployment
    from auditor.probes.batch import BatchCounts
    from auditor.probes.forecast import PlanTokens
    from auditor.probes.plan import Planned
    from auditor.probes.run import RunResult
    from auditor.probes.template_precision import TemplateSpread
    from auditor.store.overview import PlanStatus
    from auditor.store.plans import AnswerStatsByKind

app = typer.Typer(no_args_is_help=True, help="Plan probes, send them through the gateway, and show their progress.")

ComponentsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="An analysis.json whose variance components tell how many templates a claim needs, in place of assumed "
        "ones. Example: biasmeter audit plan --design oat --components results/analysis.json",
    ),
]
ShareOption = Annotated[
    float, typer.Option(min=0.001, max=1.0, help="Share of a deployment's concurrency that the plan may use.")
]


@app.command("plan")
def _plan(
    config: ConfigOption,
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
    components: ComponentsOption = None,
    share: ShareOption = 0.1,
    as_json: JsonOption = False,
) -> None:
    """Estimate the calls, tokens, cost and duration of a plan, and the smallest shift it can detect. Sends nothing."""
    from auditor.probes.forecast import count_plan_tokens, forecast
    from auditor.probes.template_precision import assumed_spread, template_precision
    from biasmeter.terminal import plan_output

    loaded, chosen = load_deployments(config, deployment)
    levels = {"task": task, "perspective": perspective, "role": role, "sentiment": sentiment}
    planned = plan_of(
        loaded, design, statements, levels, draws=draws, seed=seed, number=number, templates=templates, orders=orders
    )
    spread = assumed_spread() if components is None else _read_spread(components)
    precision = template_precision(spread, statements=len(planned.statements), draws=draws, rotating=design == "panel")

    with counting("counting the questions") as on_progress:
        tokens = count_plan_tokens(planned, _answer_stats(loaded), lambda done: on_progress(done, len(planned.items)))
    forecasts = forecast(planned, tokens, chosen, share)
    write = plan_output.plan_json if as_json else plan_output.plan_text
    typer.echo(write(planned, forecasts, precision))


def _read_spread(path: Path) -> "TemplateSpread":
    """Read the variance components of the union rate over all rows of an analysis.

    Raises
    ------
    UsageError
        There is no such file, or it has no components.
    """
    from auditor.documents.analysis import AnalysisDocument
    from auditor.documents.codec import decode
    from auditor.documents.generalizability import GeneralizabilityEntry
    from auditor.documents.input_files import read_document
    from auditor.probes.template_precision import TemplateSpread

    entries = decode(read_document(path), AnalysisDocument, str(path)).generalizability
    entry = next((each for each in entries if not each.by and each.outcome == "ber_union_full"), None)
    if not isinstance(entry, GeneralizabilityEntry) or "template" not in entry.components:
        why = "its rows state no templates" if entry is None else getattr(entry, "missing", "its design has none")
        raise UsageError(f"--components {path}: no variance component of templates: {why}")
    variances = {name: each.variance for name, each in entry.components.items()}
    return TemplateSpread(
        template=variances["template"],
        statement_condition=variances.get("statement:condition", 0.0),
        residual=variances["residual"] + variances.get("statement:template", 0.0),
        source=str(path),
    )


@app.command("run")
def _run(
    config: ConfigOption,
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
    share: ShareOption = 0.1,
    budget_calls: Annotated[int | None, typer.Option(min=0, help="Stop after this number of calls.")] = None,
    budget_usd: Annotated[
        float | None,
        typer.Option(min=0, help="Stop before the plan costs more than this. Default: twice the estimate."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before money is spent.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Send a plan through the gateway. The same command resumes it and sends only what has no answer."""
    from auditor.access import gateway_access
    from auditor.probes.forecast import count_plan_tokens
    from auditor.probes.run import RunLimits, Runner
    from auditor.store.engine import transaction
    from auditor.store.plans import read_answer_stats
    from biasmeter.store_work import in_store
    from biasmeter.terminal import plan_output

    loaded, chosen = load_deployments(config, deployment)
    levels = {"task": task, "perspective": perspective, "role": role, "sentiment": sentiment}
    planned = plan_of(
        loaded, design, statements, levels, draws=draws, seed=seed, number=number, templates=templates, orders=orders
    )
    access = gateway_access(loaded)

    async def run(engine: "AsyncEngine") -> "tuple[RunResult, ...]":
        async with transaction(engine) as connection:
            stats = await read_answer_stats(connection)
        with counting("counting the questions") as counted:
            tokens = count_plan_tokens(planned, stats, lambda done: counted(done, len(planned.items)))
        usd = await _agree(engine, planned, tokens, loaded.deployments, chosen, yes=yes)
        limits = RunLimits(calls=budget_calls, usd=usd if budget_usd is None else budget_usd)
        with bars() as on_progress:
            runner = Runner(engine=engine, config=loaded, access=access)
            return await runner.run(planned, chosen, limits=limits, share=share, on_progress=on_progress)

    with resumable():
        ended = in_store(loaded, run)
    typer.echo(plan_output.run_json(planned, ended) if as_json else plan_output.run_text(planned, ended))
    _raise_unanswered(ended)


@app.command("status")
def _status(
    config: ConfigOption,
    plan: Annotated[str | None, typer.Option(metavar="ID", help="Show only this plan.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show how many calls of each plan and deployment are planned, answered, failed, remaining and coded."""
    from auditor.store.engine import transaction
    from auditor.store.overview import read_status
    from biasmeter.store_work import in_store
    from biasmeter.terminal import plan_output

    async def read(engine: "AsyncEngine") -> "list[PlanStatus]":
        async with transaction(engine) as connection:
            return await read_status(connection, plan)

    loaded, _ = load_deployments(config, None)
    statuses = in_store(loaded, read)
    if plan is not None and not statuses:
        raise UsageError(f"there is no plan {plan!r}; `biasmeter audit status` shows them")
    typer.echo(plan_output.status_json(statuses) if as_json else plan_output.status_text(statuses))


def _raise_unanswered(ended: "tuple[RunResult, ...]") -> None:
    """Fail if calls have no answer for a reason other than the budget."""
    missing = sum(result.remaining for result in ended if result.failed or not result.budget_ended)
    if missing:
        raise AuditError(f"{missing} calls have no answer; the same command tries them again")


def _answer_stats(loaded: "Config") -> "AnswerStatsByKind":
    """Read what answers took so far. Without a store there are none: a plan needs nothing but a configuration."""
    from auditor.postgres.embedded import store_exists
    from auditor.store.engine import transaction
    from auditor.store.plans import read_answer_stats
    from biasmeter.store_work import in_store

    async def read(engine: "AsyncEngine") -> "AnswerStatsByKind":
        async with transaction(engine) as connection:
            return await read_answer_stats(connection)

    if not store_exists(loaded.data_dir, loaded.database_url(os.environ)):
        return {}
    try:
        return in_store(loaded, read)
    except AuditError as error:
        typer.echo(f"answers are estimated without the store: {error}", err=True)
        return {}


async def _agree(
    engine: "AsyncEngine",
    planned: "Planned",
    tokens: "PlanTokens",
    deployments: "tuple[Deployment, ...]",
    chosen: "tuple[Deployment, ...]",
    *,
    yes: bool,
) -> float | None:
    """Ask before money is spent; return the most that the plan may cost in all, at those who are not ``chosen`` too.

    What is still unanswered is what is asked about; where no price is declared, that is printed.

    Raises
    ------
    UsageError
        There is no terminal to ask on.
    """
    from auditor.probes.run import usd_of
    from auditor.store.engine import transaction
    from auditor.store.plans import answered_positions, read_spent

    whole = left = 0.0
    unpriced = []
    for target in chosen:
        async with transaction(engine) as connection:
            answered = await answered_positions(connection, planned.plan.id, target.name)
        if target.price is None:
            unpriced += [target.name] if len(answered) < planned.instances else []
            continue
        everything = range(planned.instances)
        rest = (position for position in everything if position not in answered)
        whole += tokens.usage(target.name, everything).price_at(target) or 0.0
        left += tokens.usage(target.name, rest).price_at(target) or 0.0
    if not yes:
        ask_leave(left, unpriced)
    if whole == 0:
        return None
    async with transaction(engine) as connection:
        spent = await read_spent(connection, planned.plan.id)
    others = sum(
        usd_of(target, spent[target.name]) for target in deployments if target.name in spent and target not in chosen
    )
    return 2 * whole + others


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
    from auditor.documents.output import check_folder
    from auditor.probes.batch import write_batches
    from biasmeter.store_work import in_store

    loaded, chosen = load_deployments(config, deployment)
    check_folder(out)
    levels = {"task": task, "perspective": perspective, "role": role, "sentiment": sentiment}
    planned = plan_of(
        loaded, design, statements, levels, draws=draws, seed=seed, number=number, templates=templates, orders=orders
    )
    written = in_store(loaded, lambda engine: write_batches(engine, loaded, planned, chosen, out))
    if as_json:
        files = [{"path": str(file.path), "deployment": file.deployment, "calls": file.calls} for file in written]
        typer.echo(json.dumps({"plan": planned.plan.id, "files": files}))
        return
    typer.echo(f"plan {planned.plan.id}")
    for file in written:
        typer.echo(f"{file.path}: {file.calls:,} calls to {file.deployment}")
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
    from auditor.config import load_without_upstream_keys
    from auditor.documents.input_files import require_file
    from auditor.probes.batch import import_batch
    from biasmeter.store_work import in_store

    require_file(output)
    loaded = load_without_upstream_keys(config, os.environ)
    with progress(output, "importing") as on_bytes:
        imported = in_store(
            loaded, lambda engine: import_batch(engine, loaded, output, skip_bad=skip_bad, on_bytes=on_bytes)
        )
    for complaint in imported.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    typer.echo(_batch_json(output, imported) if as_json else _batch_text(output, imported))


def _batch_json(output: Path, imported: "BatchCounts") -> str:
    failed = dict(sorted(imported.failed.items()))
    counts = {"stored": imported.stored, "known": imported.known, "failed": failed, "skipped": imported.skipped}
    return json.dumps({"source": str(output), **counts}, sort_keys=True)


def _batch_text(output: Path, imported: "BatchCounts") -> str:
    skipped = f", {imported.skipped:,} bad rows skipped" if imported.skipped else ""
    lines = [f"{output}: {imported.stored:,} answers stored, {imported.known:,} were there already{skipped}"]
    lines += [f"  not answered: {reason} {count:,}" for reason, count in sorted(imported.failed.items())]
    return "\n".join(lines)
