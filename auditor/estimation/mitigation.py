"""Test which task, role, tone or perspective lowers bias, on both layers or on one (BiAxisAudit VI, Appendix F).

Each level of a factor stands against one baseline, within the factor's own slice: verdicts on the responses with both
labels, and tests of the selection's rate over all responses that have one.

``tradeoff`` compares rates with completion tokens (F-E, F-F). Its options are the conditions of the one-at-a-time
design that ask for a selection; rates are of all rows of the deployments that report tokens.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from msgspec import UNSET, structs

from auditor.counting.conditions import BASELINE, FACTORS, Levels, condition_name, off_baseline
from auditor.counting.joint import FREE_TASKS, Floats, Ints
from auditor.counting.rows import STATEMENT
from auditor.counting.tallies import Tallies
from auditor.documents.base import Missing, or_missing, value_or
from auditor.documents.conditions import (
    MissingMitigation,
    MissingTradeoff,
    MitigationEntry,
    MitigationLevel,
    SelectionTestEntry,
    TradeoffEntry,
    TradeoffOption,
)
from auditor.documents.estimates import EstimateEntry, estimate_entry
from auditor.domain.condition import Factor
from auditor.domain.estimate import Insufficient
from auditor.estimation.grid import Grid, rubric_groups
from auditor.estimation.groups import panel_refusal
from auditor.estimation.levels import in_order
from auditor.estimation.variation import Scope, few_flags
from auditor.metrics.estimate import MIN_STATEMENTS, estimate
from auditor.metrics.mitigation import mitigation_effects
from auditor.metrics.rates import METRICS
from auditor.metrics.tradeoff import Tradeoff, token_tradeoff
from auditor.stats.comparisons import against, compare_rates, tukey_p
from auditor.stats.differences import cohen_d, cohen_h

#: The factors in the paper's order.
_ORDER: Final[tuple[Factor, ...]] = ("task", "role", "sentiment", "perspective")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Slice:
    """One factor's levels, L of them, with the other factors at the baseline."""

    factor: str
    levels: list[str]
    fourfold: Floats  #: shape [S, L, 4]: n11, n10, n01, n00
    endorsed: Floats  #: shape [S, L]: selections that endorse
    selected: Floats  #: shape [S, L]: responses with a selection

    @property
    def statements(self) -> Ints:
        """Statements with a selection, by level."""
        return np.array(np.count_nonzero(self.selected, axis=0), dtype=np.int64)


def mitigation(
    tallies: Tallies, scopes: Sequence[Scope], *, panels: Mapping[str, AbstractSet[str]], seed: int, n_boot: int
) -> list[MitigationEntry | MissingMitigation]:
    """Return the entries of ``mitigation``: each factor of each scope, with the judges of each deployment.

    A verdict by intervals uses IR and DNI, so it needs a panel that supports verdicts on them.

    The baseline is no role, the neutral tone, one's own perspective, and the task whose selection endorses most. The
    paper's Tukey tests stand only in pooled entries, which have the numbers of its tables.
    """
    out: list[MitigationEntry | MissingMitigation] = []
    for scope in scopes:
        grid = Grid.of(tallies, scope.group_indices)
        refused = panel_refusal(tallies, panels, scope.group_indices)
        for factor in _ORDER:
            factor_slice = _read_slice(grid, factor)
            baseline = _baseline(factor_slice)
            if isinstance(baseline, Insufficient):
                reason = baseline.reason
                out.append(
                    MissingMitigation(rubric=scope.rubric, by=scope.by, factor=factor, levels=[], missing=reason)
                )
                continue
            levels = _level_entries(factor_slice, baseline, tukey=not scope.by, seed=seed, n_boot=n_boot)
            if refused is not None:
                levels = [_without_verdict(level, refused) for level in levels]
            name = factor_slice.levels[baseline]
            out.append(MitigationEntry(rubric=scope.rubric, by=scope.by, factor=factor, baseline=name, levels=levels))
    return out


def _without_verdict(level: MitigationLevel, refused: Insufficient) -> MitigationLevel:
    """Withhold a verdict by intervals on the change of both layers."""
    if isinstance(level.effect, Missing) or isinstance(level.verdict, Missing):
        return level
    return structs.replace(level, verdict=or_missing(refused))


