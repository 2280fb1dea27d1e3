"""Designs: which conditions are asked, in which templates. ``auditor.probes.plan`` crosses them with the statements.

INSTRUMENT section 1 defines them: ``sentinel`` (a cheap daily look), ``oat`` (one factor at a time), ``factorial``
(factors crossed) and ``panel`` (chosen conditions, the template rotating over statements and passes).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import Any, Final

from auditor.domain.condition import BASELINE, Condition, Perspective, Role, Sentiment, Task
from auditor.instrument.templates import Template, canonical, templates_of


class Design(StrEnum):
    """A plan's design."""

    SENTINEL = "sentinel"
    OAT = "oat"
    FACTORIAL = "factorial"
    PANEL = "panel"


#: The factors in the order of the instrument's Table II, with their levels, the baseline first.
FACTORS: Final[Mapping[str, type[StrEnum]]] = {
    "task": Task,
    "perspective": Perspective,
    "role": Role,
    "sentiment": Sentiment,
}
#: Statements of a sentinel, unless another number is asked for.
SENTINEL_SIZE: Final = 100

_FIXED_ANSWER: Final = (Task.CTO, Task.SC, Task.BJ)
#: What a crossed design varies where nothing else is asked for; a factor that is not named stays at its baseline.
_DEFAULT_LEVELS: Final[Mapping[Design, Mapping[str, tuple[str, ...]]]] = {
    Design.FACTORIAL: {
        "task": _FIXED_ANSWER,
        "perspective": (Perspective.SELF, Perspective.OTHERS),
        "role": (Role.NONE, Role.SOCIOLOGIST),
        "sentiment": (Sentiment.NEUTRAL, Sentiment.SKEPTICAL),
    },
    Design.PANEL: {"task": (*_FIXED_ANSWER, Task.RATE)},
    Design.SENTINEL: {"task": _FIXED_ANSWER},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A condition and the templates it is asked in.

    ``rotating``: each statement is asked in one of them, ``templates[(statement + pass) mod n]``; else in all.
    """

    condition: Condition
    templates: tuple[Template, ...]
    rotating: bool = False

    def templates_for(self, statement: int, number: int) -> tuple[Template, ...]:
        """Give the templates in which the statement of this index is asked in the pass of this number."""
        if not self.rotating:
            return self.templates
        return (self.templates[(statement + number) % len(self.templates)],)


@dataclass(frozen=True, kw_only=True, slots=True)
class Variation:
    """What may be asked for beside the design: levels of factors, and at most how many templates a condition gets."""

    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    templates: int | None = None


def cells(design: Design, variation: Variation = Variation()) -> tuple[Cell, ...]:
    """Give the cells of a design.

    >>> len(cells(Design.OAT)), len(cells(Design.FACTORIAL)), len(cells(Design.SENTINEL))
    (21, 24, 3)
    """
    most = variation.templates
    if design is Design.OAT:
        return tuple(
            Cell(condition=one, templates=(canonical(one.task),) if one == BASELINE else templates_of(one.task)[:most])
            for one in _one_at_a_time()
        )
    crossed = _crossed({**_DEFAULT_LEVELS[design], **variation.levels})
    if design is Design.PANEL:
        return tuple(Cell(condition=one, templates=templates_of(one.task)[:most], rotating=True) for one in crossed)
    return tuple(Cell(condition=one, templates=templates_of(one.task)[: most or 1]) for one in crossed)


def _one_at_a_time() -> tuple[Condition, ...]:
    others = (
        _condition({name: level})
        for name, levels in FACTORS.items()
        for level in levels
        if level != getattr(BASELINE, name)
    )
    return (BASELINE, *others)


def _crossed(levels: Mapping[str, Sequence[str]]) -> tuple[Condition, ...]:
    named = {name: levels.get(name, (getattr(BASELINE, name),)) for name in FACTORS}
    return tuple(_condition(dict(zip(named, chosen, strict=True))) for chosen in product(*named.values()))


def _condition(levels: Mapping[str, str]) -> Condition:
    made: dict[str, Any] = {name: FACTORS[name](level) for name, level in levels.items()}
    return Condition(**made)
