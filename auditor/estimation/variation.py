"""Estimate how much a rate varies with the prompt: shares of variance and ranges over conditions.

The same numbers are written by analyses of files (``analysis.json``) and stored by the auditor's snapshots.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import UNSET, UnsetType, structs

from auditor.counting.conditions import FACTORS
from auditor.counting.joint import Floats
from auditor.counting.rows import STATEMENT
from auditor.counting.tallies import Scalar, Tallies
from auditor.documents.base import Missing, or_missing
from auditor.documents.conditions import (
    Design,
    FactorEntry,
    FactorShare,
    LevelRange,
    MissingRange,
    MissingVarianceShare,
    RangeEntry,
    VarianceShareEntry,
    VarianceShareKey,
    Weighting,
)
from auditor.domain.estimate import Insufficient
from auditor.estimation.grid import Grid, TemplateGrid
from auditor.metrics.estimate import ENOUGH_STATEMENTS, FEW_CLUSTERS, MIN_STATEMENTS
from auditor.metrics.rates import METRICS
from auditor.metrics.shares import (
    FIXED_TEMPLATES,
    ONE_TEMPLATE,
    CellCounts,
    ConditionCounts,
    Resampled,
    Shares,
    eta_squared_between,
    eta_squared_oat,
    factor_slice,
    factorial_shares,
    horizontal_range,
    one_template,
)
from auditor.stats.bootstrap import rate_replicates
from auditor.stats.sampled_templates import TemplateVariance, template_variance

#: Measures whose range over the conditions is given.
RANGED: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full")
#: The measure whose variance one factor at a time shares out.
SHARED: Final = "ber_union_full"
#: A range over all conditions, in addition to those over each factor.
EVERYWHERE: Final = "condition"
#: The rows of Figure 9 of BiAxisAudit.
OUTCOMES: Final = ("ber_sel_full", "ber_elab_full", "ber_cor", "ber_union_full")
#: Why there is no number for several deployments.
OTHER_PANELS: Final = Insufficient(reason="the deployments were read by different panels")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Rows of one rubric that something is computed over."""

    by: Mapping[str, Scalar]
    rubric: str
    group_indices: tuple[int, ...]


def scopes(tallies: Tallies) -> list[Scope]:
    """List the pooled rows and each deployment's, by rubric; and each category's where rows name one."""
    out = []
    for rubric in sorted({group_key.rubric for group_key in tallies.groups}):
        indexed = [(index, p) for index, p in enumerate(tallies.groups) if p.rubric == rubric]
        out.append(Scope(by={}, rubric=rubric, group_indices=tuple(index for index, _ in indexed)))
        for field in ("deployment", "category"):
            members: dict[str, list[int]] = {}
            for index, p in indexed:
                if (value := getattr(p, field)) is not None:
                    members.setdefault(value, []).append(index)
            out += [
                Scope(by={field: name}, rubric=rubric, group_indices=tuple(members[name])) for name in sorted(members)
            ]
    return out


