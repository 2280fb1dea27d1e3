"""Which prompt factor moves a rate: shares of variance over the conditions (eta squared).

One-factor-at-a-time (OAT): the task over the whole grid, each other factor within its own slice, baseline included.
Factorial: main effects and two-way interactions of the crossed levels. ``auditor.stats.variance`` does the sums.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from auditor.domain import condition
from auditor.domain.estimate import Insufficient
from auditor.metrics.joint import Floats
from auditor.stats.variance import eta_squared_factorial, eta_squared_oneway

#: The factors of a condition, in the order of a condition's values.
FACTORS: Final = ("task", "perspective", "role", "sentiment")
#: A condition as rows give it: (task, perspective, role, sentiment). Levels need not be those of the instrument.
Levels = tuple[str, str, str, str]
#: The baseline condition.
BASELINE: Final[Levels] = (
    condition.BASELINE.task.value,
    condition.BASELINE.perspective.value,
    condition.BASELINE.role.value,
    condition.BASELINE.sentiment.value,
)
Weights = Literal["responses", "equal"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionCounts:
    """Successes and trials of one outcome by condition; entry i belongs to ``conditions[i]``."""

    conditions: Sequence[Levels]
    successes: Floats
    trials: Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Shares:
    """Effects as shares of the response-level variance, each or why it is missing."""

    n: int  #: responses that entered
    effects: Mapping[str, float | Insufficient]
    imbalance: float | None = None  #: factorial: largest cell / smallest cell


def off_baseline(levels: Levels) -> int:
    """Count the factors that differ from the baseline."""
    return sum(value != base for value, base in zip(levels, BASELINE, strict=True))


def own_slice(conditions: Sequence[Levels], factor: int) -> list[int]:
    """Find the conditions whose other factors are all at the baseline."""
    return [
        index
        for index, levels in enumerate(conditions)
        if all(levels[other] == BASELINE[other] for other in range(len(FACTORS)) if other != factor)
    ]


def eta_squared_oat(counts: ConditionCounts, weights: Weights = "responses") -> Shares:
    """Share of variance by factor on the one-factor-at-a-time grid (BiAxisAudit section V-B, footnote 1).

    Parameters
    ----------
    counts
        By condition; conditions with two or more factors off the baseline are not on the grid and are left out.
    weights
        ``responses`` as the paper, or ``equal``: each condition the same weight (the baseline has 1 of 20 templates).

    Returns
    -------
    Shares
        A factor with one level in its slice is Insufficient.

    Examples
    --------
    >>> counts = ConditionCounts(
    ...     conditions=[BASELINE, ("CTO", "self", "none", "neutral")],
    ...     successes=np.array([1.0, 3.0]),
    ...     trials=np.array([4.0, 4.0]),
    ... )
    >>> eta_squared_oat(counts).effects["task"]
    0.25
    """
    on_grid = [i for i, c in enumerate(counts.conditions) if off_baseline(c) <= 1 and counts.trials[i] > 0]
    effects: dict[str, float | Insufficient] = {}
    for factor, name in enumerate(FACTORS):
        own = set(on_grid if name == "task" else own_slice(counts.conditions, factor))
        effects[name] = _oneway(counts, [i for i in on_grid if i in own], factor, weights)
    return Shares(n=int(counts.trials[on_grid].sum()), effects=effects)


def _oneway(counts: ConditionCounts, indices: Sequence[int], factor: int, weights: Weights) -> float | Insufficient:
    levels = sorted({counts.conditions[i][factor] for i in indices})
    if len(levels) < 2:
        return Insufficient(reason="one level" if levels else "no condition with the other factors at the baseline")
    successes, trials = np.zeros(len(levels)), np.zeros(len(levels))
    for i in indices:
        scale = 1.0 if weights == "responses" else 1.0 / counts.trials[i]
        level = levels.index(counts.conditions[i][factor])
        successes[level] += counts.successes[i] * scale
        trials[level] += counts.trials[i] * scale
    share = eta_squared_oneway(successes, trials)
    return Insufficient(reason="the outcome does not vary") if share is None else share


def factorial_shares(counts: ConditionCounts) -> Shares | Insufficient:
    """Share of variance by effect on the crossed levels (BiAxisAudit Table IV), Type II where cells differ in size.

    Parameters
    ----------
    counts
        By condition; the levels of a factor are those seen with a trial.

    Returns
    -------
    Shares or Insufficient
        Insufficient where a cell of the crossing is empty: the grid is no factorial. Effects are named ``task`` or
        ``task:sentiment``; a factor with one level is Insufficient.
    """
    seen = [i for i in range(len(counts.conditions)) if counts.trials[i] > 0]
    levels = [sorted({counts.conditions[i][factor] for i in seen}) for factor in range(len(FACTORS))]
    shape = tuple(max(1, len(each)) for each in levels)
    if max(shape) < 2:
        return Insufficient(reason="one condition")
    successes, trials = np.zeros(shape), np.zeros(shape)
    for i in seen:
        place = tuple(levels[factor].index(counts.conditions[i][factor]) for factor in range(len(FACTORS)))
        successes[place] += counts.successes[i]
        trials[place] += counts.trials[i]
    empty = int((trials == 0).sum())
    if empty:
        return Insufficient(reason=f"not a factorial: {empty} of {trials.size} cells are empty")
    shares = eta_squared_factorial(successes, trials)
    if shares is None:
        return Insufficient(reason="the outcome does not vary")
    effects: dict[str, float | Insufficient] = {
        name: Insufficient(reason="one level") for name, each in zip(FACTORS, levels, strict=True) if len(each) < 2
    }
    effects |= {":".join(FACTORS[factor] for factor in effect): share for effect, share in shares.items()}
    return Shares(n=int(trials.sum()), effects=effects, imbalance=float(trials.max() / trials.min()))
