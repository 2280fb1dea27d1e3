"""Define the conditions of rows: the factors, the baseline, the names of conditions, and the order of levels."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from auditor.domain import condition

#: The factors of a condition, in the order of a condition's values.
FACTORS: Final[tuple[condition.Factor, ...]] = ("task", "perspective", "role", "sentiment")
#: A condition as rows give it: (task, perspective, role, sentiment). Levels need not be those of the instrument.
Levels = tuple[str, str, str, str]
#: The baseline condition.
BASELINE: Final[Levels] = (
    condition.BASELINE.task.value,
    condition.BASELINE.perspective.value,
    condition.BASELINE.role.value,
    condition.BASELINE.sentiment.value,
)
#: The task of clients' traffic, which has no condition.
TRAFFIC: Final = "traffic"
_KINDS: Final[tuple[type[StrEnum], ...]] = (
    condition.Task,
    condition.Perspective,
    condition.Role,
    condition.Sentiment,
)
#: The instrument's levels by factor, each with its position.
_LEVELS: Final[Mapping[str, Mapping[str, int]]] = {
    factor: {level.value: place for place, level in enumerate(levels)}
    for factor, levels in zip(FACTORS, _KINDS, strict=True)
}


def off_baseline(levels: Levels) -> int:
    """Count the factors that differ from the baseline."""
    return sum(value != base for value, base in zip(levels, BASELINE, strict=True))


def condition_name(levels: Levels) -> str:
    """Return the name of a condition: its levels that differ from the baseline.

    Examples
    --------
    >>> condition_name(("CTO", "self", "none", "skeptical")), condition_name(BASELINE)
    ('CTO + skeptical', 'baseline')
    """
    return " + ".join(level for level, base in zip(levels, BASELINE, strict=True) if level != base) or "baseline"


def single_factor_condition(factor: str, level: str) -> Levels:
    """Return the condition that differs from the baseline in one factor only."""
    levels = [level if name == factor else base for name, base in zip(FACTORS, BASELINE, strict=True)]
    task, perspective, role, sentiment = levels
    return task, perspective, role, sentiment


def level_order(factor: str, level: str) -> tuple[int, str]:
    """Sort levels: the instrument's in its order, the baseline first; then any others by name.

    Examples
    --------
    >>> sorted(["chef", "military", "none", "artist"], key=lambda level: level_order("role", level))
    ['none', 'military', 'artist', 'chef']
    """
    known = _LEVELS[factor]
    return known.get(level, len(known)), level
