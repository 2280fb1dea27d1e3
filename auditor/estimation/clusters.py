"""Describe the clusters of an analysis, and find fields whose values join them although answers differ by value."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import scipy
from msgspec import UNSET, UnsetType

from auditor.counting.joint import Floats, Ints
from auditor.counting.rows import STATEMENT
from auditor.counting.tallies import Tallies
from auditor.documents.analysis import ClusterCount, ClustersEntry, CoarserEntry
from auditor.estimation.grid import rubric_groups
from auditor.metrics.rates import METRICS
from auditor.stats.crossed import crossed_rate

#: The measure whose answers are compared.
_MEASURE: Final = METRICS["ber_union_full"]
#: A field is named if it would widen an interval this much, and chance alone would seldom show it.
MATERIAL: Final = 1.2
UNLIKELY: Final = 0.01


def clusters_entry(tallies: Tallies, fields: Sequence[str]) -> ClustersEntry | UnsetType:
    """Return the entry of ``clusters``; unset for statements that no field joins."""
    coarser = [entry for name, groups in sorted(tallies.coarser.items()) if (entry := _coarser(tallies, name, groups))]
    if not fields and not coarser:
        return UNSET
    used = [
        ClusterCount(field=name, n_clusters=len(np.unique(clusters))) for name, clusters in tallies.clusterings.items()
    ]
    return ClustersEntry(fields=fields, used=used, coarser=coarser)


def _coarser(tallies: Tallies, name: str, groups: Ints) -> CoarserEntry | None:
    """Return the entry of a field if its values differ more than its clusters would by chance."""
    group_indices = rubric_groups(tallies, STATEMENT)
    if not group_indices:
        return None
    entries = tallies.entries(group_indices)
    y, n = (
        np.bincount(
            tallies.cluster[entries],
            weights=side.ravel()[tallies.cells(entries)] * tallies.count[entries],
            minlength=tallies.n_clusters,
        ).astype(np.float64)
        for side in (_MEASURE.numerator, _MEASURE.denominator)
    )
    answered = n > 0
    y, n, groups = y[answered], n[answered], groups[answered]
    p = f_test(y / n, groups)
    if p is None or p >= UNLIKELY:
        return None
    narrow, wide = (crossed_rate(y, n, [clusters]).se for clusters in (np.arange(len(n)), groups))
    if not 0 < narrow * MATERIAL <= wide < np.inf:
        return None
    return CoarserEntry(field=name, n_clusters=len(np.unique(groups)), widening=wide / narrow, p=p)


def f_test(rates: Floats, groups: Ints) -> float | None:
    """Compute the p value of the F test that groups of clusters have equal means.

    Parameters
    ----------
    rates, groups
        Shape [S]: each cluster's rate, and its group, any numbers.

    Returns
    -------
    float or None
        None for one group, for groups of one cluster each, and where all rates are equal.
    """
    order = np.argsort(groups, kind="stable")
    parts = np.split(rates[order], np.flatnonzero(np.diff(groups[order])) + 1)
    if not 1 < len(parts) < len(rates):
        return None
    if all(np.ptp(part) == 0 for part in parts):  # F is undefined or infinite
        return 0.0 if np.ptp(rates) > 0 else None
    return float(scipy.stats.f_oneway(*parts).pvalue)
