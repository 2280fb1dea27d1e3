"""``tiltmeter audit plan|run|status``: what a probe plan would take, sending it, and how far plans are.

Its neighbours ``audit_options`` and ``audit_words`` have what these commands are told and what they print,
``audit_store`` what they ask of the store; what they do is ``auditor.probes``'.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import audit_options as told
from auditor.cli.options import ConfigOption, JsonOption
from auditor.cli.progress import bars, resumable

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.probes.run import Ended
    from auditor.store.plans import PlanStatus


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    audit = typer.Typer(no_args_is_help=True, help="Probe plans: what they take, sending them, how far they are.")
    audit.command("plan")(_plan)
    audit.command("run")(_run)
    audit.command("status")(_status)
    app.add_typer(audit, name="audit")


def _plan(
    config: ConfigOption,
    design: told.DesignOption = "sentinel",
    deployment: told.DeploymentOption = None,
    statements: told.StatementsOption = None,
    draws: told.DrawsOption = 1,
    seed: told.SeedOption = None,
    number: told.PassOption = 0,
    task: told.TaskOption = None,
    perspective: told.PerspectiveOption = None,
    role: told.RoleOption = None,
    sentiment: told.SentimentOption = None,
    templates: told.TemplatesOption = None,
    share: told.ShareOption = 0.1,
    json: JsonOption = False,
) -> None:
    """Say what a plan would take: calls, tokens, cost, time, and the smallest shift it can show. Sends nothing."""
    from auditor.cli import audit_words
    from auditor.cli.audit_store import habits_so_far
    from auditor.probes.estimate import estimate, forecast

    loaded, chosen = told.load(config, deployment)
    levels = {"task": task, "perspective": perspective, "role": role, "sentiment": sentiment}
    planned = told.make(loaded, design, statements, levels, draws=draws, seed=seed, number=number, templates=templates)

    with _counting(len(planned.items)) as on_progress:
        taken = forecast(planned, habits_so_far(loaded), on_progress)
    estimates = estimate(planned, taken, chosen, share)
    typer.echo(audit_words.plan_json(planned, estimates) if json else audit_words.plan_text(planned, estimates))


def _run(
    config: ConfigOption,
    design: told.DesignOption = "sentinel",
    deployment: told.DeploymentOption = None,
    statements: told.StatementsOption = None,
    draws: told.DrawsOption = 1,
    seed: told.SeedOption = None,
    number: told.PassOption = 0,
    task: told.TaskOption = None,
    perspective: told.PerspectiveOption = None,
    role: told.RoleOption = None,
    sentiment: told.SentimentOption = None,
    templates: told.TemplatesOption = None,
    share: told.ShareOption = 0.1,
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
    from auditor.cli.audit_store import agree, in_store
    from auditor.probes.estimate import forecast
    from auditor.probes.run import Limits, Runner
    from auditor.store.engine import reading
    from auditor.store.habits import read_habits

    loaded, chosen = told.load(config, deployment)
    levels = {"task": task, "perspective": perspective, "role": role, "sentiment": sentiment}
    planned = told.make(loaded, design, statements, levels, draws=draws, seed=seed, number=number, templates=templates)
    access = gateway_access(loaded)

    async def run(engine: "AsyncEngine") -> "tuple[Ended, ...]":
        async with reading(engine) as connection:
            habits = await read_habits(connection)
        with _counting(len(planned.items)) as counted:
            taken = forecast(planned, habits, counted)
        usd = await agree(engine, planned, taken, loaded.deployments, chosen, yes=yes)
        limits = Limits(calls=budget_calls, usd=usd if budget_usd is None else budget_usd)
        with bars() as on_progress:
            runner = Runner(engine=engine, config=loaded, access=access)
            return await runner.run(planned, chosen, limits=limits, share=share, on_progress=on_progress)

    with resumable():
        ended = in_store(loaded, run)
    typer.echo(audit_words.run_json(planned, ended) if json else audit_words.run_text(planned, ended))
    _raise_unanswered(ended)


def _status(
    config: ConfigOption,
    plan: Annotated[str | None, typer.Option(metavar="ID", help="Only this plan.")] = None,
    json: JsonOption = False,
) -> None:
    """Say of every plan and deployment how many calls are planned, answered, failed, remaining and coded."""
    from auditor.cli import audit_words
    from auditor.cli.audit_store import in_store
    from auditor.errors import UsageError
    from auditor.store.engine import reading
    from auditor.store.plans import read_status

    async def read(engine: "AsyncEngine") -> "list[PlanStatus]":
        async with reading(engine) as connection:
            return await read_status(connection, plan)

    loaded, _ = told.load(config, None)
    found = in_store(loaded, read)
    if plan is not None and not found:
        raise UsageError(f"there is no plan {plan!r}; `tiltmeter audit status` shows them")
    typer.echo(audit_words.status_json(found) if json else audit_words.status_text(found))


@contextmanager
def _counting(total: int) -> "Iterator[Callable[[int], None]]":
    """Show a bar while the questions are counted, on a terminal's standard error; elsewhere nothing."""
    import sys

    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("counting the questions", total=total)
        yield lambda done: bar.update(task, completed=done)


def _raise_unanswered(ended: "tuple[Ended, ...]") -> None:
    """Fail where calls have no answer for another reason than the budget."""
    from auditor.errors import AuditError

    missing = sum(one.remaining for one in ended if one.failed or not one.budget_ended)
    if missing:
        raise AuditError(f"{missing} calls have no answer; the same command tries them again")