class Variation:
    """Computes shares of variance and ranges from one file's tallies."""

    def __init__(self, tallies: Tallies, *, seed: int, n_boot: int) -> None:
        self._tallies = tallies
        self._seed = seed
        self._n_boot = n_boot
        self._grids: dict[tuple[int, ...], Grid] = {}
        self._templated: dict[tuple[int, ...], TemplateGrid | None] = {}
        self._sampled: dict[tuple[tuple[int, ...], str], TemplateVariance | None] = {}

    def _grid(self, scope: Scope) -> Grid:
        if scope.group_indices not in self._grids:
            self._grids[scope.group_indices] = Grid.of(self._tallies, scope.group_indices)
        return self._grids[scope.group_indices]

    def template_grid(self, scope: Scope) -> TemplateGrid | None:
        """Return the rows of one scope by template; None where templates are unknown."""
        if scope.group_indices not in self._templated:
            self._templated[scope.group_indices] = TemplateGrid.of(self._tallies, scope.group_indices)
        return self._templated[scope.group_indices]

    def seen(self, scope: Scope, metric: str) -> list[int]:
        """Return the places of the conditions under which a measure has trials."""
        _, n = self._grid(scope).sums(METRICS[metric])
        return [int(place) for place in np.flatnonzero(n.any(axis=(0, 2)))]

    def sampled(self, scope: Scope, metric: str) -> TemplateVariance | None:
        """Return what templates add to the variance of the rates of all conditions that are ``seen``."""
        key = (scope.group_indices, metric)
        if key not in self._sampled:
            grid, seen = self.template_grid(scope), self.seen(scope, metric)
            known = grid is not None and len(seen) > 0
            self._sampled[key] = template_variance(grid.counts(METRICS[metric], seen)) if grid and known else None
        return self._sampled[key]

    def shares(self, scope: Scope) -> list[VarianceShareEntry | MissingVarianceShare]:
        """Return the entries of ``eta_squared`` of one scope: one factor at a time in both weightings, and crossed."""
        weightings: tuple[Weighting, ...] = ("responses", "equal")
        alone, flags = self.oat_shares(scope, weightings)
        out = [
            _share_entry(scope, SHARED, "oat", shares, flags, weights)
            for weights, shares in zip(weightings, alone, strict=True)
        ]
        sel, statements = self.condition_counts(scope, "ber_sel_full")
        crossed = factorial_shares(sel) if statements >= MIN_STATEMENTS else _too_few(statements)
        flags = few_flags(statements) + template_flags(scope.rubric, self.sampled(scope, "ber_sel_full"))
        return [*out, _share_entry(scope, "ber_sel_full", "factorial", crossed, flags)]

    def oat_shares(
        self, scope: Scope, weightings: Sequence[Weighting]
    ) -> tuple[list[Shares | Insufficient], tuple[str, ...]]:
        """Return the shares of variance of ``SHARED``, one factor at a time, for each weighting; and their flags."""
        counts, statements = self.condition_counts(scope, SHARED)
        shares = [
            eta_squared_oat(counts, weights) if statements >= MIN_STATEMENTS else _too_few(statements)
            for weights in weightings
        ]
        return shares, few_flags(statements) + template_flags(scope.rubric, self.sampled(scope, SHARED))

    def deployment_shares(
        self, scope: Scope, *, panel_differs: bool
    ) -> list[VarianceShareEntry | MissingVarianceShare]:
        """Return the shares of the choice of deployment, over the conditions that all deployments were asked under."""
        grid = self._grid(scope)
        out = []
        for outcome in ("ber_union_full", "ber_sel_full"):
            y, n = grid.sums(METRICS[outcome])
            common = (n.sum(axis=0) > 0).all(axis=1)
            templated, places = self.template_grid(scope), np.flatnonzero(common).tolist()
            templates = (
                template_variance(templated.counts(METRICS[outcome], places, by_deployment=True))
                if templated is not None and places
                else None
            )
            counts, statements = self._resampled(y[:, common].sum(axis=1), n[:, common].sum(axis=1), templates)
            shares: Shares | Insufficient = _too_few(statements)
            if panel_differs and outcome != "ber_sel_full":
                shares = OTHER_PANELS
            elif not common.any():
                shares = Insufficient(reason="no condition that all deployments were asked under")
            elif statements >= MIN_STATEMENTS:
                shares = eta_squared_between("deployment", counts)
            flags = few_flags(statements) + template_flags(scope.rubric, templates)
            out.append(_share_entry(scope, outcome, "deployment", shares, flags))
        return out

    def factors(self, scope: Scope) -> list[FactorEntry]:
        """Return the entries of ``factors`` of one scope: each outcome by each factor, one factor at a time.

        A share is over the factor's own slice, the task's over the whole one-at-a-time grid; a range over the own
        slice.
        """
        out = []
        for outcome in OUTCOMES:
            counts, statements = self.condition_counts(scope, outcome)
            templates = self.sampled(scope, outcome)
            shares = eta_squared_oat(counts)
            for place, factor in enumerate(FACTORS):
                indices = factor_slice(counts.conditions, place)
                out.append(
                    FactorEntry(
                        rubric=scope.rubric,
                        factor=factor,
                        outcome=outcome,
                        base=METRICS[outcome].base,
                        n=shares.n if factor == "task" else round(counts.trials[indices].sum()),
                        eta_squared=_bounded_share(shares, factor, statements),
                        range=or_missing(self.level_range(scope, outcome, factor)),
                        flags=few_flags(statements) + template_flags(scope.rubric, templates),
                    )
                )
        return out

    def condition_counts(self, scope: Scope, metric: str) -> tuple[ConditionCounts, int]:
        """Count by condition, with replicates; and return how many statements the counts rest on."""
        grid = self._grid(scope)
        y, n = (side.sum(axis=2) for side in grid.sums(METRICS[metric]))
        seen = np.flatnonzero(n.any(axis=0))
        counts, statements = self._resampled(y[:, seen], n[:, seen], self.sampled(scope, metric))
        conditions = [grid.conditions[index] for index in seen.tolist()]
        named_counts = ConditionCounts(
            successes=counts.successes, trials=counts.trials, resampled=counts.resampled, conditions=conditions
        )
        return named_counts, statements

    def _resampled(self, y: Floats, n: Floats, templates: TemplateVariance | None) -> tuple[CellCounts, int]:
        """Sum over statements; with replicates, and what templates add, where there are enough of them.

        All columns have trials, or none has.
        """
        used = n.any(axis=1)
        statements, resampled = int(used.sum()), None
        if statements >= MIN_STATEMENTS:
            _, rates = rate_replicates(y[used], n[used], n_boot=self._n_boot, seed=self._seed)
            resampled = Resampled(rates=rates, n_clusters=statements, templates=templates, seed=self._seed)
        return CellCounts(successes=y.sum(axis=0), trials=n.sum(axis=0), resampled=resampled), statements

    def ranges(self, scope: Scope) -> list[RangeEntry | MissingRange]:
        """Return the ranges of one scope over each factor's own slice, and over all conditions."""
        return [self.range_over(scope, metric, over) for metric in RANGED for over in (*FACTORS, EVERYWHERE)]

    def range_over(self, scope: Scope, metric: str, over: str) -> RangeEntry | MissingRange:
        """Return the entry of the range of one measure over a factor's own slice, or over ``EVERYWHERE``."""
        spread = self.level_range(scope, metric, over)
        if isinstance(spread, Insufficient):
            return MissingRange(by=scope.by, rubric=scope.rubric, metric=metric, over=over, missing=spread.reason)
        return RangeEntry(by=scope.by, rubric=scope.rubric, metric=metric, over=over, **structs.asdict(spread))

    def level_range(self, scope: Scope, metric: str, over: str) -> LevelRange | Insufficient:
        """Return the range of one measure over a factor's own slice, or over ``EVERYWHERE``."""
        grid = self._grid(scope)
        if over == EVERYWHERE:
            indices, names = list(range(len(grid.conditions))), ["/".join(condition) for condition in grid.conditions]
        else:
            indices = factor_slice(grid.conditions, FACTORS.index(over))
            names = [grid.conditions[index][FACTORS.index(over)] for index in indices]
        if len(indices) < 2:
            return Insufficient(
                reason="one level" if indices else "no condition with the other factors at the baseline"
            )
        y, n = (side.sum(axis=2)[:, indices] for side in grid.sums(METRICS[metric]))
        # A level without any trial (a free-response task has no selection) is not one of this measure's levels.
        seen = np.flatnonzero(n.any(axis=0))
        levels = [names[index] for index in seen.tolist()]
        templates = self.sampled(scope, metric)
        if templates is not None:
            place = {condition: index for index, condition in enumerate(self.seen(scope, metric))}
            templates = templates.subset([place[indices[index]] for index in seen.tolist()])
        spread = horizontal_range(
            levels, y[:, seen], n[:, seen], n_boot=self._n_boot, seed=self._seed, templates=templates
        )
        if isinstance(spread, Insufficient) or templates is not None:
            return spread
        return structs.replace(spread, flags=(*spread.flags, *template_flags(scope.rubric, None)))


