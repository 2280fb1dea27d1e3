"""What is estimated across groups: variance shares, ranges over conditions, rank agreement, judges' kappa."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.analysis.grid import Grid
from auditor.analysis.groups import Group
from auditor.analysis.rows import Vote
from auditor.analysis.tallies import Scalar, Tallies, VoteCounts
from auditor.domain.coding import ABSTAIN, ELABORATION_LABELS
from auditor.domain.estimate import Estimate, Insufficient
from auditor.metrics.estimate import ENOUGH_STATEMENTS, FEW_CLUSTERS, MIN_STATEMENTS
from auditor.metrics.horizontal import Horizontal, horizontal_range
from auditor.metrics.joint import Floats, Ints
from auditor.metrics.rates import BY_NAME
from auditor.metrics.shares import (
    FACTORS,
    ConditionCounts,
    Counts,
    Resampled,
    Shares,
    Weights,
    eta_squared_between,
    eta_squared_oat,
    factorial_shares,
    own_slice,
)
from auditor.stats.agreement import cohen_kappa, confusion_matrix
from auditor.stats.bootstrap import bootstrap_totals, rate_replicates
from auditor.stats.ranks import RankCorrelation, rank_probabilities, spearman, spearman_leave_one_out

#: Measures whose range over the conditions is given.
RANGED: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full")
#: What a range is over, beside the factors: all conditions.
EVERYWHERE: Final = "condition"
#: Fewer deployments than this have no ranking worth a number.
MIN_DEPLOYMENTS: Final = 4
RANKED: Final = ("ber_sel", "ber_elab")
OTHER_PANELS: Final = Insufficient(reason="the deployments were read by other panels")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Rows of one rubric that something is computed over."""

    by: Mapping[str, Scalar]
    rubric: str
    profiles: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShareRow:
    """One entry of ``eta_squared``."""

    scope: Scope
    outcome: str
    design: str
    weights: Weights | None
    shares: Shares | Insufficient
    flags: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeRow:
    """One entry of ``horizontal``."""

    scope: Scope
    metric: str
    over: str
    result: Horizontal | Insufficient


@dataclass(frozen=True, kw_only=True, slots=True)
class RankRow:
    """One entry of ``agreement``."""

    rubric: str
    correlation: RankCorrelation | Insufficient
    leave_one_out: tuple[float, float] | None = None
    deployments: tuple[str, ...] = ()
    #: By measure and deployment: observed rank and the bootstrap's 95 % range.
    ranks: Mapping[str, Mapping[str, tuple[int, int, int]]] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class KappaRow:
    """One entry of ``kappa``."""

    judge: str
    other: str
    layer: str
    deployment: str | None
    n: int
    value: float | None


def scopes(tallies: Tallies) -> list[Scope]:
    """List the pooled rows and each deployment's, by rubric; and each category's where rows name one."""
    out = []
    for rubric in sorted({profile.rubric for profile in tallies.profiles}):
        own = [(index, p) for index, p in enumerate(tallies.profiles) if p.rubric == rubric]
        out.append(Scope(by={}, rubric=rubric, profiles=tuple(index for index, _ in own)))
        for field in ("deployment", "category"):
            for value in sorted({getattr(p, field) for _, p in own} - {None}):
                members = tuple(index for index, p in own if getattr(p, field) == value)
                out.append(Scope(by={field: value}, rubric=rubric, profiles=members))
    return out


