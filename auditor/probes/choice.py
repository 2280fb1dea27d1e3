"""What a person chooses of a plan: by options of ``biasmeter audit``, or by the form in the console."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from auditor.config import Config, Deployment
from auditor.config.problems import suggest
from auditor.domain.condition import Task
from auditor.domain.statement import Statement
from auditor.errors import UsageError
from auditor.instrument.designs import FACTORS, Design, DesignVariation, cells
from auditor.instrument.pool import pool_of_design
from auditor.probes.forecast import SHARE
from auditor.probes.plan import Planned, PlanSpec, make_plan
from auditor.probes.run import RunLimits, default_deployments

#: Whether both orders of the answers are asked, by the option; None is the design's own way.
ORDERS: Final[Mapping[str | None, bool | None]] = {None: None, "both": True, "one": False}
#: Stands for every level of a factor.
ALL_LEVELS: Final = "all"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanChoice:
    """A plan as somebody asks for it. Its fields are the options of ``biasmeter audit run``."""

    design: str = Design.SENTINEL
    deployments: tuple[str, ...] = ()  #: none: all but the judges
    draws: int = 1
    seed: int | None = None  #: None: that of the configuration
    number: int = 0
    levels: Mapping[str, str] = field(default_factory=dict)  #: listed levels by factor
    templates: int | None = None
    orders: str | None = None
    share: float = SHARE
    budget_calls: int | None = None
    budget_usd: float | None = None

    @property
    def limits(self) -> RunLimits:
        """The budget."""
        return RunLimits(calls=self.budget_calls, usd=self.budget_usd)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return asdict(self)

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> "PlanChoice":
        """Read what ``to_json`` wrote."""
        return cls(**{**document, "deployments": tuple(document["deployments"])})


#: Reads the statements that can be asked in every one of these tasks.
ReadStatements = Callable[[Sequence[Task]], tuple[Statement, ...]]


def plan_choice(config: Config, choice: PlanChoice, read: ReadStatements | None = None) -> Planned:
    """Make the plan that somebody chose; without ``read`` it asks the design's shipped pool.

    Raises
    ------
    UsageError
        There is no such design or level; the message begins with the name of the field.
    InputError
        The statements lack what a task shows of them.
    """
    design = choice.design
    if design not in list(Design):
        raise UsageError(f"design: {design!r} is not one of {', '.join(Design)}")
    if choice.orders not in ORDERS:
        raise UsageError(f"orders: {choice.orders!r} is none of both, one")
    chosen = {factor: _levels(factor, listed) for factor, listed in choice.levels.items()}
    if design == Design.OAT and chosen:
        raise UsageError(f"{next(iter(chosen))}: oat varies every level of every factor; use factorial to choose")
    variation = DesignVariation(levels=chosen, templates=choice.templates, both_orders=ORDERS[choice.orders])
    tasks = tuple(dict.fromkeys(cell.condition.task for cell in cells(Design(design), variation)))
    spec = PlanSpec(
        design=Design(design),
        statements=pool_of_design(design) if read is None else read(tasks),
        draws=choice.draws,
        seed=config.seed if choice.seed is None else choice.seed,
        number=choice.number,
        variation=variation,
    )
    return make_plan(spec)


def _levels(factor: str, text: str) -> tuple[str, ...]:
    known = tuple(FACTORS[factor])
    if text.strip() == ALL_LEVELS:
        return known
    wanted = tuple(dict.fromkeys(level.strip() for level in text.split(",") if level.strip()))
    odd = [level for level in wanted if level not in known]
    if odd or not wanted:
        raise UsageError(f"{factor}: {repr(odd[0]) if odd else 'an empty list'} is not one of {', '.join(known)}")
    return wanted


def choose_deployments(config: Config, names: Sequence[str]) -> tuple[Deployment, ...]:
    """Return the deployments of these names in the order of the configuration; of none: all but the judges.

    Raises
    ------
    UsageError
        No deployment has one of these names; the message begins with the name of the field.
    """
    declared = [deployment.name for deployment in config.deployments]
    for name in names:
        if name not in declared:
            near = suggest(name, declared) or f"; declared: {', '.join(declared)}"
            raise UsageError(f"deployment: there is no deployment named {name!r}{near}")
    if not names:
        return default_deployments(config)
    return tuple(deployment for deployment in config.deployments if deployment.name in names)


def command(verb: str, choice: PlanChoice, file: str) -> str:
    """Return the command that does the same as the console.

    Parameters
    ----------
    verb
        ``plan`` or ``run``.
    choice
        The plan's options.
    file
        The configuration, quoted for a shell.
    """
    defaults = PlanChoice()
    options: list[object] = ["--design", choice.design]
    for name in choice.deployments:
        options += ["--deployment", name]
    names = {"draws": "--draws", "seed": "--seed", "number": "--pass", "templates": "--templates", "orders": "--orders"}
    names |= {"share": "--share"}
    if verb == "run":
        names |= {"budget_calls": "--budget-calls", "budget_usd": "--budget-usd"}
    for name, option in names.items():
        value = getattr(choice, name)
        if value != getattr(defaults, name):
            options += [option, value]
    for factor, listed in choice.levels.items():
        options += [f"--{factor}", listed]
    if verb == "run":
        options.append("--yes")
    return f"biasmeter audit {verb} -c {file} {shlex.join(map(str, options))}"
