"""From a design and statements to a plan: its id, and the planned calls of each deployment, in the order of sending.

Nothing here is random and nothing is stored: the same questions make the same plan, whoever asks them when, so that a
run is resumed by asking for it again. ``run`` stores and sends what this gives.
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
from auditor.instrument.designs import SENTINEL_SIZE, Cell, Design, Variation, cells
from auditor.instrument.pool import missing_for, record_of
from auditor.instrument.templates import Template

#: What the answers' stances are taken on, as series and files name it.
RUBRIC: Final = "statement"
#: Changes when the same arguments give other calls.
_VERSION: Final = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a plan is made from. ``number`` is the pass of a plan that is repeated: another pass is another plan."""

    design: Design
    statements: tuple[Statement, ...]
    draws: int = 1
    seed: int = 0
    number: int = 0
    variation: Variation = field(default_factory=Variation)


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One question of a plan, whoever is asked. A plan of K draws asks it K times."""

    statement: Statement
    template: Template

    @property
    def key(self) -> str:
        """Its name within the plan."""
        return f"{self.statement.id}\0{self.template.template_id}"

    @property
    def messages(self) -> tuple[Message, ...]:
        """The chat request."""
        return ask(self.statement, self.template)


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan and what it asks of every deployment alike. Its size is known at once, its questions when they are read.

    Calls are numbered by ``position``, the order of sending. They are never all held: one deployment's share of the
    full design is 80,200, and as many again for each draw.
    """

    plan: Plan
    statements: tuple[Statement, ...]
    cells: tuple[Cell, ...]
    draws: int
    number: int

    @property
    def instances(self) -> int:
        """How many calls are planned for each deployment."""
        return self.draws * len(self.statements) * sum(cell.per_statement for cell in self.cells)

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The questions in the order of sending, shuffled by the seed: a plan that stops asked a random part of itself.

        Every draw goes through all of them in this order before the next one begins.
        """
        found = _items(self.statements, self.cells, self.number)
        return tuple(sorted(found, key=lambda item: digest(str(self.plan.seed), self.plan.id, item.key)))

    def item(self, position: int) -> Item:
        """Give the question that the call of this position asks."""
        return self.items[position % len(self.items)]

    def calls(self, deployment: str) -> Iterator[PlannedCall]:
        """Give the calls to one deployment, in the order of sending."""
        for position in range(self.instances):
            item, draw = self.item(position), position // len(self.items)
            yield PlannedCall(
                ref=f"{self.plan.id}.{digest(deployment, item.key, str(draw), size=12)}",
                plan_id=self.plan.id,
                deployment=deployment,
                statement_id=item.statement.id,
                condition=item.template.condition,
                template_id=item.template.template_id,
                draw=draw,
                position=position,
                invites_reason=item.template.invites_reason,
            )


def make_plan(asked: Asked) -> Planned:
    """Make the plan.

    Raises
    ------
    InputError
        A statement lacks what one of the tasks shows of it.
    """
    statements = asked.statements
    if asked.design is Design.SENTINEL:
        statements = balanced(statements, SENTINEL_SIZE, asked.seed)
    grid = cells(asked.design, asked.variation)
    _check(statements, grid)
    plan = Plan(
        id=f"{asked.design}-{_identity(asked, statements, grid)}",
        name=f"{asked.design} {asked.number}",
        design=asked.design,
        seed=asked.seed,
        rubric=RUBRIC,
        settings={
            "version": _VERSION,
            "number": asked.number,
            "draws": asked.draws,
            "statements": len(statements),
            "conditions": [cell.condition.key for cell in grid],
            "templates": _template_ids(len(statements), grid, asked.number),
        },
    )
    return Planned(plan=plan, statements=statements, cells=grid, draws=asked.draws, number=asked.number)


def balanced(statements: Sequence[Statement], size: int, seed: int) -> tuple[Statement, ...]:
    """Choose statements, as evenly over the categories as these allow; all of them where there are no more than that.

    The choice depends on ids and seed alone, and is given in the order of ``statements``.
    """
    if len(statements) <= size:
        return tuple(statements)
    by_category: dict[str, list[Statement]] = defaultdict(list)
    for one in sorted(statements, key=lambda one: digest(str(seed), one.id)):
        by_category[one.category or ""].append(one)
    ranked = sorted(
        (place, category, one.id) for category, found in by_category.items() for place, one in enumerate(found)
    )
    chosen = {statement_id for _, _, statement_id in ranked[:size]}
    return tuple(one for one in statements if one.id in chosen)


def _check(statements: Sequence[Statement], grid: Sequence[Cell]) -> None:
    for task in dict.fromkeys(cell.condition.task for cell in grid):
        for statement in statements:
            missing = missing_for(task, statement)
            if missing:
                raise InputError(f"statement {statement.id!r} has no {', '.join(missing)}, which {task} shows")


def _items(statements: Sequence[Statement], grid: Sequence[Cell], number: int) -> Iterator[Item]:
    for cell in grid:
        for index, statement in enumerate(statements):
            for template in cell.templates_for(index, number):
                yield Item(statement=statement, template=template)


def _template_ids(statements: int, grid: Sequence[Cell], number: int) -> list[str]:
    used = {one.template_id for cell in grid for at in range(statements) for one in cell.templates_for(at, number)}
    return sorted(used)


def _identity(asked: Asked, statements: Sequence[Statement], grid: Sequence[Cell]) -> str:
    """Give twelve hexadecimal digits that change with anything that is asked, its words included."""
    first = statements[0]
    wordings = [
        [cell.condition.key, template.template_id, *(one.content for one in ask(first, template))]
        for cell in grid
        for template in cell.templates
    ]
    whole = {
        "version": _VERSION,
        "design": asked.design,
        "draws": asked.draws,
        "seed": asked.seed,
        "number": asked.number,
        "statements": [record_of(one) for one in statements],
        "wordings": wordings,
    }
    return digest(json.dumps(whole, sort_keys=True, ensure_ascii=False), size=6)


def digest(*parts: str, size: int = 16) -> str:
    """Give a hexadecimal digest of some words."""
    return blake2b("\x1f".join(parts).encode(), digest_size=size).hexdigest()
