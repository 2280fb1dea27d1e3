"""Compare rankings of deployments: between layers, between conditions, without QE, and without each vendor."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import UNSET

from auditor.counting.joint import Floats
from auditor.counting.rows import STATEMENT
from auditor.counting.tallies import Tallies
from auditor.documents.base import Missing, value_or
from auditor.documents.conditions import (
    AgreementEntry,
    ConditionRankEntry,
    MissingAgreement,
    MissingConditionRank,
    MissingOfRubric,
    QeFoldEntry,
    RankEntry,
    VendorEntry,
)
from auditor.domain.estimate import Estimate, Insufficient
from auditor.estimation.grid import Grid, rubric_groups
from auditor.estimation.groups import NO_CLAIM, Group
from auditor.estimation.variation import OTHER_PANELS, few_flags
from auditor.metrics.divergence import fourfold_counts
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.ranks import ConditionRanks, WithoutVendor, fold_stability, leave_vendors_out, rank_by_condition
from auditor.metrics.rates import METRICS
from auditor.stats.bootstrap import bootstrap_totals
from auditor.stats.ranks import MIN_RANKED, RankCorrelation, rank_probabilities, spearman, spearman_leave_one_out

#: Fewer deployments than this have no ranking.
MIN_DEPLOYMENTS: Final = 4
#: The layers whose rankings are compared.
LAYERS: Final = ("ber_sel", "ber_elab")
#: The measure by which deployments are ranked under each condition.
RANKED: Final = "ber_union_full"
#: The measure that the fold changes first.
FOLDED: Final = "ber_elab"
#: Why two rankings have no correlation.
TIED: Final = "one of the rankings ties throughout"
#: Measures that are given without each vendor.
_NAMES: Final = ("ber_sel", "ber_elab", "ber_cor", "ber_union", "ir", "dni", "ir_over_union")


def agreement(
    tallies: Tallies, deployments: Sequence[Group], *, panel_differs: bool, seed: int, n_boot: int
) -> list[AgreementEntry | MissingAgreement]:
    """Return the entries of ``agreement``: deployments ranked by selection and by elaboration, for each rubric.

    Both rates are on the eligible base, whatever fields the groups of the document are by.
    """
    out: list[AgreementEntry | MissingAgreement] = []
    for rubric in sorted({group.rubric for group in deployments}):
        rates = {} if panel_differs else _layer_rates(group for group in deployments if group.rubric == rubric)
        correlation = OTHER_PANELS if panel_differs else _correlation(rates)
        if isinstance(correlation, Insufficient):
            names = list(rates)
            out.append(
                MissingAgreement(by={}, rubric=rubric, metrics=LAYERS, deployments=names, missing=correlation.reason)
            )
        else:
            grid = Grid.of(tallies, rubric_groups(tallies, rubric))
            ranks = {name: _rank_entries(grid, list(rates), name, seed=seed, n_boot=n_boot) for name in LAYERS}
            out.append(_agreement_entry(rubric, rates, correlation, ranks))
    return out


def _layer_rates(deployments: Iterable[Group]) -> dict[str, list[float]]:
    """Return selection's and elaboration's rate of each deployment that has both."""
    rates = {
        str(group.by["deployment"]): [
            estimate.value for name in LAYERS if isinstance(estimate := group.metrics[name], Estimate)
        ]
        for group in deployments
    }
    return {name: values for name, values in rates.items() if len(values) == len(LAYERS)}


def _correlation(rates: Mapping[str, Sequence[float]]) -> RankCorrelation | Insufficient:
    if len(rates) < MIN_DEPLOYMENTS:
        return Insufficient(reason=f"{len(rates)} deployments with both rates, {MIN_DEPLOYMENTS} needed")
    correlation = spearman(*np.array(list(rates.values())).T)
    return correlation or Insufficient(reason="all deployments have the same rate on one layer")


def _agreement_entry(
    rubric: str,
    rates: Mapping[str, Sequence[float]],
    correlation: RankCorrelation,
    ranks: Mapping[str, Mapping[str, RankEntry]],
) -> AgreementEntry:
    without_one = spearman_leave_one_out(*np.array(list(rates.values())).T)
    return AgreementEntry(
        by={},
        rubric=rubric,
        metrics=LAYERS,
        deployments=list(rates),
        rho=correlation.rho,
        p=correlation.p,
        p_method=correlation.p_method,
        loo_low=without_one[0] if without_one else UNSET,
        loo_high=without_one[1] if without_one else UNSET,
        ranks=ranks,
    )


def _rank_entries(grid: Grid, names: Sequence[str], metric: str, *, seed: int, n_boot: int) -> dict[str, RankEntry]:
    """Return the observed rank of each deployment and the bootstrap's 95 % range."""
    place = [grid.deployments.index(name) for name in names]
    y, n = (side.sum(axis=1)[:, place] for side in grid.sums(METRICS[metric]))
    counts = np.hstack([y, n])[n.any(axis=1)]
    observed = _rank_shares(np.array([counts.sum(axis=0)]), len(names))
    spread = np.cumsum(_rank_shares(bootstrap_totals(counts, n_boot, seed), len(names)), axis=1)
    low, high = (spread < 0.025).sum(axis=1), (spread < 0.975).sum(axis=1)
    best = np.argmax(observed, axis=1)
    return {
        name: RankEntry(rank=int(best[i]) + 1, low=int(low[i]) + 1, high=int(high[i]) + 1)
        for i, name in enumerate(names)
    }


