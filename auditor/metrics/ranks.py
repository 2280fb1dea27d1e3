"""Measure how ranks depend on the condition, on counting qualified endorsement (QE) as endorsement, and on one vendor.

A vendor is that of a judge of the panel, or of audited deployments. The paper says that its results are "unchanged
under the vendor-swap robustness check" (section V-A) without numbers. Here the change is computed, for rates and ranks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from auditor.counting.joint import ELABORATION_AXIS, Floats
from auditor.documents.conditions import RankShareEntry
from auditor.domain.estimate import Insufficient
from auditor.metrics.divergence import FOLD_MAX
from auditor.metrics.estimate import ENOUGH_STATEMENTS, FEW_CLUSTERS, MIN_STATEMENTS
from auditor.metrics.rates import METRICS, bias_endorsement_rates, point
from auditor.stats.bootstrap import rate_replicates
from auditor.stats.ranks import (
    MIN_RANKED,
    Agreement,
    RankCorrelation,
    agreement,
    rank_distribution,
    rank_probabilities,
    spearman,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionRanks:
    """Ranks of the deployments over conditions."""

    ranks: Mapping[str, RankShareEntry]  #: shares of ranks by deployment
    concordance: float | None  #: Kendall's W of the observed rankings; chance alone keeps it below 1
    conditions: tuple[str, ...]
    left_out: tuple[str, ...]  #: conditions under which a deployment has too few statements
    flags: tuple[str, ...]


def rank_by_condition(
    conditions: Sequence[str], deployments: Sequence[str], successes: Floats, trials: Floats, *, n_boot: int, seed: int
) -> ConditionRanks | Insufficient:
    """Rank the deployments under each condition (BiAxisAudit section III-E, C-A).

    Parameters
    ----------
    conditions, deployments
        Names, C and K of them.
    successes, trials
        Shape [S, C, K]: by statement, condition and deployment.
    n_boot, seed
        Size and seed of the statement bootstrap, paired over conditions and deployments.

    Returns
    -------
    ConditionRanks or Insufficient
        Conditions are left out where a deployment has fewer than ``MIN_STATEMENTS`` statements.

    Examples
    --------
    >>> y, n = np.zeros((20, 2, 2)), np.ones((20, 2, 2))
    >>> y[:10, 0, 0] = y[:10, 1, 1] = 1
    >>> ranking = rank_by_condition(["BJ", "CTO"], ["a", "b"], y, n, n_boot=10, seed=0)
    >>> ranking.ranks["a"].shares, ranking.concordance
    ((0.5, 0.5), 0.0)
    """
    if len(deployments) < 2:
        return Insufficient(reason="one deployment has no rank" if deployments else "no deployment")
    fewest = np.count_nonzero(trials, axis=0).min(axis=1)
    kept = np.flatnonzero(fewest >= MIN_STATEMENTS).tolist()
    if len(kept) < 2:
        return Insufficient(reason=f"fewer than two conditions with {MIN_STATEMENTS} statements of every deployment")
    shape = len(kept), len(deployments)
    y, n = (side[:, kept].reshape(len(side), -1) for side in (successes, trials))
    rates, replicates = rate_replicates(y, n, n_boot=n_boot, seed=seed)
    observed = rank_distribution(rates.reshape(shape))
    resampled = rank_probabilities(replicates.reshape(-1, shape[1]))
    return ConditionRanks(
        ranks={
            name: RankShareEntry(
                best=int(observed.best[item]),
                worst=int(observed.worst[item]),
                shares=tuple(observed.shares[item].tolist()),
                resampled=tuple(resampled[item].tolist()),
            )
            for item, name in enumerate(deployments)
        },
        concordance=observed.concordance,
        conditions=tuple(conditions[index] for index in kept),
        left_out=tuple(name for index, name in enumerate(conditions) if index not in set(kept)),
        flags=(FEW_CLUSTERS,) if fewest[kept].min() < ENOUGH_STATEMENTS else (),
    )


def folded(totals: Floats) -> Floats:
    """Count qualified endorsements as neutral (BiAxisAudit C-A folds them into D or N: no measure tells these apart).

    Parameters
    ----------
    totals
        Shape [..., *``joint.SHAPE``]: responses by cell.

    Returns
    -------
    ndarray
        The same shape and sum, nothing in the column QE.
    """
    qualified, neutral = ELABORATION_AXIS.index("QE"), ELABORATION_AXIS.index("N")
    out = totals.copy()
    out[..., neutral] += out[..., qualified]
    out[..., qualified] = 0
    return out


@dataclass(frozen=True, kw_only=True, slots=True)
class FoldStability:
    """The fold over conditions and deployments (BiAxisAudit C-A)."""

    change: float  #: the largest change of IR, absolute
    condition: str  #: where that change is
    deployment: str
    robust: bool  #: under a percentage point everywhere
    #: By condition: Spearman's rho of the deployments' ranking with the folded one; None where either ties throughout.
    rho: Mapping[str, float | None]
    left_out: tuple[str, ...]  #: conditions under which some deployment has no response with both labels


def fold_stability(
    conditions: Sequence[str], deployments: Sequence[str], totals: Floats, ranked_by: str = "ber_elab"
) -> FoldStability | Insufficient:
    """Check C-A's two claims: IR moves by less than a point, and rankings hold under every condition.

    Parameters
    ----------
    conditions, deployments
        Names, C and K of them.
    totals
        Shape [C, K, *``joint.SHAPE``].
    ranked_by
        The measure of the eligible base that ranks deployments; ``ber_elab`` is the one QE enters first.

    Returns
    -------
    FoldStability or Insufficient
        Insufficient for fewer than ``MIN_RANKED`` deployments, or without a condition that has all of them.

    Examples
    --------
    >>> from auditor.counting.joint import SHAPE
    >>> totals = np.zeros((1, 3, *SHAPE))
    >>> totals[..., 2, 3] = 100
    >>> totals[0, :, 0, 0] = 1, 2, 3
    >>> stability = fold_stability(["BJ"], ["a", "b", "c"], totals)
    >>> stability.change, stability.robust, stability.rho
    (0.0, True, {'BJ': 1.0})
    """
    if len(deployments) < MIN_RANKED:
        return Insufficient(reason=f"{len(deployments)} deployments, {MIN_RANKED} needed")
    kept = [
        index for index, tables in enumerate(totals) if all(point(METRICS["ir"], table) is not None for table in tables)
    ]
    if not kept:
        return Insufficient(reason="no condition has responses with both labels of every deployment")
    ir, ir_folded = _values("ir", totals[kept]), _values("ir", folded(totals[kept]))
    rates, rates_folded = _values(ranked_by, totals[kept]), _values(ranked_by, folded(totals[kept]))
    changes = np.abs(ir_folded - ir)
    row, column = np.unravel_index(int(changes.argmax()), changes.shape)
    return FoldStability(
        change=float(changes.max()),
        condition=conditions[kept[row]],
        deployment=deployments[int(column)],
        robust=bool(changes.max() < FOLD_MAX),
        rho={
            conditions[index]: agreement(before, after).rho
            for index, before, after in zip(kept, rates, rates_folded, strict=True)
        },
        left_out=tuple(name for index, name in enumerate(conditions) if index not in set(kept)),
    )


def _values(name: str, totals: Floats) -> Floats:
    """Compute one measure on tables [C, K, ...] of which each has a base; shape [C, K]."""
    metric = METRICS[name]
    base = (totals * metric.denominator).sum(axis=(-2, -1))
    return np.asarray((totals * metric.numerator).sum(axis=(-2, -1)) / base, dtype=np.float64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Swap:
    """The change of one measure of the deployments between the panel and another panel."""

    agreement: Agreement
    deployment: str  #: the deployment with the largest change
    missing: tuple[str, ...]  #: deployments with a rate by one of the panels only

    @property
    def same_ranking(self) -> bool:
        """Whether no deployment changes its rank."""
        return self.agreement.rank_shift == 0


def compare_panels(by_panel: Mapping[str, float], by_other: Mapping[str, float]) -> Swap | Insufficient:
    """Compare the deployments' rates under two panels of judges (BiAxisAudit section V-A).

    The other panel is this one with a vendor's judges left out, or replaced, for all deployments alike.

    Parameters
    ----------
    by_panel, by_other
        A measure by deployment; those without a value are not there.

    Returns
    -------
    Swap or Insufficient
        Insufficient for fewer than ``MIN_RANKED`` deployments with both values.

    Examples
    --------
    >>> swap = compare_panels({"a": 0.25, "b": 0.5, "c": 0.75}, {"a": 0.25, "b": 1.0, "c": 0.75})
    >>> swap.deployment, swap.agreement.change, swap.agreement.rho, swap.same_ranking
    ('b', 0.5, 0.5, False)
    """
    shared = sorted(by_panel.keys() & by_other.keys())
    if len(shared) < MIN_RANKED:
        return Insufficient(reason=f"{len(shared)} deployments with a rate by both panels, {MIN_RANKED} needed")
    comparison = agreement(*(np.array([side[name] for name in shared]) for side in (by_panel, by_other)))
    return Swap(
        agreement=comparison,
        deployment=shared[comparison.item],
        missing=tuple(sorted(by_panel.keys() ^ by_other.keys())),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class WithoutVendor:
    """The measures of all deployments except those of one vendor."""

    vendor: str
    pooled: Mapping[str, Floats]  #: each measure of the eligible base, of all responses
    unweighted: Mapping[str, Floats]  #: the same, averaged over deployments
    #: Of the rankings by selection and by elaboration; None under three deployments or if all tie on a layer.
    correlation: RankCorrelation | None


def mean_rates(counts: Floats) -> Mapping[str, Floats]:
    """Average every measure over deployments, each of the same weight (BiAxisAudit Appendix B).

    Parameters
    ----------
    counts
        Shape [K, 4]: n11, n10, n01, n00 by deployment.

    Returns
    -------
    mapping
        Scalars by measure; NaN if the measure of any deployment is NaN.

    Examples
    --------
    >>> rates = mean_rates(np.array([[1.0, 1.0, 0.0, 8.0], [20.0, 20.0, 0.0, 60.0]]))
    >>> round(float(rates["ber_sel"]), 9), round(float(rates["ir"]), 9)
    (0.3, 0.15)
    """
    each = bias_endorsement_rates(counts)
    return {name: np.asarray(values.mean()) for name, values in each.items()}


def leave_vendors_out(counts: Floats, vendors: Sequence[str]) -> tuple[WithoutVendor, ...]:
    """Compute the measures without each vendor's deployments in turn.

    Parameters
    ----------
    counts
        Shape [K, 4]: n11, n10, n01, n00 by deployment, each with a base.
    vendors
        Shape [K].

    Returns
    -------
    tuple of WithoutVendor
        Measures in the order of the vendors' names. The relative ranks of the other deployments do not change.

    Raises
    ------
    ValueError
        For fewer than two vendors, since no deployment would remain, or a deployment without a base.

    Examples
    --------
    >>> counts = np.array([[1.0, 1.0, 0.0, 8.0], [2.0, 2.0, 0.0, 6.0], [3.0, 0.0, 3.0, 4.0]])
    >>> [(left.vendor, float(left.pooled["ber_sel"])) for left in leave_vendors_out(counts, ["x", "y", "y"])]
    [('x', 0.35), ('y', 0.2)]
    """
    if len(set(vendors)) < 2:
        raise ValueError("leaving a vendor out needs at least two")
    if not counts.any(axis=1).all():
        raise ValueError("a deployment has no response with both labels")
    out = []
    for vendor in sorted(set(vendors)):
        others = counts[np.array([name != vendor for name in vendors])]
        rates = bias_endorsement_rates(others)
        out.append(
            WithoutVendor(
                vendor=vendor,
                pooled=bias_endorsement_rates(others.sum(axis=0)),
                unweighted=mean_rates(others),
                correlation=spearman(rates["ber_sel"], rates["ber_elab"]) if len(others) >= MIN_RANKED else None,
            )
        )
    return tuple(out)
