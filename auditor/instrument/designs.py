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
from auditor.instrument.templates import Template, canonical_of, templates_of


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
#: Statements of a sentinel. The watch of two layers, and verdicts on them, need 100 with answers that both could read.
SENTINEL_SIZE: Final = 120

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


class Choice(StrEnum):
    """In which of a cell's templates a statement is asked."""

    ALL = "all"
    BY_STATEMENT = "by_statement"  #: one, ``templates[statement mod n]``: the same in every pass
    ROTATING = "rotating"  #: one, ``templates[(statement + pass) mod n]``


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A condition and the templates it is asked in."""

    condition: Condition
    templates: tuple[Template, ...]
    choice: Choice

    @property
    def per_statement(self) -> int:
        """How many questions it puts about each statement."""
        return len(self.templates) if self.choice is Choice.ALL else 1

    def templates_for(self, statement: int, number: int) -> tuple[Template, ...]:
        """Give the templates in which the statement of this index is asked in the pass of this number."""
        if self.choice is Choice.ALL:
            return self.templates
        place = statement + number if self.choice is Choice.ROTATING else statement
        return (self.templates[place % len(self.templates)],)


@dataclass(frozen=True, kw_only=True, slots=True)
class Variation:
    """What may be asked for beside the design.

    Parameters
    ----------
    levels
        Of factors, for the crossed designs; a factor that is not named has the design's own.
    templates
        At most so many of a condition's paraphrases. Designs that use the canonical wording take paraphrases instead.
    """

    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    templates: int | None = None


def cells(design: Design, variation: Variation = Variation()) -> tuple[Cell, ...]:
    """Give the cells of a design.

    >>> len(cells(Design.OAT)), len(cells(Design.FACTORIAL)), len(cells(Design.SENTINEL))
    (21, 24, 3)
    """
    most = variation.templates
    if design is Design.OAT:
        return tuple(_canonical(one) if one == BASELINE else _paraphrased(one, most) for one in _one_at_a_time())
    crossed = _crossed({**_DEFAULT_LEVELS[design], **variation.levels})
    if design is Design.PANEL:
        return tuple(_paraphrased(one, most, Choice.ROTATING) for one in crossed)
    return tuple(_canonical(one) if most is None else _paraphrased(one, most) for one in crossed)


def _canonical(condition: Condition) -> Cell:
    """Half of the statements see the options in the other order, and each always in the same."""
    return Cell(condition=condition, templates=canonical_of(condition), choice=Choice.BY_STATEMENT)


def _paraphrased(condition: Condition, most: int | None, choice: Choice = Choice.ALL) -> Cell:
    return Cell(condition=condition, templates=templates_of(condition)[:most], choice=choice)


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