def template_flags(rubric: str, templates: TemplateVariance | None) -> tuple[str, ...]:
    """Flag what holds for these templates alone, or takes a template's variance from other conditions."""
    if templates is None:
        return (FIXED_TEMPLATES,) if rubric == STATEMENT else ()
    return (ONE_TEMPLATE,) if one_template(templates) else ()


def _share_entry(
    scope: Scope,
    outcome: str,
    design: Design,
    shares: Shares | Insufficient,
    flags: tuple[str, ...],
    weights: Weighting | UnsetType = UNSET,
) -> VarianceShareEntry | MissingVarianceShare:
    key = VarianceShareKey(
        by=scope.by,
        rubric=scope.rubric,
        outcome=outcome,
        base="full",
        design=design,
        weights=weights,
        flags=flags,
    )
    if isinstance(shares, Insufficient):
        return MissingVarianceShare(**structs.asdict(key), missing=shares.reason)
    return VarianceShareEntry(
        **structs.asdict(key),
        n=shares.n,
        effects={name: or_missing(effect) for name, effect in shares.effects.items()},
        intervals=shares.intervals,
        fixed=shares.fixed or UNSET,
        imbalance=UNSET if shares.imbalance is None else shares.imbalance,
    )


def _bounded_share(shares: Shares, factor: str, statements: int) -> FactorShare | Missing:
    share = shares.effects[factor] if statements >= MIN_STATEMENTS else _too_few(statements)
    if isinstance(share, Insufficient):
        return Missing(missing=share.reason)
    low, high = shares.intervals[factor]
    return FactorShare(value=share, low=low, high=high, fixed=shares.fixed.get(factor, UNSET))


def few_flags(statements: int) -> tuple[str, ...]:
    """Flag what rests on few statements."""
    return (FEW_CLUSTERS,) if statements < ENOUGH_STATEMENTS else ()


def _too_few(statements: int) -> Insufficient:
    return Insufficient(reason=f"{statements} statements, {MIN_STATEMENTS} needed")
