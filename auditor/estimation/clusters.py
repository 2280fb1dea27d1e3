"""Describe the clusters of an analysis, and find fields whose values join them although answers differ by value."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import UNSET, UnsetType
from scipy import special

from auditor.counting.joint import Floats, Ints
from auditor.counting.rows import STATEMENT
from auditor.counting.tallies import Tallies
from auditor.documents.analysis import ClusterCount, ClustersEntry, CoarserEntry
from auditor.estimation.grid import rubric_profiles
from auditor.metrics.rates import METRICS
from auditor.stats.crossed import crossed_rate

#: The measure whose answers are compared.
_MEASURE: Final = METRICS["ber_union_full"]
#: A field is named if it would widen an interval this much, and chance alone would seldom show it.
MATERIAL: Final = 1.2
UNLIKELY: Final = 0.01


def clusters_entry(tallies: Tallies, fields: Sequence[str]) -> ClustersEntry | UnsetType:
    """Return the entry of ``clusters``; unset for statements that no field joins."""
    coarser = [found for name, groups in sorted(tallies.coarser.items()) if (found := _coarser(tallies, name, groups))]
    if not fields and not coarser:
        return UNSET
    used = [ClusterCount(field=name, n_clusters=len(np.unique(way))) for name, way in tallies.ways.items()]
    return ClustersEntry(fields=fields, used=used, coarser=coarser)


def _coarser(tallies: Tallies, name: str, groups: Ints) -> CoarserEntry | None:
    """Return the entry of a field if its values differ more than its clusters would by chance."""
    profiles = rubric_profiles(tallies, STATEMENT)
    if not profiles:
        return None
    entries = tallies.entries(profiles)
    y, n = (
        np.bincount(
            tallies.cluster[entries],
            weights=side.ravel()[tallies.cells(entries)] * tallies.count[entries],
            minlength=tallies.n_clusters,
        ).astype(np.float64)
        for side in (_MEASURE.numerator, _MEASURE.denominator)
    )
    asked = n > 0
    y, n, groups = y[asked], n[asked], groups[asked]
    p = _between(y / n, groups)
    if p is None or p >= UNLIKELY:
        return None
    own, wide = (crossed_rate(y, n, [way]).se for way in (np.arange(len(n)), groups))
    if not 0 < own * MATERIAL <= wide < np.inf:
        return None
    return CoarserEntry(field=name, n_clusters=len(np.unique(groups)), widening=wide / own, p=p)


def _between(rates: Floats, groups: Ints) -> float | None:
    """Return the p value of the F test of groups of clusters with equal means; None where nothing can be compared."""
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    df_between, df_within = len(sizes) - 1, len(rates) - len(sizes)
    if df_between < 1 or df_within < 1:
        return None
    means = np.bincount(group, weights=rates) / sizes
    within = float(((rates - means[group]) ** 2).sum()) / df_within
    between = float((sizes * (means - rates.mean()) ** 2).sum()) / df_between
    if within == 0:
        return 0.0 if between > 0 else None
    return float(special.fdtrc(df_between, df_within, between / within))
