"""Estimate BER_elab as people would measure it: correct the coder's rate by people's labels of a sample.

The base is the coder's: responses whose elaboration it labelled, or for the eligible form both layers. A person's
Abstain is no endorsement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from auditor.counting.joint import Floats, Ints, JointTable
from auditor.domain.estimate import Corrected, Insufficient
from auditor.metrics.estimate import ENOUGH_STATEMENTS, MIN_STATEMENTS, rate_flags
from auditor.metrics.rates import METRICS, Metric
from auditor.stats.prediction_powered import LabelledSample, prediction_powered_rate

#: The name of each corrected measure, and the measure that it corrects.
CORRECTED: Final[Mapping[str, Metric]] = {
    "ber_elab_corrected": METRICS["ber_elab"],
    "ber_elab_full_corrected": METRICS["ber_elab_full"],
}
#: A person's labels that count as endorsement.
ENDORSING: Final = frozenset({"E", "QE"})


@dataclass(frozen=True, kw_only=True, slots=True)
class HumanLabels:
    """People's labels of the elaboration of some responses of a table; all arrays have the shape [n]."""

    cluster: Ints  #: as the table numbers them
    cell: Ints  #: of the joint table: the coder's labels of the response
    endorses: Floats  #: the share of its reviewers who found an endorsement
    weight: Floats  #: one over the probability to be drawn, up to a factor

    def of(self, chosen: Ints, cluster: Ints) -> Self:
        """Return some of the labels, with the cluster numbers of another table."""
        return type(self)(
            cluster=cluster, cell=self.cell[chosen], endorses=self.endorses[chosen], weight=self.weight[chosen]
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
        Of a sample of them.

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
    n = table.by_cluster(metric.denominator)
    found = prediction_powered_rate(
        table.by_cluster(metric.numerator),
        n,
        LabelledSample(
            cluster=labels.cluster[inside],
            human=labels.endorses[inside],
            machine=metric.numerator.ravel()[labels.cell[inside]],
            weight=labels.weight[inside],
        ),
    )
    return Corrected(
        value=found.value,
        low=found.low,
        high=found.high,
        base=metric.base,
        method="prediction_powered",
        n=table.within(metric.denominator).n,
        n_statements=int(np.count_nonzero(n)),
        flags=rate_flags(found.value, few=statements < ENOUGH_STATEMENTS),
        n_labelled=len(inside),
        n_labelled_statements=statements,
        power=found.power,
    )
