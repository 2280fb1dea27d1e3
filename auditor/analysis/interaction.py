"""Do task and tone add up? The selection's rate over their crossing (BiAxisAudit section V-D and Figure 7)."""

import numpy as np

from auditor.analysis.averages import joined
from auditor.analysis.document import Json, estimate_json, missing
from auditor.analysis.grid import Grid, rubric_profiles
from auditor.analysis.rows import STATEMENT
from auditor.analysis.tallies import Tallies
from auditor.domain.estimate import Estimate, Insufficient
from auditor.metrics.estimate import estimate
from auditor.metrics.joint import JointTable
from auditor.metrics.rates import BY_NAME
from auditor.metrics.shares import crossing

_RATE = BY_NAME["ber_sel_full"]


def interaction(tallies: Tallies, *, seed: int) -> list[Json]:
    """Write the entries of ``interaction``: each task under each tone of the crossed design, over its other factors.

    The pooled rate has its interval; the mean and the standard deviation (with one degree of freedom less) are of the
    deployments' rates. Without a crossing of tasks that ask for a selection with tones there is no entry.
    """
    profiles = rubric_profiles(tallies, STATEMENT)
    if not profiles:
        return []
    grid = Grid.of(tallies, profiles)
    _, n = grid.sums(_RATE)
    selecting = np.flatnonzero(n.any(axis=(0, 2))).tolist()
    crossed = [selecting[index] for index in crossing([grid.conditions[index] for index in selecting])]
    cells: dict[tuple[str, str], list[int]] = {}
    for index in crossed:
        task, _, _, sentiment = grid.conditions[index]
        cells.setdefault((task, sentiment), []).append(index)
    if min(len({task for task, _ in cells}), len({sentiment for _, sentiment in cells})) < 2:
        return []
    return [
        {
            "rubric": STATEMENT,
            "task": task,
            "sentiment": sentiment,
            **_cell_json(grid.tables(own), seed),
        }
        for (task, sentiment), own in sorted(cells.items())
    ]


def _cell_json(tables: dict[str, JointTable], seed: int) -> dict[str, Json]:
    pooled = joined(list(tables.values()))
    own = [estimate(_RATE, table, seed=seed) for table in tables.values()]
    rates = [each.value for each in own if isinstance(each, Estimate)]
    lacking = [each for each in own if isinstance(each, Insufficient)]
    alone = missing(Insufficient(reason="one deployment"))
    return {
        "n": pooled.n,
        "n_deployments": len(tables),
        "ber_sel_full": estimate_json(estimate(_RATE, pooled, seed=seed)),
        "mean": missing(lacking[0]) if lacking else float(np.mean(rates)),
        "sd": missing(lacking[0]) if lacking else float(np.std(rates, ddof=1)) if len(rates) > 1 else alone,
    }
