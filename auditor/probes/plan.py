"""From a design and statements to a plan: its id, and the planned calls of each deployment, in the order of sending.

Nothing here is random and nothing is stored: the same questions make the same plan, whoever asks them when, so that a
run is resumed by asking for it again. ``run`` stores and sends what this gives.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from auditor.domain.condition import Condition
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
_VERSION: Final = 1


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
    """One question of a plan, whoever is asked."""

    statement: Statement
    condition: Condition
    template: Template
    draw: int

    @property
    def key(self) -> str:
        """Its name within the plan."""
        return f"{self.statement.id}\0{self.condition.key}\0{self.template.template_id}\0{self.draw}"

    @property
    def messages(self) -> tuple[Message, ...]:
        """The chat request."""
        return ask(self.statement, self.condition, self.template)


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """A plan and its questions in the order of sending, the same for every deployment."""

    plan: Plan
    items: tuple[Item, ...]

    def calls(self, deployment: str) -> tuple[PlannedCall, ...]:
        """Give the calls to one deployment; call n asks item n."""
        return tuple(
            PlannedCall(
                ref=f"{self.plan.id}.{_digest(deployment, item.key, size=12)}",
                plan_id=self.plan.id,
                deployment=deployment,
                statement_id=item.statement.id,
                condition=item.condition,
                template_id=item.template.template_id,
                draw=item.draw,
                position=position,
                invites_reason=item.template.invites_reason,
            )
            for position, item in enumerate(self.items)
        )

    @property
    def statements(self) -> dict[str, Statement]:
        """The statements that are asked about, by id."""
        return {item.statement.id: item.statement for item in self.items}


def make_plan(asked: Asked) -> Planned:
    """Make the plan.

    The order of sending is shuffled by the seed, so that a plan that stops early has asked a random part of itself.

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
    items = tuple(_items(asked, statements, grid))
    plan_id = f"{asked.design}-{_identity(asked, statements, grid)}"
    plan = Plan(
        id=plan_id,
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
            "templates": sorted({item.template.template_id for item in items}),
        },
    )
    shuffled = sorted(items, key=lambda item: _digest(str(asked.seed), plan_id, item.key))
    return Planned(plan=plan, items=tuple(shuffled))


def balanced(statements: Sequence[Statement], size: int, seed: int) -> tuple[Statement, ...]:
    """Choose statements, as evenly over the categories as these allow; all of them where there are no more than that.

    The choice depends on ids and seed alone, and is given in the order of ``statements``.
    """
    if len(statements) <= size:
        return tuple(statements)
    by_category: dict[str, list[Statement]] = defaultdict(list)
    for one in sorted(statements, key=lambda one: _digest(str(seed), one.id)):
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


def _items(asked: Asked, statements: Sequence[Statement], grid: Sequence[Cell]) -> Iterator[Item]:
    for cell in grid:
        for index, statement in enumerate(statements):
            for template in cell.templates_for(index, asked.number):
                for draw in range(asked.draws):
                    yield Item(statement=statement, condition=cell.condition, template=template, draw=draw)


def _identity(asked: Asked, statements: Sequence[Statement], grid: Sequence[Cell]) -> str:
    """Give twelve hexadecimal digits that change with anything that is asked, its words included."""
    first = statements[0]
    wordings = [
        [cell.condition.key, template.template_id, *(one.content for one in ask(first, cell.condition, template))]
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
    return _digest(json.dumps(whole, sort_keys=True, ensure_ascii=False), size=6)


def _digest(*parts: str, size: int = 16) -> str:
    return blake2b("\x1f".join(parts).encode(), digest_size=size).hexdigest()
