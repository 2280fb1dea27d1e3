"""Define the options that say what a plan asks, and read them."""

import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from auditor.errors import UsageError

if TYPE_CHECKING:
    from auditor.config import Config, Deployment
    from auditor.domain.condition import Task
    from auditor.domain.statement import Statement
    from auditor.probes.plan import Planned

T = TypeVar("T")


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
OrdersOption = Annotated[
    str | None,
    typer.Option(
        metavar="both|one",
        help="both: every second question has its answers in the other order (no before yes, the options exchanged, 5 "
        "for disagreement). Default: both; one for oat and factorial, the published designs.",
    ),
]


def load_deployments(path: Path, names: list[str] | None) -> "tuple[Config, tuple[Deployment, ...]]":
    """Read the configuration, and find the deployments that are to be asked, in its order.

    Raises
    ------
    UsageError
        No deployment has one of these names.
    """
    from auditor.config import load_without_upstream_keys
    from auditor.probes.choice import choose_deployments

    loaded = load_without_upstream_keys(path, os.environ)
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
    from auditor.probes.choice import PlanChoice, plan_choice

    choice = PlanChoice(
        design=design, draws=draws, seed=seed, number=number, templates=templates, orders=orders,
        levels={factor: listed for factor, listed in levels.items() if listed is not None},
    )  # fmt: skip
    read = None if statements is None else partial(read_statements, statements)
    return _named(plan_choice, loaded, choice, read)


def _named(work: "Callable[..., T]", *arguments: Any) -> "T":
    """Do what the console does too, and name the option where it names the field."""
    try:
        return work(*arguments)
    except UsageError as error:
        field = str(error).partition(":")[0]
        raise UsageError(f"--{error}" if field.isidentifier() else str(error)) from None


def read_statements(path: Path, tasks: "Collection[Task]") -> "tuple[Statement, ...]":
    """Read the statements that can be asked in every task; say on standard error what was left out.

    Raises
    ------
    InputError
        The file cannot be read as one of the formats.
    UsageError
        There is no such file, or none of its statements can be asked in every task.
    """
    from auditor.instrument.loaders import load

    loaded = load(path)
    chosen = loaded.for_tasks(tasks)
    if not chosen.statements:
        each = ", ".join(f"{task} {len(loaded.for_tasks((task,)).statements):,}" for task in tasks)
        whole = f"of {len(loaded.statements):,} statements none can be asked in every task of the plan"
        raise UsageError(f"{path}: {whole} ({each}); name tasks with --task")
    for reason, count in chosen.left_out.items():
        typer.echo(f"{path}: {count:,} left out: {reason}", err=True)
    return chosen.statements
