"""All comparisons of a group judged at once: p values that know how many there are."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from auditor.metrics.rates import BY_NAME
from auditor.stats.bootstrap import bootstrap_totals
from auditor.stats.max_t import simultaneous_intervals
from replay.comparison.compare import in_base
from replay.comparison.sides import Sides

#: One comparison: the places of two sides, and a measure.
Compared = tuple[int, int, str]
#: The probability of finding anything where nothing changed.
ERROR: Final = 0.05


def adjusted(sides: Sides, compared: Sequence[Compared], *, n_boot: int, seed: int) -> Mapping[Compared, float]:
    """Adjust for all comparisons of a group: max-T over the paired statement bootstrap (Westfall and Young 1993).

    Answers to one statement are drawn together, and all pairs and measures from the same draws, so that ten ways to
    say the same count as little more than one.

    Parameters
    ----------
    sides
        All of the group.
    compared
        Each with two statements or more in which both answers are in the measure's base.
    n_boot, seed
        Of the bootstrap; B at least 20.

    Returns
    -------
    dict
        p of each, no less than 1 / (B + 1): how often nothing but chance makes some comparison of the group as large.
    """
    if not compared:
        return {}
    sums = [_sums(sides, one) for one in compared]
    changes, pairs = (np.stack(each, axis=1) for each in zip(*sums, strict=True))
    values = changes.sum(axis=0) / pairs.sum(axis=0)
    changed, drawn = np.split(bootstrap_totals(np.hstack([changes, pairs]), n_boot, seed), 2, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        replicates = changed / drawn
    # A replicate that drew no pair of a comparison says nothing new of it.
    replicates = np.where(np.isfinite(replicates), replicates, values)
    clusters = np.count_nonzero(pairs, axis=0)
    found = simultaneous_intervals(values, replicates, clusters, conf=1 - ERROR, least_se=1 / clusters)
    return dict(zip(compared, found.p.tolist(), strict=True))


def _sums(sides: Sides, compared: Compared) -> tuple[np.ndarray, np.ndarray]:
    """Sum the changes and the pairs of each statement; shape [G] each."""
    *places, name = compared
    metric, pair = BY_NAME[name], (places[0], places[1])
    both = in_base(sides, pair, metric).astype(np.float64)
    worth = sides.worth(metric.numerator)[:, pair]
    return sides.by_statement((worth[:, 1] - worth[:, 0]) * both), sides.by_statement(both)