def _rank_shares(totals: Floats, k: int) -> Floats:
    """Return how often each of k rates has each rank. Totals [B, 2k] are events, then trials; 0 without trials."""
    return rank_probabilities(totals[:, :k] / np.maximum(totals[:, k:], 1))


def condition_ranks(
    tallies: Tallies, *, panel_differs: bool, seed: int, n_boot: int
) -> list[ConditionRankEntry | MissingConditionRank]:
    """Return the entry of ``condition_ranks``: each deployment's ranks over conditions (BiAxisAudit section III-E)."""
    group_indices = rubric_groups(tallies, STATEMENT)
    if not group_indices:
        return []
    ranks: ConditionRanks | Insufficient = OTHER_PANELS
    if not panel_differs:
        grid = Grid.of(tallies, group_indices)
        y, n = grid.sums(METRICS[RANKED])
        ranks = rank_by_condition(grid.names, grid.deployments, y, n, n_boot=n_boot, seed=seed)
    if isinstance(ranks, Insufficient):
        return [MissingConditionRank(rubric=STATEMENT, metric=RANKED, missing=ranks.reason)]
    return [
        ConditionRankEntry(
            rubric=STATEMENT,
            metric=RANKED,
            ranks=ranks.ranks,
            concordance=value_or(ranks.concordance, "all deployments have the same rate under every condition"),
            conditions=ranks.conditions,
            left_out=ranks.left_out,
            flags=ranks.flags,
        )
    ]


def qe_fold(tallies: Tallies, *, panel_differs: bool) -> list[QeFoldEntry | MissingOfRubric]:
    """Return the entry of ``qe_fold``: IR and rankings by condition with QE as non-endorsement (BiAxisAudit C-A).

    Conditions under which a deployment has fewer than ``MIN_STATEMENTS`` statements with both labels are left out.
    """
    group_indices = rubric_groups(tallies, STATEMENT)
    if not group_indices:
        return []
    entry = OTHER_PANELS if panel_differs else _fold(Grid.of(tallies, group_indices))
    return [MissingOfRubric(rubric=STATEMENT, missing=entry.reason) if isinstance(entry, Insufficient) else entry]