def _read_slice(grid: Grid, factor: str) -> _Slice:
    place = FACTORS.index(factor)
    indices = in_order(grid.conditions, place)
    both, eligible = _over_deployments(grid, "ber_cor", indices)
    sel_only, elab_only = (_over_deployments(grid, name, indices)[0] for name in ("oed", "ued"))
    neither = eligible - both - sel_only - elab_only
    endorsed, selected = _over_deployments(grid, "ber_sel_full", indices)
    return _Slice(
        factor=factor,
        levels=[grid.conditions[index][place] for index in indices],
        fourfold=np.stack([both, sel_only, elab_only, neither], axis=-1),
        endorsed=endorsed,
        selected=selected,
    )


def _over_deployments(grid: Grid, metric: str, conditions: Sequence[int]) -> tuple[Floats, Floats]:
    y, n = (side.sum(axis=2)[:, conditions] for side in grid.sums(METRICS[metric]))
    return y, n


def _baseline(factor_slice: _Slice) -> int | Insufficient:
    if len(factor_slice.levels) < 2:
        return Insufficient(
            reason="one level" if factor_slice.levels else "no condition with the other factors at the baseline"
        )
    if factor_slice.factor != "task":
        level = BASELINE[FACTORS.index(factor_slice.factor)]
        return (
            factor_slice.levels.index(level)
            if level in factor_slice.levels
            else Insufficient(reason=f"{level} was not asked")
        )
    enough = factor_slice.statements >= MIN_STATEMENTS
    if not enough.any():
        return Insufficient(reason=f"no task has {MIN_STATEMENTS} statements with a selection")
    rates = factor_slice.endorsed.sum(axis=0) / np.maximum(factor_slice.selected.sum(axis=0), 1)
    return int(np.argmax(np.where(enough, rates, -1)))


def _level_entries(
    factor_slice: _Slice, baseline: int, *, tukey: bool, seed: int, n_boot: int
) -> list[MitigationLevel]:
    free = FREE_TASKS & set(factor_slice.levels) if factor_slice.factor == "task" else frozenset()
    effects = mitigation_effects(
        factor_slice.levels, factor_slice.fourfold, baseline=baseline, free=free, n_boot=n_boot, seed=seed
    )
    fewest = np.minimum(factor_slice.statements, factor_slice.statements[baseline]).tolist()
    enough = [index for index, few in enumerate(fewest) if few >= MIN_STATEMENTS and index != baseline]
    tested = _tests(factor_slice, [baseline, *enough], tukey=tukey, seed=seed, n_boot=n_boot) if enough else {}
    out = []
    for each in effects:
        few = fewest[factor_slice.levels.index(each.level)]
        thin = Missing(missing=f"{few} statements with a selection, {MIN_STATEMENTS} needed")
        flags = {*each.flags, *(few_flags(few) if each.level in tested else ())}
        out.append(
            MitigationLevel(
                level=each.level,
                n_statements=each.n_statements,
                effect=or_missing(each.effect),
                published=or_missing(each.published),
                verdict=or_missing(each.verdict),
                selection=tested.get(each.level, thin),
                flags=sorted(flags),
            )
        )
    return out


def _tests(
    factor_slice: _Slice, place: Sequence[int], *, tukey: bool, seed: int, n_boot: int
) -> dict[str, SelectionTestEntry]:
    """Compare the selections of all levels of ``place`` with those of its first; by level."""
    y, n = factor_slice.endorsed[:, place], factor_slice.selected[:, place]
    pairs = against(0, len(place))
    comparison = compare_rates(y, n, pairs, n_boot=n_boot, seed=seed)
    sums, sizes = y.sum(axis=0), n.sum(axis=0)
    p_tukey: list[float] = tukey_p(sums, sums, sizes, pairs).tolist() if tukey else []
    out = {}
    for pair, index in enumerate(place[1:]):
        two = [pair + 1, 0]
        out[factor_slice.levels[index]] = SelectionTestEntry(
            difference=float(comparison.difference[pair]),
            low=float(comparison.low[pair]),
            high=float(comparison.high[pair]),
            p=float(comparison.p[pair]),
            cohen_d=value_or(cohen_d(sums[two], sums[two], sizes[two]), "neither rate varies"),
            cohen_h=cohen_h(*(sums[two] / sizes[two]).tolist()),
            p_tukey=p_tukey[pair] if tukey else UNSET,
        )
    return out