class Across:
    """Computes what goes across groups from one file's tallies."""

    def __init__(self, tallies: Tallies, *, seed: int, n_boot: int) -> None:
        self._tallies = tallies
        self._seed = seed
        self._n_boot = n_boot
        self._grids: dict[tuple[int, ...], Grid] = {}

    def _grid(self, scope: Scope) -> Grid:
        if scope.profiles not in self._grids:
            self._grids[scope.profiles] = Grid.of(self._tallies, scope.profiles)
        return self._grids[scope.profiles]

    def shares(self, scope: Scope) -> list[ShareRow]:
        """Variance shares of one scope: OAT in both weightings, and the factorial."""
        union, few = self.condition_counts(scope, "ber_union_full")
        sel, few_sel = self.condition_counts(scope, "ber_sel_full")
        rows: list[tuple[str, str, Weights | None, Shares | Insufficient, int]] = []
        for weights in ("responses", "equal"):
            shares = eta_squared_oat(union, weights) if few >= MIN_STATEMENTS else _too_few(few)
            rows.append(("ber_union_full", "oat", weights, shares, few))
        crossed = factorial_shares(sel) if few_sel >= MIN_STATEMENTS else _too_few(few_sel)
        rows.append(("ber_sel_full", "factorial", None, crossed, few_sel))
        return [
            ShareRow(
                scope=scope,
                outcome=outcome,
                design=design,
                weights=weights,
                shares=shares,
                flags=few_flags(statements),
            )
            for outcome, design, weights, shares, statements in rows
        ]

    def condition_counts(self, scope: Scope, metric: str) -> tuple[ConditionCounts, int]:
        """Count by condition, with replicates; and say how many statements the counts rest on."""
        grid = self._grid(scope)
        y, n = (side.sum(axis=2) for side in grid.sums(BY_NAME[metric]))
        seen = np.flatnonzero(n.any(axis=0))
        counts, statements = self._resampled(y[:, seen], n[:, seen])
        conditions = [grid.conditions[index] for index in seen.tolist()]
        own = ConditionCounts(
            successes=counts.successes, trials=counts.trials, resampled=counts.resampled, conditions=conditions
        )
        return own, statements

    def deployment_shares(self, scope: Scope, *, panel_differs: bool) -> list[ShareRow]:
        """Variance shares of the choice of deployment, over the conditions that all deployments were asked under."""
        grid = self._grid(scope)
        rows = []
        for outcome in ("ber_union_full", "ber_sel_full"):
            y, n = grid.sums(BY_NAME[outcome])
            common = (n.sum(axis=0) > 0).all(axis=1)
            counts, statements = self._resampled(*(side[:, common].sum(axis=1) for side in (y, n)))
            shares: Shares | Insufficient = _too_few(statements)
            if panel_differs and outcome != "ber_sel_full":
                shares = OTHER_PANELS
            elif not common.any():
                shares = Insufficient(reason="no condition that all deployments were asked under")
            elif statements >= MIN_STATEMENTS:
                shares = eta_squared_between("deployment", counts)
            flags = few_flags(statements)
            rows.append(
                ShareRow(scope=scope, outcome=outcome, design="deployment", weights=None, shares=shares, flags=flags)
            )
        return rows

    def _resampled(self, y: Floats, n: Floats) -> tuple[Counts, int]:
        """Sum over statements; with replicates where there are enough of them. All columns have trials, or none has."""
        used = n.any(axis=1)
        statements, resampled = int(used.sum()), None
        if statements >= MIN_STATEMENTS:
            _, rates = rate_replicates(y[used], n[used], n_boot=self._n_boot, seed=self._seed)
            resampled = Resampled(rates=rates, n_clusters=statements)
        return Counts(successes=y.sum(axis=0), trials=n.sum(axis=0), resampled=resampled), statements

    def ranges(self, scope: Scope) -> list[RangeRow]:
        """Ranges of one scope over each factor's own slice, and over all conditions."""
        return [self.range_over(scope, metric, over) for metric in RANGED for over in (*FACTORS, EVERYWHERE)]

    def range_over(self, scope: Scope, metric: str, over: str) -> RangeRow:
        """Range of one measure over a factor's own slice, or over ``EVERYWHERE``."""
        return RangeRow(scope=scope, metric=metric, over=over, result=self._range(scope, metric, over))

    def _range(self, scope: Scope, metric: str, over: str) -> Horizontal | Insufficient:
        grid = self._grid(scope)
        if over == EVERYWHERE:
            own, names = list(range(len(grid.conditions))), ["/".join(condition) for condition in grid.conditions]
        else:
            own = own_slice(grid.conditions, FACTORS.index(over))
            names = [grid.conditions[index][FACTORS.index(over)] for index in own]
        if len(own) < 2:
            return Insufficient(reason="one level" if own else "no condition with the other factors at the baseline")
        y, n = (side.sum(axis=2)[:, own] for side in grid.sums(BY_NAME[metric]))
        # A level without any trial (a free-response task has no selection) is not one of this measure's levels.
        seen = np.flatnonzero(n.any(axis=0))
        levels = [names[index] for index in seen.tolist()]
        return horizontal_range(levels, y[:, seen], n[:, seen], n_boot=self._n_boot, seed=self._seed)

    def ranking(self, rubric: str, deployments: Sequence[Group], *, panel_differs: bool) -> RankRow:
        """Rank deployments by selection and by elaboration on the eligible base, and compare the rankings."""
        usable = [group for group in deployments if all(isinstance(group.metrics[name], Estimate) for name in RANKED)]
        names = tuple(str(group.by["deployment"]) for group in usable)
        if panel_differs:
            return RankRow(rubric=rubric, correlation=OTHER_PANELS)
        if len(usable) < MIN_DEPLOYMENTS:
            reason = f"{len(usable)} deployments with both rates, {MIN_DEPLOYMENTS} needed"
            return RankRow(rubric=rubric, correlation=Insufficient(reason=reason), deployments=names)
        sel, elab = (np.array([_value(group, name) for group in usable]) for name in RANKED)
        correlation = spearman(sel, elab)
        if correlation is None:
            reason = "all deployments have the same rate on one layer"
            return RankRow(rubric=rubric, correlation=Insufficient(reason=reason), deployments=names)
        return RankRow(
            rubric=rubric,
            correlation=correlation,
            leave_one_out=spearman_leave_one_out(sel, elab),
            deployments=names,
            ranks={name: self._rank_ranges(rubric, names, name) for name in RANKED},
        )

    def _rank_ranges(self, rubric: str, names: Sequence[str], metric: str) -> dict[str, tuple[int, int, int]]:
        profiles = [index for index, p in enumerate(self._tallies.profiles) if p.rubric == rubric]
        grid = self._grid(Scope(by={}, rubric=rubric, profiles=tuple(profiles)))
        place = [grid.deployments.index(name) for name in names]
        y, n = (side.sum(axis=1)[:, place] for side in grid.sums(BY_NAME[metric]))
        counts = np.hstack([y, n])[n.any(axis=1)]
        totals = bootstrap_totals(counts, self._n_boot, self._seed)
        observed = _ranks(np.array([counts.sum(axis=0)]), len(names))
        spread = np.cumsum(_ranks(totals, len(names)), axis=1)
        low, high = (spread < 0.025).sum(axis=1), (spread < 0.975).sum(axis=1)
        best = np.argmax(observed, axis=1)
        return {name: (int(best[i]) + 1, int(low[i]) + 1, int(high[i]) + 1) for i, name in enumerate(names)}