def _fold(grid: Grid) -> QeFoldEntry | Insufficient:
    _, n = grid.sums(METRICS[FOLDED])
    fewest = np.count_nonzero(n, axis=0).min(axis=1)
    enough = fewest >= MIN_STATEMENTS
    if not enough.any():
        return Insufficient(reason=f"no condition has {MIN_STATEMENTS} statements with both labels of every deployment")
    kept = [name for name, is_kept in zip(grid.names, enough, strict=True) if is_kept]
    stability = fold_stability(kept, grid.deployments, grid.totals[enough], FOLDED)
    if isinstance(stability, Insufficient):
        return stability
    return QeFoldEntry(
        rubric=STATEMENT,
        change=stability.change,
        condition=stability.condition,
        deployment=stability.deployment,
        robust=stability.robust,
        rho={name: value_or(rho, TIED) for name, rho in stability.rho.items()},
        left_out=[name for name, is_kept in zip(grid.names, enough, strict=True) if not is_kept],
        flags=few_flags(fewest[enough].min()),
    )


def vendors(tallies: Tallies, named: Mapping[str, str], *, panel_differs: bool) -> list[VendorEntry | MissingOfRubric]:
    """Return the entries of ``vendors``: measures without each vendor's deployments in turn, by rubric.

    Parameters
    ----------
    tallies
        The counts.
    named
        Vendor by deployment. Where there is none, there are no entries.
    panel_differs
        Whether the deployments were read by different panels, so that no average is theirs.

    Returns
    -------
    list
        A deployment with fewer than ``MIN_STATEMENTS`` statements with both labels is in no average.
    """
    out: list[VendorEntry | MissingOfRubric] = []
    for rubric in sorted({group_key.rubric for group_key in tallies.groups}) if named else ():
        group_indices = rubric_groups(tallies, rubric)
        claimed = all(tallies.groups[index].has_claim for index in group_indices)
        without = OTHER_PANELS if panel_differs else _without_vendors(Grid.of(tallies, group_indices), named)
        if isinstance(without, Insufficient):
            out.append(MissingOfRubric(rubric=rubric, missing=without.reason))
        else:
            out += [_vendor_entry(rubric, each, n, claimed=claimed) for each, n in without]
    return out


def _without_vendors(grid: Grid, named: Mapping[str, str]) -> list[tuple[WithoutVendor, int]] | Insufficient:
    """Return the measures without each vendor, and the number of deployments that are left."""
    _, trials = grid.sums(METRICS["ir"])
    statements = np.count_nonzero(trials.sum(axis=1), axis=0)
    kept = np.flatnonzero(statements >= MIN_STATEMENTS).tolist()
    names = [grid.deployments[index] for index in kept]
    unknown = [name for name in names if name not in named]
    if unknown:
        return Insufficient(reason=f"the vendor is not known of {', '.join(unknown)}")
    sizes = Counter(named[name] for name in names)
    if len(sizes) < 2:
        return Insufficient(reason=f"fewer than two vendors of deployments with {MIN_STATEMENTS} statements")
    totals = grid.totals.sum(axis=0)
    counts = np.stack([fourfold_counts(totals[index]) for index in kept])
    measures = leave_vendors_out(counts, [named[name] for name in names])
    return [(each, len(names) - sizes[each.vendor]) for each in measures]


def _vendor_entry(rubric: str, measures: WithoutVendor, n_deployments: int, *, claimed: bool) -> VendorEntry:
    rho: float | Missing
    if not claimed:
        rho = Missing(missing=NO_CLAIM.reason)
    elif n_deployments < MIN_RANKED:
        rho = Missing(missing=f"{n_deployments} deployments, {MIN_RANKED} needed")
    else:
        rho = value_or(None if measures.correlation is None else measures.correlation.rho, TIED)
    return VendorEntry(
        rubric=rubric,
        vendor=measures.vendor,
        n_deployments=n_deployments,
        pooled=_rates(measures.pooled, claimed=claimed),
        unweighted=_rates(measures.unweighted, claimed=claimed),
        rho=rho,
    )


def _rates(rates: Mapping[str, Floats], *, claimed: bool) -> dict[str, float | Missing]:
    """Return each measure, or why there is none: a kernel gives NaN where nothing endorses."""
    out: dict[str, float | Missing] = {}
    for name in _NAMES:
        value = float(rates[name])
        if METRICS[name].endorsement and not claimed:
            out[name] = Missing(missing=NO_CLAIM.reason)
        else:
            out[name] = Missing(missing="no endorsement on either layer") if np.isnan(value) else value
    return out
