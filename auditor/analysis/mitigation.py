"""Which task, role, tone or perspective lowers bias, on both layers or on one (BiAxisAudit section VI, Appendix F).

Each level of a factor stands against one baseline, within the factor's own slice: verdicts on the responses with both
labels, and tests of the selection's rate over all responses that have one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.analysis.across import Scope, few_flags
from auditor.analysis.document import Json, missing
from auditor.analysis.grid import Grid
from auditor.analysis.levels import in_order
from auditor.analysis.tallies import Tallies
from auditor.domain.estimate import Insufficient
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.joint import FREE_TASKS, Floats, Ints
from auditor.metrics.mitigation import Bounded, Effect
from auditor.metrics.mitigation_effects import Mitigation, mitigation_effects
from auditor.metrics.rates import BY_NAME
from auditor.metrics.shares import BASELINE, FACTORS
from auditor.stats.comparisons import against, compare_rates, tukey_hsd
from auditor.stats.effects import cohen_d, cohen_h

#: The paper's order: what is tried first comes first.
_ORDER: Final = ("task", "role", "sentiment", "perspective")


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


def mitigation(tallies: Tallies, scopes: Sequence[Scope], *, seed: int, n_boot: int) -> list[Json]:
    """Write the entries of ``mitigation``: each factor of each scope.

    The baseline is no role, the neutral tone, one's own perspective, and the task whose selection endorses most. The
    paper's Tukey tests stand only in pooled entries, which have the numbers of its tables.
    """
    out: list[Json] = []
    for scope in scopes:
        grid = Grid.of(tallies, scope.profiles)
        for factor in _ORDER:
            own = _own_slice(grid, factor)
            entry: dict[str, Json] = {"rubric": scope.rubric, "by": dict(scope.by), "factor": factor}
            baseline = _baseline(own)
            if isinstance(baseline, Insufficient):
                out.append(entry | {"levels": []} | missing(baseline))
                continue
            levels = _levels_json(own, baseline, tukey=not scope.by, seed=seed, n_boot=n_boot)
            out.append(entry | {"baseline": own.levels[baseline], "levels": levels})
    return out


def _own_slice(grid: Grid, factor: str) -> _Slice:
    place = FACTORS.index(factor)
    own = in_order(grid.conditions, place)
    both, eligible = _over_deployments(grid, "ber_cor", own)
    sel_only, elab_only = (_over_deployments(grid, name, own)[0] for name in ("oed", "ued"))
    neither = eligible - both - sel_only - elab_only
    endorsed, selected = _over_deployments(grid, "ber_sel_full", own)
    return _Slice(
        factor=factor,
        levels=[grid.conditions[index][place] for index in own],
        fourfold=np.stack([both, sel_only, elab_only, neither], axis=-1),
        endorsed=endorsed,
        selected=selected,
    )


def _over_deployments(grid: Grid, metric: str, conditions: Sequence[int]) -> tuple[Floats, Floats]:
    y, n = (side.sum(axis=2)[:, conditions] for side in grid.sums(BY_NAME[metric]))
    return y, n


def _baseline(own: _Slice) -> int | Insufficient:
    if len(own.levels) < 2:
        return Insufficient(reason="one level" if own.levels else "no condition with the other factors at the baseline")
    if own.factor != "task":
        level = BASELINE[FACTORS.index(own.factor)]
        return own.levels.index(level) if level in own.levels else Insufficient(reason=f"{level} was not asked")
    enough = own.statements >= MIN_STATEMENTS
    if not enough.any():
        return Insufficient(reason=f"no task has {MIN_STATEMENTS} statements with a selection")
    rates = own.endorsed.sum(axis=0) / np.maximum(own.selected.sum(axis=0), 1)
    return int(np.argmax(np.where(enough, rates, -1)))


def _levels_json(own: _Slice, baseline: int, *, tukey: bool, seed: int, n_boot: int) -> list[Json]:
    free = FREE_TASKS & set(own.levels) if own.factor == "task" else frozenset()
    found = mitigation_effects(own.levels, own.fourfold, baseline=baseline, free=free, n_boot=n_boot, seed=seed)
    fewest = np.minimum(own.statements, own.statements[baseline]).tolist()
    told = [index for index, few in enumerate(fewest) if few >= MIN_STATEMENTS and index != baseline]
    tested = _tests(own, [baseline, *told], tukey=tukey, seed=seed, n_boot=n_boot) if told else {}
    out: list[Json] = []
    for each in found:
        few = fewest[own.levels.index(each.level)]
        thin = Insufficient(reason=f"{few} statements with a selection, {MIN_STATEMENTS} needed")
        flags = {*each.flags, *(few_flags(few) if each.level in tested else ())}
        out.append(
            {
                **_mitigation_json(each),
                "selection": tested.get(each.level, missing(thin)),
                "flags": sorted(flags),
            }
        )
    return out


def _mitigation_json(found: Mitigation) -> dict[str, Json]:
    return {
        "level": found.level,
        "n_statements": found.n_statements,
        "effect": missing(found.effect) if isinstance(found.effect, Insufficient) else _effect_json(found.effect),
        "published": missing(found.published) if isinstance(found.published, Insufficient) else found.published,
        "verdict": missing(found.verdict) if isinstance(found.verdict, Insufficient) else found.verdict,
    }


def _effect_json(effect: Effect) -> dict[str, Json]:
    return {
        "sel": _bounded_json(effect.sel),
        "elab": _bounded_json(effect.elab),
        "ir": _bounded_json(effect.ir),
        "dni_before": _bounded_json(effect.before),
        "dni_after": _bounded_json(effect.after),
    }


def _bounded_json(bounded: Bounded) -> dict[str, Json]:
    return {"value": bounded.value, "low": bounded.low, "high": bounded.high}


def _tests(own: _Slice, place: Sequence[int], *, tukey: bool, seed: int, n_boot: int) -> dict[str, dict[str, Json]]:
    """Compare the selections of all levels of ``place`` with those of its first; by level."""
    y, n = own.endorsed[:, place], own.selected[:, place]
    found = compare_rates(y, n, against(0, len(place)), n_boot=n_boot, seed=seed)
    sums, sizes = y.sum(axis=0), n.sum(axis=0)
    out: dict[str, dict[str, Json]] = {}
    for pair, index in enumerate(place[1:]):
        two = [pair + 1, 0]
        d = cohen_d(sums[two], sums[two], sizes[two])
        out[own.levels[index]] = {
            "difference": float(found.difference[pair]),
            "low": float(found.low[pair]),
            "high": float(found.high[pair]),
            "p": float(found.p[pair]),
            "cohen_d": missing(Insufficient(reason="neither rate varies")) if d is None else d,
            "cohen_h": cohen_h(*(sums[two] / sizes[two]).tolist()),
        }
    if tukey:
        # Of all pairs, those with the first come first.
        for level, p in zip(out, tukey_hsd(sums, sums, sizes).p.tolist(), strict=False):
            out[level]["p_tukey"] = p
    return out
