"""Measures and intervals as functions over data frames, without the rest of an analysis."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from auditor.documents.codec import canonical_bytes, decode
from auditor.documents.estimates import GroupEntry
from auditor.errors import UsageError
from auditor.estimation.analysis import Options, read_tallies
from auditor.estimation.entries import group_entry
from auditor.estimation.groups import Estimator
from auditor.estimation.judges import panels
from auditor.metrics.rates import METRICS
from auditor.stats.intervals import Interval, design_effect_wilson, logit_cluster_interval, wilson_interval
from biasmeter.frames import Rows, frame_of, records_of
from biasmeter.results import frame_of_groups

if TYPE_CHECKING:
    import pandas as pd

#: Intervals of a share by the name of their method: of events and trials by cluster.
_METHODS: Final[dict[str, Callable[[np.ndarray, np.ndarray, float], Interval]]] = {
    "wilson": lambda y, n, conf: wilson_interval(float(y.sum()), float(n.sum()), conf),
    "design_effect_wilson": design_effect_wilson,
    "logit_cluster": logit_cluster_interval,
}


def measures() -> "pd.DataFrame":
    """Return the measures, one row each: ``metric, base, kind, label, equation`` (of BiAxisAudit), ``help``.

    Examples
    --------
    >>> import biasmeter
    >>> biasmeter.measures().set_index("metric").loc["ir", "base"]
    'eligible'
    """
    names = ("base", "kind", "label", "equation", "help")
    return frame_of(
        {"metric": name, **{each: getattr(metric, each) for each in names}} for name, metric in METRICS.items()
    )


def measure(
    rows: Rows,
    metrics: str | Sequence[str] | None = None,
    *,
    by: Sequence[str] = (),
    cluster: Sequence[str] = ("statement_id",),
    seed: int = 0,
) -> "pd.DataFrame":
    """Estimate measures of coded rows. The numbers are those of `analyze` for the same groups.

    Parameters
    ----------
    rows
        Data frame or mappings with the columns of ``coded.jsonl``.
    metrics
        Names of `measures`. Default: all.
    by
        Columns to group by. Default: all rows in one group.
    cluster
        Columns whose values are the clusters of the intervals.

    Returns
    -------
    pandas.DataFrame
        Rows as in `Analysis.to_pandas`: columns of ``by``, ``rubric``, ``metric``, ``value``, ``low``, ``high``, ...

    Raises
    ------
    InputError
        A row cannot be counted.
    UsageError
        There is no such measure or column.

    Examples
    --------
    >>> import biasmeter
    >>> rows = [
    ...     {"id": i, "deployment": "a", "task": "BJ", "sel": "E" if i % 4 == 0 else "D", "elab": "D"}
    ...     for i in range(60)
    ... ]
    >>> found = biasmeter.measure(rows, "ber_union_full")
    >>> float(found.loc[0, "value"]), int(found.loc[0, "n"])
    (0.25, 60)
    """
    wanted = [metrics] if isinstance(metrics, str) else list(metrics or METRICS)
    for name in wanted:
        if name not in METRICS:
            raise UsageError(f"there is no measure {name!r}; known: {', '.join(METRICS)}")
    clustered = () if tuple(cluster) == ("statement_id",) else tuple(cluster)
    options = Options(by=tuple(by), cluster=clustered, seed=seed)
    tallies = read_tallies(records_of(rows), options)
    judges = panels(tallies.votes)
    differ = len(set(judges.values())) > 1
    groups = Estimator(tallies, seed=seed, panel_differs=differ, panels=judges).groups(tuple(by))
    # With the digits of analysis.json.
    entries = [decode(canonical_bytes(group_entry(group)), GroupEntry, "groups") for group in groups]
    frame = frame_of_groups(entries, list(by))
    return frame[frame["metric"].isin(wanted)].reset_index(drop=True)


def interval(
    rows: Rows, column: str, *, cluster: str | None = None, method: str = "design_effect_wilson", conf: float = 0.95
) -> Interval:
    """Compute a confidence interval of a share.

    Parameters
    ----------
    rows
        Data frame or mappings; rows without a value in ``column`` are left out.
    column
        Holds true and false, or 1 and 0.
    cluster
        The column whose values are the clusters, such as ``statement_id``. Default: each row is its own.
    method
        ``design_effect_wilson`` (for shares of all rows), ``logit_cluster`` (for shares of a random base), or
        ``wilson`` (for independent rows).
    conf
        Two-sided level.

    Returns
    -------
    Interval
        ``low`` and ``high``, in [0, 1].

    Raises
    ------
    UsageError
        There is no such method or column, or a value is neither true nor false.

    Examples
    --------
    >>> import biasmeter
    >>> found = biasmeter.interval([{"hit": i < 3} for i in range(10)], "hit", method="wilson")
    >>> round(found.low, 3), round(found.high, 3)
    (0.108, 0.603)
    """
    if method not in _METHODS:
        raise UsageError(f"there is no method {method!r}; known: {', '.join(_METHODS)}")
    events: dict[object, list[float]] = {}
    for number, record in enumerate(records_of(rows).records, start=1):
        value = record.get(column)
        if value is None:
            continue
        if value not in (0, 1):
            raise UsageError(f"row {number}: {column} must be true or false, 1 or 0, not {value!r}")
        events.setdefault(number if cluster is None else str(record.get(cluster)), []).append(float(value))
    if not events:
        raise UsageError(f"no row has a value in {column!r}")
    y, n = (np.array([how(each) for each in events.values()], dtype=float) for how in (sum, len))
    return _METHODS[method](y, n, conf)