#: Both over the same conditions, one scale of tokens for the two.
OUTCOMES: Final = ("ber_sel_full", "ber_union_full")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Options:
    """The conditions with known tokens, each with its groups."""

    group_indices: dict[str, list[int]]  #: groups by the option's name
    grid: Grid
    tokens: Floats  #: shape [C]: of a response, on average
    left_out: list[str]  #: conditions that do not


def tradeoff(tallies: Tallies, *, seed: int, n_boot: int) -> list[TradeoffEntry | MissingTradeoff]:
    """Return the entries of ``tradeoff``: all deployments that say their tokens, pooled; by outcome."""
    planned = [
        index
        for index in rubric_groups(tallies, STATEMENT)
        if off_baseline(tallies.groups[index].condition) <= 1 and tallies.groups[index].condition[0] not in FREE_TASKS
    ]
    if not planned:
        return []
    options = _options(tallies, planned)
    if isinstance(options, Insufficient):
        return [_missing(outcome, options) for outcome in OUTCOMES]
    dni = {name: _dni(tallies, indices, seed) for name, indices in options.group_indices.items()}
    out: list[TradeoffEntry | MissingTradeoff] = []
    for outcome in OUTCOMES:
        y, n = (side.sum(axis=2) for side in options.grid.sums(METRICS[outcome]))
        comparison = token_tradeoff(options.grid.names, y, n, options.tokens, n_boot=n_boot, seed=seed)
        if isinstance(comparison, Insufficient):
            out.append(_missing(outcome, comparison))
        else:
            out.append(_tradeoff_entry(outcome, comparison, options, dni))
    return out


def _missing(outcome: str, why: Insufficient) -> MissingTradeoff:
    return MissingTradeoff(rubric=STATEMENT, by={}, outcome=outcome, missing=why.reason)


def _options(tallies: Tallies, planned: Sequence[int]) -> _Options | Insufficient:
    spent = tallies.completions
    if spent is None:
        return Insufficient(reason="no row says its completion tokens")
    by_condition: dict[Levels, list[int]] = {tallies.groups[index].condition: [] for index in planned}
    for index in planned:
        if spent.rows[index]:
            by_condition[tallies.groups[index].condition].append(index)
    priced = {
        condition: group_indices
        for condition, group_indices in by_condition.items()
        if spent.tokens[group_indices].any()
    }
    if not priced:
        return Insufficient(reason="no row that asks for a selection says that it has completion tokens")
    grid = Grid.of(tallies, sorted(index for group_indices in priced.values() for index in group_indices))
    means = [spent.tokens[priced[each]].sum() / spent.rows[priced[each]].sum() for each in grid.conditions]
    return _Options(
        group_indices={condition_name(condition): priced[condition] for condition in grid.conditions},
        grid=grid,
        tokens=np.array(means),
        left_out=[condition_name(condition) for condition in sorted(by_condition.keys() - priced.keys())],
    )


def _dni(tallies: Tallies, group_indices: Sequence[int], seed: int) -> EstimateEntry | Missing:
    entries = tallies.entries(group_indices)
    table = tallies.table(entries)
    return estimate_entry(estimate(METRICS["dni"], table, seed=seed))


def _tradeoff_entry(
    outcome: str, comparison: Tradeoff, options: _Options, dni: Mapping[str, EstimateEntry | Missing]
) -> TradeoffEntry:
    by: dict[str, dict[str, str]] = {
        condition_name(condition): dict(zip(FACTORS, condition, strict=True)) for condition in options.grid.conditions
    }
    return TradeoffEntry(
        rubric=STATEMENT,
        by={},
        outcome=outcome,
        deployments=options.grid.deployments,
        options=[
            TradeoffOption(**asdict(option), by=by[option.name], dni=dni[option.name]) for option in comparison.options
        ],
        recipes=comparison.recipes,
        n_statements=comparison.n_statements,
        left_out=sorted([*comparison.left_out, *options.left_out]),
    )
