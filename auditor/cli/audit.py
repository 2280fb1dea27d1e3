"""``tiltmeter audit plan|run|status``: what a probe plan would take, sending it, and how far plans are.

What the words and numbers of these commands are is ``audit_words``'; what they do is ``auditor.probes``'.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from auditor.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.config import Config, Deployment
    from auditor.probes.plan import Planned
    from auditor.probes.run import Ended, OnProgress

T = TypeVar("T")

DesignOption = Annotated[str, typer.Option(metavar="DESIGN", help="sentinel, oat, factorial or panel.")]
DeploymentOption = Annotated[
    list[str] | None,
    typer.Option("--deployment", metavar="NAME", help="Whom to ask; repeatable. Default: all but judges."),
]
StatementsOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Statements of your own, JSONL or CSV. Default: the shipped pool.")
]
DrawsOption = Annotated[int, typer.Option(min=1, max=1000, help="Answers to each question.")]
SeedOption = Annotated[
    int | None, typer.Option(min=0, max=2**63 - 1, help="Order of sending, choice of statements. Default: the file's.")
]
PassOption = Annotated[
    int, typer.Option("--pass", min=0, help="Which repetition this is: another number asks everything again.")
]
LevelsOption = Annotated[
    list[str] | None,
    typer.Option("--levels", metavar="FACTOR=A,B", help="Levels of a crossed design, such as task=CTO,BJ; repeatable."),
]
TemplatesOption = Annotated[int | None, typer.Option(min=1, help="At most so many templates a condition.")]
ShareOption = Annotated[float, typer.Option(min=0.001, max=1.0, help="Share of a deployment's concurrency.")]


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    audit = typer.Typer(no_args_is_help=True, help="Probe plans: what they take, sending them, how far they are.")
    audit.command("plan")(_plan)
    audit.command("run")(_run)
    audit.command("status")(_status)
    app.add_typer(audit, name="audit")


def _plan(
    config: ConfigOption,
    design: DesignOption = "sentinel",
    deployment: DeploymentOption = None,
    statements: StatementsOption = None,
    draws: DrawsOption = 1,
    seed: SeedOption = None,
    number: PassOption = 0,
    levels: LevelsOption = None,
    templates: TemplatesOption = None,
    share: ShareOption = 0.1,
    json: JsonOption = False,
) -> None:
    """Say what a plan would take: calls, tokens, cost, time, and the smallest shift it can show. Sends nothing."""
    from auditor.cli import audit_words
    from auditor.probes.estimate import estimate

    loaded, chosen = _load(config, deployment)
    planned = _make(loaded, design, statements, draws, seed, number, levels, templates)
    estimates = estimate(planned, chosen, share)
    typer.echo(audit_words.plan_json(planned, estimates) if json else audit_words.plan_text(planned, estimates))


def _run(
    config: ConfigOption,
    design: DesignOption = "sentinel",
    deployment: DeploymentOption = None,
    statements: StatementsOption = None,
    draws: DrawsOption = 1,
    seed: SeedOption = None,
    number: PassOption = 0,
    levels: LevelsOption = None,
    templates: TemplatesOption = None,
    share: ShareOption = 0.1,
    budget_calls: Annotated[int | None, typer.Option(min=0, help="Stop after so many calls.")] = None,
    budget_usd: Annotated[
        float | None, typer.Option(min=0, help="Stop before it costs more. Default: twice the estimate.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Spend what it is estimated to cost without asking.")] = False,
    json: JsonOption = False,
) -> None:
    """Send a plan through the gateway. The same command resumes it: only what has no answer is sent."""
    from auditor.access import gateway_access
    from auditor.cli import audit_words
    from auditor.probes.run import Limits, Runner

    loaded, chosen = _load(config, deployment)
    planned = _make(loaded, design, statements, draws, seed, number, levels, templates)
    access = gateway_access(loaded)

    async def run(engine: "AsyncEngine") -> "tuple[Ended, ...]":
        usd = await _agree(engine, planned, chosen, yes=yes)
        limits = Limits(calls=budget_calls, usd=usd if budget_usd is None else budget_usd)
        with _progress(chosen) as on_progress:
            runner = Runner(engine=engine, config=loaded, access=access)
            return await runner.run(planned, chosen, limits=limits, share=share, on_progress=on_progress)

    ended = _in_store(loaded, run)
    typer.echo(audit_words.run_json(planned, ended) if json else audit_words.run_text(planned, ended))
    _raise_unanswered(ended)


def _status(
    config: ConfigOption,
    plan: Annotated[str | None, typer.Option(metavar="ID", help="Only this plan.")] = None,
    json: JsonOption = False,
) -> None:
    """Say of every plan and deployment how many calls are planned, answered, failed, remaining and coded."""
    from auditor.cli import audit_words
    from auditor.errors import UsageError
    from auditor.store.engine import reading
    from auditor.store.plans import PlanStatus, read_status

    async def read(engine: "AsyncEngine") -> list[PlanStatus]:
        async with reading(engine) as connection:
            return await read_status(connection, plan)

    loaded, _ = _load(config, None)
    found = _in_store(loaded, read)
    if plan is not None and not found:
        raise UsageError(f"there is no plan {plan!r}; `tiltmeter audit status` shows them")
    typer.echo(audit_words.status_json(found) if json else audit_words.status_text(found))


def _load(path: Path, names: list[str] | None) -> "tuple[Config, tuple[Deployment, ...]]":
    """Read the configuration, and find the deployments that are to be asked, in its order."""
    import os

    from auditor.config import load
    from auditor.config.wording import suggest
    from auditor.errors import UsageError
    from auditor.probes.run import default_deployments

    loaded = load(path, os.environ)
    declared = [one.name for one in loaded.deployments]
    for name in names or ():
        if name not in declared:
            near = suggest(name, declared) or f"; declared: {', '.join(declared)}"
            raise UsageError(f"--deployment: no deployment is called {name!r}{near}")
    if not names:
        return loaded, default_deployments(loaded)
    return loaded, tuple(one for one in loaded.deployments if one.name in names)


def _make(
    loaded: "Config",
    design: str,
    statements: Path | None,
    draws: int,
    seed: int | None,
    number: int,
    levels: list[str] | None,
    templates: int | None,
) -> "Planned":
    from auditor.errors import UsageError
    from auditor.instrument.designs import Design, Variation
    from auditor.instrument.pool import read_pool, shipped_pool
    from auditor.probes.plan import Asked, make_plan

    if design not in list(Design):
        raise UsageError(f"--design: {design!r} is none of {', '.join(Design)}")
    asked = Asked(
        design=Design(design),
        statements=shipped_pool() if statements is None else read_pool(statements),
        draws=draws,
        seed=loaded.seed if seed is None else seed,
        number=number,
        variation=Variation(levels=_levels(design, levels or []), templates=templates),
    )
    return make_plan(asked)


def _levels(design: str, given: list[str]) -> dict[str, tuple[str, ...]]:
    from auditor.errors import UsageError
    from auditor.instrument.designs import FACTORS, Design

    if given and design == Design.OAT:
        raise UsageError("--levels: oat varies every level of every factor; use factorial to choose")
    found: dict[str, tuple[str, ...]] = {}
    for one in given:
        name, _, listed = one.partition("=")
        if name not in FACTORS or name in found:
            raise UsageError(
                f"--levels: {one!r} must be one factor of {', '.join(FACTORS)}, each once, with its levels"
            )
        known = list(FACTORS[name])
        wanted = tuple(dict.fromkeys(level.strip() for level in listed.split(",") if level.strip()))
        odd = [level for level in wanted if level not in known]
        if odd or not wanted:
            what = repr(odd[0]) if odd else "nothing"
            raise UsageError(f"--levels: {name} has {', '.join(known)}, not {what}")
        found[name] = wanted
    return found


def _in_store(loaded: "Config", work: "Callable[[AsyncEngine], Awaitable[T]]") -> T:
    import asyncio
    import os

    from auditor.store.engine import make_engine
    from auditor.store.opening import opened
    from auditor.store.schema import check_version

    async def run(database_url: str) -> T:
        engine = make_engine(database_url)
        try:
            await check_version(engine)
            return await work(engine)
        finally:
            await engine.dispose()

    with opened(loaded.data_dir, loaded.database_url(os.environ)) as database_url:
        return asyncio.run(run(database_url))


async def _agree(
    engine: "AsyncEngine", planned: "Planned", chosen: "tuple[Deployment, ...]", *, yes: bool
) -> float | None:
    """Ask before money is spent; give the most that the plan may cost in all.

    What is still unanswered is what is asked about; where no price is declared, that is said.
    """
    import sys

    from auditor.cli.audit_words import dollars
    from auditor.errors import UsageError
    from auditor.probes.estimate import call_usage
    from auditor.store.engine import reading
    from auditor.store.plans import answered_refs

    async with reading(engine) as connection:
        answered = await answered_refs(connection, planned.plan.id)
    usages = [call_usage(item) for item in planned.items]
    whole = open_ = 0.0
    unpriced = []
    for one in chosen:
        prices = [usage.price_at(one) for usage in usages]
        rest = [price for price, call in zip(prices, planned.calls(one.name), strict=True) if call.ref not in answered]
        whole += sum(price or 0.0 for price in prices)
        open_ += sum(price or 0.0 for price in rest)
        unpriced += [one.name] if rest and one.price is None else []
    if unpriced and not yes:
        typer.echo(f"what it costs is unknown: no price is declared for {', '.join(unpriced)}", err=True)
    if open_ > 0 and not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"this is estimated to cost {dollars(open_)}; --yes sends it")
        typer.confirm(f"This is estimated to cost {dollars(open_)}. Send it?", abort=True, err=True)
    return 2 * whole if whole > 0 else None


@contextmanager
def _progress(chosen: "tuple[Deployment, ...]") -> "Iterator[OnProgress]":
    """Show a bar for each deployment on a terminal's standard error; elsewhere nothing."""
    import sys

    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks = {one.name: bar.add_task(one.name, total=None) for one in chosen}
        yield lambda name, done, total: bar.update(tasks[name], completed=done, total=total)


def _raise_unanswered(ended: "tuple[Ended, ...]") -> None:
    """Fail where calls have no answer for another reason than the budget."""
    from auditor.errors import AuditError

    missing = sum(one.remaining for one in ended if one.failed or not one.budget_ended)
    if missing:
        raise AuditError(f"{missing} calls have no answer; the same command tries them again")
