"""``biasmeter audit plan|run|status``: the cost of a probe plan, sending it, and its progress."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from auditor.errors import AuditError, UsageError
from biasmeter.options import ConfigOption, JsonOption
from biasmeter.progress import bars, counting, resumable

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.config import Config, Deployment
    from auditor.probes.plan import Planned
    from auditor.probes.run import RunResult
    from auditor.probes.template_precision import TemplateSpread
    from auditor.store.overview import PlanStatus

T = TypeVar("T")

app = typer.Typer(no_args_is_help=True, help="Plan probes, send them through the gateway, and show their progress.")


def _levels_option(flag: str, example: str) -> Any:
    return typer.Option(flag, metavar="A,B,...", help=f"Levels of a crossed design, such as {example}; all: every one.")


DesignOption = Annotated[
    str, typer.Option(metavar="DESIGN", help="The design of the plan: sentinel, oat, factorial or panel.")
]
DeploymentOption = Annotated[
    list[str] | None,
    typer.Option(
        "--deployment", metavar="NAME", help="A deployment to ask; may be repeated. Default: all but the judges."
    ),
]
StatementsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file of your own statements (formats: docs/loaders.md), or a shipped pool, such as biasmeter/1. "
        "Default: biasmeter/1.1; for oat and factorial, the paper's designs, biasmeter/1.",
    ),
]
DrawsOption = Annotated[int, typer.Option(min=1, max=1000, help="Number of answers to each question.")]
SeedOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=2**63 - 1,
        help="Seed of the order of sending and of the choice of statements. Default: seed of the configuration.",
    ),
]
PassOption = Annotated[
    int, typer.Option("--pass", min=0, help="Number of the repetition. Another number asks everything again.")
]
TaskOption = Annotated[str | None, _levels_option("--task", "CTO,BJ")]
PerspectiveOption = Annotated[str | None, _levels_option("--perspective", "self,media")]
RoleOption = Annotated[str | None, _levels_option("--role", "none,sociologist")]
SentimentOption = Annotated[str | None, _levels_option("--sentiment", "neutral,skeptical")]
TemplatesOption = Annotated[int | None, typer.Option(min=1, help="Largest number of paraphrases for each condition.")]
ComponentsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="An analysis.json whose variance components tell how many templates a claim needs, in place of assumed "
        "ones. Example: biasmeter audit plan --design oat --components results/analysis.json",
    ),
]
OrdersOption = Annotated[
    str | None,
    typer.Option(
        metavar="both|one",
        help="both: every second question has its answers in the other order (no before yes, the options exchanged, 5 "
        "for disagreement). Default: both; one for oat and factorial, the published designs.",
    ),
]
ShareOption = Annotated[
    float, typer.Option(min=0.001, max=1.0, help="Share of a deployment's concurrency that the plan may use.")
]


def load_deployments(path: Path, names: list[str] | None) -> "tuple[Config, tuple[Deployment, ...]]":
    """Read the configuration, and find the deployments that are to be asked, in its order.

    Raises
    ------
    UsageError
        No deployment has one of these names.
    """
    from auditor.config import load
    from auditor.probes.choice import choose_deployments

    loaded = load(path, os.environ)
    return loaded, _named(choose_deployments, loaded, names or ())


def plan_of(
    loaded: "Config",
    design: str,
    statements: Path | None,
    levels: Mapping[str, str | None],
    *,
    draws: int,
    seed: int | None,
    number: int,
    templates: int | None,
    orders: str | None = None,
) -> "Planned":
    """Make the plan.

    Raises
    ------
    UsageError
        There is no such design, level or file of statements.
    InputError
        The statements cannot be read, or lack what a task shows of them.
    """
    from auditor.cli.pool import read_statements
    from auditor.probes.choice import PlanChoice, plan_choice

    choice = PlanChoice(
        design=design, draws=draws, seed=seed, number=number, templates=templates, orders=orders,
        levels={factor: listed for factor, listed in levels.items() if listed is not None},
    )  # fmt: skip
    read = None if statements is None else partial(read_statements, statements)
    return _named(plan_choice, loaded, choice, read)


def _named(work: "Callable[..., T]", *given: Any) -> "T":
    """Do what the console does too, and name the option where it names the field."""
    try:
        return work(*given)
    except UsageError as error:
        field = str(error).partition(":")[0]
        raise UsageError(f"--{error}" if field.isidentifier() else str(error)) from None


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
    json: JsonOption = False,
) -> None:
    """Estimate the calls, tokens, cost and duration of a plan, and the smallest shift it can detect. Sends nothing."""
    from auditor.cli import plan_output
    from auditor.cli.consent import answer_stats
    from auditor.probes.estimate import estimate, forecast
    from auditor.probes.template_precision import assumed_spread, template_precision

    loaded, chosen = load_deployments(config, deployment)
    levels = {"task": task, "perspective": perspective, "role": role, "sentiment": sentiment}
    planned = plan_of(
        loaded, design, statements, levels, draws=draws, seed=seed, number=number, templates=templates, orders=orders
    )
    spread = assumed_spread() if components is None else _read_spread(components)
    precision = template_precision(spread, statements=len(planned.statements), draws=draws, rotating=design == "panel")

    with counting("counting the questions") as on_progress:
        taken = forecast(planned, answer_stats(loaded), lambda done: on_progress(done, len(planned.items)))
    estimates = estimate(planned, taken, chosen, share)
    write = plan_output.plan_json if json else plan_output.plan_text
    typer.echo(write(planned, estimates, precision))


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
    from auditor.probes.template_precision import TemplateSpread

    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--components {path}: {error.strerror}") from None
    entries = decode(content, AnalysisDocument, str(path)).generalizability
    found = next((each for each in entries if not each.by and each.outcome == "ber_union_full"), None)
    if not isinstance(found, GeneralizabilityEntry) or "template" not in found.components:
        why = "its rows state no templates" if found is None else getattr(found, "missing", "its design has none")
        raise UsageError(f"--components {path}: no variance component of templates: {why}")
    variances = {name: each.variance for name, each in found.components.items()}
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
    json: JsonOption = False,
) -> None:
    """Send a plan through the gateway. The same command resumes it and sends only what has no answer."""
    from auditor.access import gateway_access
    from auditor.cli import plan_output
    from auditor.cli.consent import agree
    from auditor.cli.store import in_store
    from auditor.probes.estimate import forecast
    from auditor.probes.run import RunLimits, Runner
    from auditor.store.engine import transaction
    from auditor.store.plans import read_answer_stats

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
            taken = forecast(planned, stats, lambda done: counted(done, len(planned.items)))
        usd = await agree(engine, planned, taken, loaded.deployments, chosen, yes=yes)
        limits = RunLimits(calls=budget_calls, usd=usd if budget_usd is None else budget_usd)
        with bars() as on_progress:
            runner = Runner(engine=engine, config=loaded, access=access)
            return await runner.run(planned, chosen, limits=limits, share=share, on_progress=on_progress)

    with resumable():
        ended = in_store(loaded, run)
    typer.echo(plan_output.run_json(planned, ended) if json else plan_output.run_text(planned, ended))
    _raise_unanswered(ended)


@app.command("status")
def _status(
    config: ConfigOption,
    plan: Annotated[str | None, typer.Option(metavar="ID", help="Show only this plan.")] = None,
    json: JsonOption = False,
) -> None:
    """Show how many calls of each plan and deployment are planned, answered, failed, remaining and coded."""
    from auditor.cli import plan_output
    from auditor.cli.store import in_store
    from auditor.store.engine import transaction
    from auditor.store.overview import read_status

    async def read(engine: "AsyncEngine") -> "list[PlanStatus]":
        async with transaction(engine) as connection:
            return await read_status(connection, plan)

    loaded, _ = load_deployments(config, None)
    found = in_store(loaded, read)
    if plan is not None and not found:
        raise UsageError(f"there is no plan {plan!r}; `biasmeter audit status` shows them")
    typer.echo(plan_output.status_json(found) if json else plan_output.status_text(found))


def _raise_unanswered(ended: "tuple[RunResult, ...]") -> None:
    """Fail if calls have no answer for a reason other than the budget."""
    missing = sum(one.remaining for one in ended if one.failed or not one.budget_ended)
    if missing:
        raise AuditError(f"{missing} calls have no answer; the same command tries them again")
