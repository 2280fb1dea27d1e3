"""Estimate measures as people would find them: correct the coder's numbers by people's labels of a sample.

``CORRECTED`` needs labels of the elaboration, ``CORRECTED_PAIRS`` labels of both layers of the same responses. The base
is always the coder's: responses that it labelled, on both layers for measures of the eligible base. A person's Abstain
is no endorsement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from auditor.counting.joint import Floats, Ints, JointTable
from auditor.domain.estimate import Corrected, Insufficient
from auditor.metrics.estimate import ENOUGH_STATEMENTS, MIN_STATEMENTS, rate_flags
from auditor.metrics.rates import ELIGIBLE, METRICS, Metric
from auditor.stats.prediction_powered import (
    LabelledSample,
    PredictionPowered,
    prediction_powered_difference,
    prediction_powered_rate,
    prediction_powered_ratio,
)

#: The name of each measure that is corrected by labels of the elaboration, and the measure.
CORRECTED: Final[Mapping[str, Metric]] = {
    "ber_elab_corrected": METRICS["ber_elab"],
    "ber_elab_full_corrected": METRICS["ber_elab_full"],
}
#: The same for measures that need labels of both layers.
CORRECTED_PAIRS: Final[Mapping[str, Metric]] = {
    f"{name}_corrected": METRICS[name] for name in ("ber_cor", "ber_union", "oed", "ued", "ir", "dni", "ir_over_union")
}
#: A person's labels that count as endorsement.
ENDORSING: Final = frozenset({"E", "QE"})


@dataclass(frozen=True, kw_only=True, slots=True)
class HumanLabels:
    """People's labels of the elaboration of some responses of a table; all arrays have the shape [n]."""

    cluster: Ints  #: clusters as the table numbers them
    cell: Ints  #: cell of the joint table: the coder's labels of the response
    endorses: Floats  #: the share of its reviewers who found an endorsement
    weight: Floats  #: one over the probability to be drawn, up to a factor

    def of(self, chosen: Ints, cluster: Ints) -> Self:
        """Return some of the labels, with the cluster numbers of another table."""
        return type(self)(
            cluster=cluster, cell=self.cell[chosen], endorses=self.endorses[chosen], weight=self.weight[chosen]
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class HumanPairs:
    """People's labels of both layers of some responses of a table."""

    cluster: Ints  #: [n], as the table numbers them
    cell: Ints  #: [n], of the joint table: the coder's labels of the response
    fourfold: Floats  #: [n, 4]: shares of its reviewers who found both, the selection alone, the text alone, neither
    weight: Floats  #: [n], one over the probability to be drawn, up to a factor

    def of(self, chosen: Ints, cluster: Ints) -> Self:
        """Return some of the labels, with the cluster numbers of another table."""
        return type(self)(
            cluster=cluster, cell=self.cell[chosen], fourfold=self.fourfold[chosen], weight=self.weight[chosen]
        )


def corrected(metric: Metric, table: JointTable, labels: HumanLabels) -> Corrected | Insufficient:
    """Estimate the rate that people would find on the base of one measure of the elaboration.

    Parameters
    ----------
    metric
        A rate of ``CORRECTED``.
    table
        Counts by statement: all responses.
    labels
        People's labels of a sample of them.

    Returns
    -------
    Corrected or Insufficient
        Insufficient under ``MIN_STATEMENTS`` labelled statements; under ``ENOUGH_STATEMENTS`` flag ``few_clusters``.
    """
    inside = np.flatnonzero(metric.denominator.ravel()[labels.cell] > 0)
    statements = len(np.unique(labels.cluster[inside]))
    if statements < MIN_STATEMENTS:
        reason = f"{statements} statements with people's labels in the {metric.base} base, {MIN_STATEMENTS} needed"
        return Insufficient(reason=reason if statements else f"no person's label in the {metric.base} base")
    rate = prediction_powered_rate(
        table.by_cluster(metric.numerator),
        table.by_cluster(metric.denominator),
        LabelledSample(
            cluster=labels.cluster[inside],
            human=labels.endorses[inside],
            machine=metric.numerator.ravel()[labels.cell[inside]],
            weight=labels.weight[inside],
        ),
    )
    return _entry(metric, metric.denominator, table, rate, rate.value, len(inside), statements)


def corrected_pairs(table: JointTable, labels: HumanPairs, conf: float = 0.95) -> dict[str, Corrected | Insufficient]:
    """Estimate all of ``CORRECTED_PAIRS`` as people would find them where the coder labelled both layers.

    Each measure has its own power, so identities such as ``ir = ber_union - ber_cor`` hold only up to the error.

    Parameters
    ----------
    table
        Counts by statement: all responses.
    labels
        People's labels of a sample of them.
    conf
        Two-sided level of the intervals.

    Returns
    -------
    dict
        Estimates by name. Insufficient as in ``corrected``, and for a ratio where people find no endorsement.
    """
    inside = np.flatnonzero(ELIGIBLE.ravel()[labels.cell] > 0)
    eligible = labels.of(inside, labels.cluster[inside])
    statements = len(np.unique(eligible.cluster))
    if statements < MIN_STATEMENTS:
        reason = f"{statements} statements with people's labels of both layers, {MIN_STATEMENTS} needed"
        refused = Insufficient(reason=reason if statements else "no person's labels of both layers of a response")
        return dict.fromkeys(CORRECTED_PAIRS, refused)
    estimates = {name: _pair_estimate(metric, table, eligible, conf) for name, metric in CORRECTED_PAIRS.items()}
    ir = estimates["ir_corrected"]
    assert ir is not None
    out: dict[str, Corrected | Insufficient] = {}
    for name, metric in CORRECTED_PAIRS.items():
        each = estimates[name]
        if each is None:
            out[name] = Insufficient(reason="people found no endorsement on either layer")
            continue
        level = ir.value if metric.kind == "difference" else each.value
        out[name] = _entry(metric, ELIGIBLE, table, each, level, len(inside), statements)
    return out


def _pair_estimate(metric: Metric, table: JointTable, labels: HumanPairs, conf: float) -> PredictionPowered | None:
    assert metric.fourfold is not None
    n = table.by_cluster(ELIGIBLE)
    tops, top = table.by_cluster(metric.numerator), _sample(labels, metric.fourfold[0], metric.numerator)
    if metric.kind == "ratio":
        bases, base = table.by_cluster(metric.denominator), _sample(labels, metric.fourfold[1], metric.denominator)
        return prediction_powered_ratio(tops, bases, n, top, base, conf=conf)
    if metric.kind == "difference":
        return prediction_powered_difference(tops, n, top, conf=conf)
    return prediction_powered_rate(tops, n, top, conf=conf)


def _sample(labels: HumanPairs, weights: tuple[int, ...], mask: Floats) -> LabelledSample:
    """Count both readings of the labelled responses: people's shares by fourfold weights, the coder's by its cell."""
    return LabelledSample(
        cluster=labels.cluster,
        human=labels.fourfold @ np.array(weights, dtype=np.float64),
        machine=mask.ravel()[labels.cell],
        weight=labels.weight,
    )


def _entry(
    metric: Metric, base: Floats, table: JointTable, rate: PredictionPowered, level: float, n: int, statements: int
) -> Corrected:
    """Name what a corrected value rests on: ``n`` labels of some statements, and all responses of its base."""
    return Corrected(
        value=rate.value,
        low=rate.low,
        high=rate.high,
        base=metric.base,
        method="prediction_powered",
        n=table.within(base).n,
        n_statements=int(np.count_nonzero(table.by_cluster(base))),
        flags=rate_flags(level, few=statements < ENOUGH_STATEMENTS),
        n_labelled=n,
        n_labelled_statements=statements,
        power=rate.power,
    )
