"""Compute which prompt factor moves a rate: shares of variance over the conditions (eta squared).

One-factor-at-a-time (OAT): the task over the whole grid, each other factor within its own slice, baseline included.
Factorial: main effects and two-way interactions of the crossed levels. ``auditor.stats.variance`` computes the sums.

Noise alone has a share above 0, so each share has an interval where the rates' replicates are given. In simulated
audits (``tests/bench/test_share_intervals.py``) it covers a true share of 0 in 97-99 % and others in 93-99 %;
with twenty statements and a share above one half, in 91 %.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final, Literal

import numpy as np
from msgspec import UNSET

from auditor.counting.conditions import BASELINE, FACTORS, Levels, off_baseline
from auditor.counting.joint import Floats
from auditor.documents.conditions import LevelRange
from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import ENOUGH_STATEMENTS, FEW_CLUSTERS, MIN_STATEMENTS
from auditor.stats.bootstrap import rate_replicates
from auditor.stats.sampled_templates import TemplateVariance
from auditor.stats.spread import range_interval
from auditor.stats.variance import Projection, factorial_projections, oneway_projection, squared_length_interval

Weights = Literal["responses", "equal"]
#: The interval holds for these templates alone.
FIXED_TEMPLATES: Final = "fixed_templates"
#: A condition was asked in one template, whose variance is taken from the other conditions.
ONE_TEMPLATE: Final = "one_template"
#: Bounds of one share.
Bounds = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Resampled:
    """The rates over resampled statements."""

    rates: Floats  #: shape [B, C]
    n_clusters: int  #: statements, at least 2
    templates: TemplateVariance | None = None  #: variance of the C rates; None where templates are taken as fixed
    seed: int = 0  #: seed of the draws of templates


@dataclass(frozen=True, kw_only=True, slots=True)
class CellCounts:
    """Successes and trials of one outcome by cell, shape [C], and the replicates that intervals are made of."""

    successes: Floats
    trials: Floats
    resampled: Resampled | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionCounts(CellCounts):
    """Counts by condition; entry i belongs to ``conditions[i]``."""

    conditions: Sequence[Levels]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shares:
    """Effects as shares of the response-level variance, each or why it is missing."""

    n: int  #: responses that entered
    effects: Mapping[str, float | Insufficient]
    intervals: Mapping[str, Bounds] = field(default_factory=dict)  #: 95 %, where replicates were given
    #: The same for these templates alone, where ``intervals`` treat templates as sampled.
    fixed: Mapping[str, Bounds] = field(default_factory=dict)
    imbalance: float | None = None  #: factorial: largest cell / smallest cell


def factor_slice(conditions: Sequence[Levels], factor: int) -> list[int]:
    """Find the conditions whose other factors are all at the baseline."""
    return [
        index
        for index, levels in enumerate(conditions)
        if all(levels[other] == BASELINE[other] for other in range(len(FACTORS)) if other != factor)
    ]


def eta_squared_oat(counts: ConditionCounts, weights: Weights = "responses") -> Shares:
    """Compute the share of variance by factor on the one-factor-at-a-time grid (BiAxisAudit section V-B, footnote 1).

    Parameters
    ----------
    counts
        Counts by condition; conditions with two or more factors off the baseline are off the grid and left out.
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
    >>> round(eta_squared_oat(counts).effects["task"], 9)
    0.25
    """
    on_grid = [i for i, c in enumerate(counts.conditions) if off_baseline(c) <= 1 and counts.trials[i] > 0]
    effects: dict[str, _Share | Insufficient] = {}
    for factor, name in enumerate(FACTORS):
        inside = set(on_grid if name == "task" else factor_slice(counts.conditions, factor))
        effects[name] = _oneway(counts, [i for i in on_grid if i in inside], factor, weights)
    return _shares(round(counts.trials[on_grid].sum()), effects)


def eta_squared_between(name: str, counts: CellCounts) -> Shares:
    """Compute the share of variance between cells that are the levels of one factor, such as deployments.

    Examples
    --------
    >>> counts = CellCounts(successes=np.array([1.0, 3.0]), trials=np.array([4.0, 4.0]))
    >>> round(eta_squared_between("deployment", counts).effects["deployment"], 9)
    0.25
    """
    cells = np.flatnonzero(counts.trials > 0).tolist()
    if len(cells) < 2:
        return Shares(n=round(counts.trials.sum()), effects={name: Insufficient(reason=f"one {name}")})
    projection = oneway_projection(cells, counts.trials[cells])
    return _shares(round(counts.trials.sum()), {name: _share(counts, cells, projection)})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Share:
    value: float
    bounds: Bounds | None
    fixed: Bounds | None


def _shares(n: int, effects: Mapping[str, _Share | Insufficient], imbalance: float | None = None) -> Shares:
    known = {name: each for name, each in effects.items() if isinstance(each, _Share)}
    return Shares(
        n=n,
        effects={name: each.value if isinstance(each, _Share) else each for name, each in effects.items()},
        intervals={name: each.bounds for name, each in known.items() if each.bounds is not None},
        fixed={name: each.fixed for name, each in known.items() if each.fixed is not None},
        imbalance=imbalance,
    )


def _share(counts: CellCounts, cells: Sequence[int], projection: Projection) -> _Share | Insufficient:
    successes, trials = counts.successes[cells], counts.trials[cells]
    if not 0 < successes.sum() < trials.sum():
        return Insufficient(reason="the outcome does not vary")
    vector = projection.vector(successes / trials)
    bounds = fixed = None
    if (resampled := counts.resampled) is not None:
        replicates = resampled.rates[:, cells]
        bounds = _share_bounds(projection, vector, replicates, resampled.n_clusters)
        if resampled.templates is not None:
            templates, fixed = resampled.templates.subset(cells), bounds
            weights = projection.weights / projection.weights.sum()
            df = templates.total_df(replicates.var(axis=0, ddof=1), weights, resampled.n_clusters)
            replicates = replicates + templates.noise(len(replicates), resampled.seed)
            bounds = _share_bounds(projection, vector, replicates, df + 1)
    return _Share(value=float(vector @ vector), bounds=bounds, fixed=fixed)


def _share_bounds(projection: Projection, vector: Floats, rates: Floats, n_clusters: float) -> Bounds:
    # Noise of templates may lead out of the range of rates.
    replicates = projection.vector(np.clip(rates, 0.0, 1.0))
    # A replicate in which the outcome does not vary has no information.
    replicates = np.where(np.isfinite(replicates), replicates, vector)
    interval = squared_length_interval(vector, replicates, n_clusters)
    return interval.low, min(1.0, interval.high)


def _oneway(counts: ConditionCounts, indices: Sequence[int], factor: int, weights: Weights) -> _Share | Insufficient:
    levels = [counts.conditions[i][factor] for i in indices]
    if len(set(levels)) < 2:
        return Insufficient(reason="one level" if levels else "no condition with the other factors at the baseline")
    trials = counts.trials[indices]
    projection = oneway_projection(levels, trials if weights == "responses" else np.ones_like(trials))
    return _share(counts, indices, projection)


def factorial_shares(counts: ConditionCounts) -> Shares | Insufficient:
    """Share of variance by effect on the crossed levels (BiAxisAudit Table IV), Type II where cells differ in size.

    Parameters
    ----------
    counts
        Counts by condition; those without a trial are skipped.

    Returns
    -------
    Shares or Insufficient
        Shares over all conditions where they are a factorial, else over ``crossing``; Insufficient where there is none.
        Effects are named ``task`` or ``task:sentiment``; a factor with one level is Insufficient.
    """
    seen = [i for i in range(len(counts.conditions)) if counts.trials[i] > 0]
    conditions = [counts.conditions[i] for i in seen]
    shape = tuple(max(1, len(each)) for each in _levels(conditions))
    if max(shape) < 2:
        return Insufficient(reason="one condition")
    crossed = [seen[i] for i in crossing(conditions)]
    if not crossed:
        empty = int(np.prod(shape)) - len(seen)
        return Insufficient(reason=f"not a factorial: {empty} of {np.prod(shape)} cells are empty")
    cells = sorted(crossed, key=lambda i: counts.conditions[i])
    levels = _levels([counts.conditions[i] for i in cells])
    trials = counts.trials[cells].reshape([len(each) for each in levels])
    effects: dict[str, _Share | Insufficient] = {
        name: Insufficient(reason="one level") for name, each in zip(FACTORS, levels, strict=True) if len(each) < 2
    }
    for effect, projection in factorial_projections(trials).items():
        share = _share(counts, cells, projection)
        if isinstance(share, Insufficient):
            return share
        effects[":".join(FACTORS[factor] for factor in effect)] = share
    return _shares(round(trials.sum()), effects, imbalance=float(trials.max() / trials.min()))


def crossing(conditions: Sequence[Levels]) -> list[int]:
    """Find the conditions of a crossed design among all that were asked.

    Parameters
    ----------
    conditions
        All different, of any number of designs.

    Returns
    -------
    list of int
        All of them if they are all combinations of their levels. Otherwise the conditions with the levels that occur in
        conditions with two or more factors off the baseline, and with a factor's baseline level if that was asked as
        completely. None if a combination of these levels is missing.

    Examples
    --------
    One factor at a time, and two of the factors crossed.

    >>> tasks = [(task, "self", "none", "neutral") for task in ("BJ", "CTO", "Rate")]
    >>> tones = [(task, "self", "none", "skeptical") for task in ("BJ", "CTO")]
    >>> crossing([*tasks, *tones]), crossing([*tasks, tones[0]])
    ([0, 1, 3, 4], [])
    """
    place = {condition: index for index, condition in enumerate(conditions)}
    levels = _levels(conditions)
    if not _complete(levels, place):
        levels = _levels([condition for condition in conditions if off_baseline(condition) >= 2])
        if not _complete(levels, place):
            return []
        for factor, base in enumerate(BASELINE):
            wider = [sorted({*names, base}) if other == factor else names for other, names in enumerate(levels)]
            levels = wider if _complete(wider, place) else levels
    return sorted(place[condition] for condition in _combinations(levels))


def _levels(conditions: Sequence[Levels]) -> list[list[str]]:
    return [sorted({condition[factor] for condition in conditions}) for factor in range(len(FACTORS))]


def _complete(levels: Sequence[Sequence[str]], places: Mapping[Levels, int]) -> bool:
    return all(levels) and all(combination in places for combination in _combinations(levels))


def _combinations(levels: Sequence[Sequence[str]]) -> list[Levels]:
    tasks, perspectives, roles, sentiments = levels
    return list(product(tasks, perspectives, roles, sentiments))


def horizontal_range(
    levels: Sequence[str],
    successes: Floats,
    trials: Floats,
    *,
    n_boot: int,
    seed: int,
    templates: TemplateVariance | None = None,
) -> LevelRange | Insufficient:
    """Compute the range over levels, with an interval for the range of the true rates (BiAxisAudit section III-E).

    Parameters
    ----------
    levels
        Names, C of them.
    successes, trials
        Shape [S, C]: by statement and level.
    n_boot, seed
        Size and seed of the paired statement bootstrap.
    templates
        Variance that the choice of templates adds to the C rates; None takes templates as fixed.

    Returns
    -------
    LevelRange or Insufficient
        Levels with fewer than ``MIN_STATEMENTS`` statements are left out, and named.
    """
    statements = np.count_nonzero(trials, axis=0)
    kept = np.flatnonzero(statements >= MIN_STATEMENTS)
    left_out = tuple(level for index, level in enumerate(levels) if index not in set(kept.tolist()))
    if len(kept) < 2:
        reason = "one level" if len(levels) < 2 else f"fewer than two levels with {MIN_STATEMENTS} statements"
        return Insufficient(reason=reason)
    used = trials[:, kept].sum(axis=1) > 0
    y, n = successes[np.ix_(used, kept)], trials[np.ix_(used, kept)]
    rates, replicates = rate_replicates(y, n, n_boot=n_boot, seed=seed)
    fewest = int(statements[kept].min())
    kept_templates = None if templates is None else templates.subset(kept.tolist())
    fixed = range_interval(rates, replicates, fewest)
    spread = (
        fixed
        if kept_templates is None
        else range_interval(rates, replicates, fewest, templates=kept_templates, seed=seed)
    )
    return LevelRange(
        min=float(rates.min()),
        max=float(rates.max()),
        min_at=levels[kept[spread.smallest]],
        max_at=levels[kept[spread.largest]],
        range=spread.range,
        range_corrected=spread.corrected,
        low=spread.low,
        high=min(1.0, spread.high),
        fixed=UNSET if kept_templates is None else (fixed.low, min(1.0, fixed.high)),
        n_statements=fewest,
        left_out=left_out,
        flags=((FEW_CLUSTERS,) if fewest < ENOUGH_STATEMENTS else ())
        + ((ONE_TEMPLATE,) if one_template(kept_templates) else ()),
    )


def one_template(templates: TemplateVariance | None) -> bool:
    """Return whether some rates are of a single template, and take their templates' variance from the others."""
    return templates is not None and bool(templates.borrowed.any())