def _ranks(totals: Floats, k: int) -> Floats:
    """Rank probabilities of rates given as totals [B, 2k]: events, then trials; a draw without trials counts as 0."""
    return rank_probabilities(totals[:, :k] / np.maximum(totals[:, k:], 1))


def _value(group: Group, name: str) -> float:
    estimate = group.metrics[name]
    assert isinstance(estimate, Estimate)
    return estimate.value


def few_flags(statements: int) -> tuple[str, ...]:
    """Flag what rests on few statements."""
    return (FEW_CLUSTERS,) if statements < ENOUGH_STATEMENTS else ()


def _too_few(statements: int) -> Insufficient:
    return Insufficient(reason=f"{statements} statements, {MIN_STATEMENTS} needed")


def panels(votes: VoteCounts) -> dict[str, frozenset[str]]:
    """Name the judges that read each deployment."""
    out: dict[str, set[str]] = {}
    for deployment, ballot in votes:
        out.setdefault(deployment, set()).update(vote.judge for vote in ballot)
    return {deployment: frozenset(judges) for deployment, judges in out.items()}


def judge_kappas(votes: VoteCounts) -> list[KappaRow]:
    """Agree each pair of judges by layer, over all deployments and by deployment."""
    matrices: dict[tuple[str, str, str, str | None], Ints] = {}
    for (deployment, ballot), count in votes.items():
        for (judge, other, layer), (first, second) in _pairs(ballot):
            cell = confusion_matrix(np.array([first]), np.array([second]), len(_VOTABLE)) * count
            for where in (None, deployment):
                key = (judge, other, layer, where)
                matrices[key] = matrices[key] + cell if key in matrices else cell
    return [
        KappaRow(judge=judge, other=other, layer=layer, deployment=where, n=int(cell.sum()), value=cohen_kappa(cell))
        for (judge, other, layer, where), cell in sorted(
            matrices.items(), key=lambda item: (item[0][2], item[0][0], item[0][1], item[0][3] or "")
        )
    ]


_VOTABLE: Final = tuple(label for label in ELABORATION_LABELS if label != ABSTAIN)


def _pairs(ballot: Sequence[Vote]) -> list[tuple[tuple[str, str, str], tuple[int, int]]]:
    """Pair the labels two judges gave to the same layer of the same response."""
    labelled = sorted((v.layer or "elab", v.judge, v.label) for v in ballot if v.label in _VOTABLE)
    return [
        ((judge, other, layer), (_VOTABLE.index(label or ""), _VOTABLE.index(other_label or "")))
        for index, (layer, judge, label) in enumerate(labelled)
        for other_layer, other, other_label in labelled[index + 1 :]
        if layer == other_layer
    ]
