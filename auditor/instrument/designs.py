"""Define the designs: the conditions and templates of a plan. ``auditor.probes.plan`` crosses them with the statements.

INSTRUMENT section 1 defines them: ``sentinel`` (a cheap daily check), ``oat`` (one factor at a time), ``factorial``
(factors crossed) and ``panel`` (chosen conditions, the template rotates over statements and passes).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import Any, Final

from auditor.domain.condition import BASELINE, Condition, Perspective, Role, Sentiment, Task
from auditor.instrument.templates import Template, canonical_of, in_other_order, templates_of


class Design(StrEnum):
    """The design of a plan."""

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
#: Statements of a sentinel. Monitoring of two-layer measures needs 100 statements with eligible answers.
SENTINEL_SIZE: Final = 120

_FIXED_ANSWER: Final = (Task.CTO, Task.SC, Task.BJ)
#: The levels of a crossed design by default; a factor that is not named stays at its baseline.
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


#: Designs with both orders of the answers by default; the others are the paper's, which has one for BJ and Rate.
_BOTH_ORDERS: Final = frozenset({Design.SENTINEL, Design.PANEL})


class TemplateChoice(StrEnum):
    """The choice of a cell's templates for one statement."""

    ALL = "all"
    BY_STATEMENT = "by_statement"  #: one, ``templates[statement mod n]``: the same in every pass
    ROTATING = "rotating"  #: one, ``templates[(statement + pass) mod n]``


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A condition and its templates."""

    condition: Condition
    templates: tuple[Template, ...]
    choice: TemplateChoice
    both_orders: bool = False  #: whether every second question has its answers in the other order

    @property
    def per_statement(self) -> int:
        """Return the number of questions per statement."""
        return len(self.templates) if self.choice is TemplateChoice.ALL else 1

    def templates_for(self, statement: int, number: int) -> tuple[Template, ...]:
        """Return the templates of a statement in a pass; both are given by their index."""
        if self.choice is TemplateChoice.ALL:
            return tuple(self._ordered(template, statement + at) for at, template in enumerate(self.templates))
        return (self.rotated(statement, number if self.choice is TemplateChoice.ROTATING else 0),)

    def rotated(self, statement: int, number: int) -> Template:
        """Return the template of a statement where templates rotate over statements and passes."""
        place = statement + number
        # Statements that share a template in a pass lie as many places apart as there are templates.
        cycle = place + statement // len(self.templates)
        return self._ordered(self.templates[place % len(self.templates)], cycle)

    def _ordered(self, template: Template, cycle: int) -> Template:
        return in_other_order(template) if self.both_orders and cycle % 2 else template

    @property
    def wordings(self) -> tuple[Template, ...]:
        """The templates in every order in which they are used."""
        if not self.both_orders:
            return self.templates
        return tuple(dict.fromkeys((*self.templates, *map(in_other_order, self.templates))))


@dataclass(frozen=True, kw_only=True, slots=True)
class DesignVariation:
    """The options of a design.

    Parameters
    ----------
    levels
        Levels by factor, for the crossed designs; a factor that is not named has the default levels of the design.
    templates
        Maximum number of paraphrases per condition. Designs with the canonical wording then use paraphrases instead.
    both_orders
        Whether every second question has its answers in the other order, so that a preference for the first answer or
        for high numbers cancels out. None: in all designs but the paper's, ``oat`` and ``factorial``.
    """

    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    templates: int | None = None
    both_orders: bool | None = None


def cells(design: Design, variation: DesignVariation = DesignVariation()) -> tuple[Cell, ...]:
    """Return the cells of a design.

    >>> len(cells(Design.OAT)), len(cells(Design.FACTORIAL)), len(cells(Design.SENTINEL))
    (21, 24, 3)
    """
    most, both = variation.templates, variation.both_orders
    if both is None:
        both = design in _BOTH_ORDERS
    if design is Design.OAT:
        return tuple(
            _canonical(condition, both=both) if condition == BASELINE else _paraphrased(condition, most, both=both)
            for condition in _one_at_a_time()
        )
    crossed = _crossed({**_DEFAULT_LEVELS[design], **variation.levels})
    if design is Design.PANEL:
        return tuple(_paraphrased(condition, most, TemplateChoice.ROTATING, both=both) for condition in crossed)
    return tuple(
        _canonical(condition, both=both) if most is None else _paraphrased(condition, most, both=both)
        for condition in crossed
    )


def _canonical(condition: Condition, *, both: bool) -> Cell:
    """Return the canonical cell; a fixed half of the statements has the answers in the other order, where there is one.

    Options have both orders in every design.
    """
    templates = canonical_of(condition)
    if both:
        templates = tuple(dict.fromkeys((*templates, *map(in_other_order, templates))))
    return Cell(condition=condition, templates=templates, choice=TemplateChoice.BY_STATEMENT)


def _paraphrased(
    condition: Condition, most: int | None, choice: TemplateChoice = TemplateChoice.ALL, *, both: bool
) -> Cell:
    return Cell(condition=condition, templates=templates_of(condition)[:most], choice=choice, both_orders=both)


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
