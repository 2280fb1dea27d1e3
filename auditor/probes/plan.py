"""Make a plan from a design and statements: its id, and the calls of each deployment in the order of sending.

Planning is deterministic and stores nothing. The same questions always make the same plan, so a run is resumed by
requesting it again. ``run`` stores and sends the plan.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Final

from auditor.domain.plan import Plan, PlannedCall
from auditor.domain.question import Message
from auditor.domain.statement import Statement
from auditor.errors import InputError
from auditor.instrument.asking import ask
from auditor.instrument.designs import SENTINEL_SIZE, Cell, Design, DesignVariation, cells
from auditor.instrument.pool import missing_for, record_of
from auditor.instrument.templates import Template

#: The rubric of probes, as named in series and files.
RUBRIC: Final = "statement"
#: Increase it when a change of the code gives other calls for the same arguments.
_VERSION: Final = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanSpec:
    """The inputs of a plan. ``number`` is the pass of a repeated plan; each pass is a plan of its own."""

    design: Design
    statements: tuple[Statement, ...]
    draws: int = 1
    seed: int = 0
    number: int = 0
    variation: DesignVariation = field(default_factory=DesignVariation)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanItem:
    """One question of a plan, for all deployments. A plan of K draws asks it K times."""

    statement: Statement
    template: Template

    @property
    def key(self) -> str:
        """The name of the question within the plan."""
        return f"{self.statement.id}\0{self.template.template_id}"

    @property
    def messages(self) -> tuple[Message, ...]:
        """The chat request."""
        return ask(self.statement, self.template)


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan with its questions, the same for every deployment. The questions are made when they are read.

    Calls are numbered by ``position``, the order of sending. They are never all in memory: the full design has 80,200
    calls per deployment and draw.
    """

    plan: Plan
    statements: tuple[Statement, ...]
    cells: tuple[Cell, ...]
    draws: int
    number: int

    @property
    def instances(self) -> int:
        """The number of planned calls to each deployment."""
        return self.draws * len(self.statements) * sum(cell.per_statement for cell in self.cells)

    @cached_property
    def items(self) -> tuple[PlanItem, ...]:
        """The questions in the order of sending, shuffled by the seed, so that a stopped plan is a random sample.

        Each draw asks all of them in this order before the next draw begins.
        """
        items = _items(self.statements, self.cells, self.number)
        return tuple(sorted(items, key=lambda item: hash_id(self.plan.seed, self.plan.id, item.key)))

    def item(self, position: int) -> PlanItem:
        """Return the question of the call at this position."""
        return self.items[position % len(self.items)]

    def calls(self, deployment: str) -> Iterator[PlannedCall]:
        """Yield the calls to one deployment in the order of sending."""
        for position in range(self.instances):
            item, draw = self.item(position), position // len(self.items)
            yield PlannedCall(
                ref=f"{self.plan.id}.{hash_id(deployment, item.key, draw, size=12)}",
                plan_id=self.plan.id,
                deployment=deployment,
                statement_id=item.statement.id,
                condition=item.template.condition,
                template_id=item.template.template_id,
                draw=draw,
                position=position,
                invites_reason=item.template.invites_reason,
            )


def make_plan(spec: PlanSpec) -> Planned:
    """Make the plan.

    Raises
    ------
    InputError
        A statement lacks a field that one of the tasks shows.
    """
    statements = spec.statements
    if spec.design is Design.SENTINEL:
        statements = balanced(statements, SENTINEL_SIZE, spec.seed)
    grid = cells(spec.design, spec.variation)
    _check(statements, grid)
    plan = Plan(
        id=f"{spec.design}-{_identity(spec, statements, grid)}",
        name=plan_name(spec.design, spec.number),
        design=spec.design,
        seed=spec.seed,
        rubric=RUBRIC,
        settings={
            "version": _VERSION,
            "number": spec.number,
            "draws": spec.draws,
            "statements": len(statements),
            "conditions": [cell.condition.key for cell in grid],
            "templates": _template_ids(len(statements), grid, spec.number),
        },
    )
    return Planned(plan=plan, statements=statements, cells=grid, draws=spec.draws, number=spec.number)


def plan_name(design: str, number: int) -> str:
    """Return the name of one pass of a plan."""
    return f"{design} {number}"


def balanced(statements: Sequence[Statement], size: int, seed: int) -> tuple[Statement, ...]:
    """Choose statements, as evenly over the categories as possible; all of them if there are not more.

    The choice depends only on ids and seed, and is returned in the order of ``statements``.
    """
    if len(statements) <= size:
        return tuple(statements)
    by_category: dict[str, list[Statement]] = defaultdict(list)
    for statement in sorted(statements, key=lambda statement: hash_id(seed, statement.id)):
        by_category[statement.category or ""].append(statement)
    ranked = sorted(
        (place, category, statement.id)
        for category, members in by_category.items()
        for place, statement in enumerate(members)
    )
    chosen = {statement_id for _, _, statement_id in ranked[:size]}
    return tuple(statement for statement in statements if statement.id in chosen)


def _check(statements: Sequence[Statement], grid: Sequence[Cell]) -> None:
    for task in dict.fromkeys(cell.condition.task for cell in grid):
        for statement in statements:
            missing = missing_for(task, statement)
            if missing:
                raise InputError(f"statement {statement.id!r} has no {', '.join(missing)}, which {task} shows")


def _items(statements: Sequence[Statement], grid: Sequence[Cell], number: int) -> Iterator[PlanItem]:
    for cell in grid:
        for index, statement in enumerate(statements):
            for template in cell.templates_for(index, number):
                yield PlanItem(statement=statement, template=template)


def _template_ids(statements: int, grid: Sequence[Cell], number: int) -> list[str]:
    used = {
        template.template_id for cell in grid for at in range(statements) for template in cell.templates_for(at, number)
    }
    return sorted(used)


def _identity(spec: PlanSpec, statements: Sequence[Statement], grid: Sequence[Cell]) -> str:
    """Return twelve hexadecimal digits that change with any question or its wording."""
    first = statements[0]
    wordings = [
        [cell.condition.key, template.template_id, *(message.content for message in ask(first, template))]
        for cell in grid
        for template in cell.wordings
    ]
    whole = {
        "version": _VERSION,
        "design": spec.design,
        "draws": spec.draws,
        "seed": spec.seed,
        "number": spec.number,
        "statements": [record_of(statement) for statement in statements],
        "wordings": wordings,
    }
    return hash_id(json.dumps(whole, sort_keys=True, ensure_ascii=False), size=6)


def hash_id(*parts: object, size: int = 16) -> str:
    """Return a hexadecimal BLAKE2b hash of the parts, ``size`` bytes long."""
    return blake2b("\x1f".join(map(str, parts)).encode(), digest_size=size).hexdigest()
