"""Estimate the union rate of single days, for a chart over time.

These are rates of what was asked on a day, without weights by condition: days on which other conditions were asked do
not compare. Drift is tested on standardised rates (``auditor.monitor``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np

from auditor.counting.joint import JointTable, stored_cell
from auditor.counting.stored import Row
from auditor.domain.estimate import Estimate, Insufficient
from auditor.metrics.estimate import estimate
from auditor.metrics.rates import METRICS

_UNION: Final = METRICS["ber_union_full"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DayEstimate:
    """The union rate of one day (UTC), full base."""

    day: date
    estimate: Estimate | Insufficient


def estimate_days(rows: Iterable[Row], seed: int) -> list[DayEstimate]:
    """Estimate each day of which there are rows, the first day first.

    Parameters
    ----------
    rows
        Counts as ``auditor.store.tallies.read_days`` gives them.
    seed
        Seed of the bounds for rare rates.
    """
    days: dict[date, list[Row]] = {}
    for row in rows:
        days.setdefault(row["day"], []).append(row)
    return [DayEstimate(day=day, estimate=estimate_rows(days[day], seed)) for day in sorted(days)]


def estimate_rows(rows: Sequence[Row], seed: int) -> Estimate | Insufficient:
    """Estimate the union rate of some rows together."""
    clusters: dict[str, int] = {}
    cluster = np.array([clusters.setdefault(row["cluster"], len(clusters)) for row in rows], dtype=np.int64)
    inclusion = np.array([row["inclusion"] for row in rows], dtype=np.float64)
    weighted = bool(len(rows)) and inclusion.min() < inclusion.max()
    table = JointTable(
        cluster=cluster,
        cell=np.array([stored_cell(row) for row in rows], dtype=np.int64),
        count=np.array([row["n"] for row in rows], dtype=np.int64),
        n_clusters=len(clusters),
        weight=1 / inclusion if weighted else None,
    )
    return estimate(_UNION, table, seed=seed)
