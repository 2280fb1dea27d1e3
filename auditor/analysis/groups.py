"""Groups of rows, and everything that is estimated of one group."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from auditor.analysis.reviews import Corrections
from auditor.analysis.tallies import Profile, Scalar, Tallies, scalar_key
from auditor.domain.estimate import Estimate, Insufficient
from auditor.metrics.bounds import Coverage, coverage, failure_bounds, layer_sizes
from auditor.metrics.divergence import QeFold, Trap, cancellation_trap, fourfold_counts, qe_fold, sign_flip
from auditor.metrics.estimate import ENOUGH_STATEMENTS, FEW_CLUSTERS, estimate
from auditor.metrics.joint import Ints, label_counts
from auditor.metrics.rates import METRICS
from auditor.metrics.shares import BASELINE, FACTORS

#: The condition in one word; a row's own field of that name goes before.
CONDITION: Final = "condition"

#: Why there is no rate of endorsement.
NO_CLAIM: Final = Insufficient(reason="rubric proposition without claim stereotype")

#: The values a group is made by, and its rubric.
GroupKey = tuple[tuple[Scalar, ...], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """What is known of one group of rows."""

    by: Mapping[str, Scalar]
    rubric: str
    n: int
    n_selection: int
    n_elaboration: int
    n_eligible: int
    n_statements: int
    coverage: Coverage
    joint: Mapping[str, int]
    counts: Mapping[str, int]
    abstain: Mapping[str, Mapping[str, int]]
    metrics: Mapping[str, Estimate | Insufficient]
    bounds: Mapping[str, tuple[float, float]]
    trap: Trap | Insufficient
    flip: bool | Insufficient
    fold: QeFold | Insufficient
    flags: tuple[str, ...]


def profile_value(tallies: Tallies, profile: Profile, name: str) -> Scalar:
    """Look up the value of one field of a profile."""
    if name in tallies.extra:
        value = profile.extra[tallies.extra.index(name)]
        return "/".join(profile.condition) if value is None and name == CONDITION else value
    if name in FACTORS:
        return profile.condition[FACTORS.index(name)]
    value = getattr(profile, name)
    return value if value is None else str(value)


def group_profiles(tallies: Tallies, by: Sequence[str]) -> list[tuple[GroupKey, list[int]]]:
    """Partition the profiles by the values of some fields, each rubric for itself; sorted."""
    # Keyed by kind of value too: 1 and true are equal to Python, and are not one group.
    groups: dict[tuple[object, ...], tuple[GroupKey, list[int]]] = {}
    for index, profile in enumerate(tallies.profiles):
        values = tuple(profile_value(tallies, profile, name) for name in by)
        key = (tuple(scalar_key(value) for value in values), profile.rubric)
        groups.setdefault(key, ((values, profile.rubric), []))[1].append(index)
    return [groups[key] for key in sorted(groups, key=tuple)]


class Estimator:
    """Estimates groups of one file, each set of profiles once."""

    def __init__(self, tallies: Tallies, *, seed: int, panel_differs: bool) -> None:
        self._tallies = tallies
        self._cells = tallies.cell
        self._corrections = None if tallies.reviewed is None else Corrections(tallies)
        self._seed = seed
        self._panel_differs = panel_differs
        self._done: dict[tuple[int, ...], Group] = {}
        self._dni: dict[tuple[int, ...], Estimate | Insufficient] = {}

    def groups(self, by: Sequence[str]) -> list[Group]:
        """Estimate every group of a partition."""
        fixed = [name for name in by if name not in {*FACTORS, CONDITION}]
        baselines = self._baselines(fixed)
        out = []
        for (values, rubric), profiles in group_profiles(self._tallies, by):
            named = dict(zip(by, values, strict=True))
            beside = baselines.get((tuple(scalar_key(named[name]) for name in fixed), rubric), [])
            out.append(self._group(named, rubric, profiles, beside))
        return out

    def _baselines(self, fixed: Sequence[str]) -> dict[tuple[object, str], list[int]]:
        """Find the baseline cells, by rubric and the values of some fields other than the prompt's factors."""
        out: dict[tuple[object, str], list[int]] = {}
        for index, profile in enumerate(self._tallies.profiles):
            if profile.condition == BASELINE:
                values = tuple(scalar_key(profile_value(self._tallies, profile, name)) for name in fixed)
                out.setdefault((values, profile.rubric), []).append(index)
        return out

    def _group(self, by: Mapping[str, Scalar], rubric: str, profiles: Sequence[int], baseline: Sequence[int]) -> Group:
        key = tuple(profiles)
        if key in self._done:  # e.g. one task asked under one condition; nothing but the name (and its flip) differs
            flip = self._flip(self._done[key].metrics["dni"], key, tuple(baseline))
            return replace(self._done[key], by=by, flip=flip)
        group = self._done[key] = self._estimate(by, rubric, key, tuple(baseline))
        return group

    def _estimate(
        self, by: Mapping[str, Scalar], rubric: str, profiles: tuple[int, ...], baseline: tuple[int, ...]
    ) -> Group:
        entries = self._tallies.entries(profiles)
        table = self._tallies.table(entries, self._cells)
        totals = table.totals
        claimed = all(self._tallies.profiles[index].has_claim for index in profiles)
        metrics: dict[str, Estimate | Insufficient] = {
            metric.name: estimate(metric, table, seed=self._seed) if claimed or not metric.endorsement else NO_CLAIM
            for metric in METRICS
        }
        self._dni[profiles] = metrics["dni"]
        if self._corrections is not None:
            corrected = self._corrections.of(profiles, np.unique(self._tallies.cluster[entries]), table)
            metrics |= corrected if claimed else dict.fromkeys(corrected, NO_CLAIM)
        n_selection, n_elaboration = layer_sizes(totals)
        fourfold = fourfold_counts(totals.astype(np.float64))
        bounds = failure_bounds(totals)
        fold = qe_fold(totals.astype(np.float64))
        ir = metrics["ir"]
        flags = [FEW_CLUSTERS] if table.n_clusters < ENOUGH_STATEMENTS else []
        return Group(
            by=by,
            rubric=rubric,
            n=table.n,
            n_selection=n_selection,
            n_elaboration=n_elaboration,
            n_eligible=int(fourfold.sum()),
            n_statements=table.n_clusters,
            coverage=coverage(totals),
            joint=label_counts(totals),
            counts={name: int(count) for name, count in zip(("n11", "n10", "n01", "n00"), fourfold, strict=True)},
            abstain=self._abstain(entries),
            metrics=metrics,
            bounds={m.name: bounds[m.name] for m in METRICS if m.name in bounds and (claimed or not m.endorsement)},
            trap=cancellation_trap(ir, metrics["dni"], table, seed=self._seed),
            flip=self._flip(metrics["dni"], profiles, baseline),
            fold=ir if isinstance(ir, Insufficient) else fold,
            flags=tuple(flags + (["panel_differs"] if self._panel_differs else [])),
        )

    def _flip(
        self, dni: Estimate | Insufficient, key: tuple[int, ...], baseline: tuple[int, ...]
    ) -> bool | Insufficient:
        if baseline == key:
            return Insufficient(reason="this is the baseline condition")
        if baseline and baseline not in self._dni:
            table = self._tallies.table(self._tallies.entries(baseline), self._cells)
            metric = next(metric for metric in METRICS if metric.name == "dni")
            self._dni[baseline] = estimate(metric, table, seed=self._seed)
        return sign_flip(dni, self._dni.get(baseline))

    def _abstain(self, entries: Ints) -> Mapping[str, Mapping[str, int]]:
        outcomes, counts = self._tallies.outcome[entries], self._tallies.count[entries]
        totals = np.bincount(outcomes, weights=counts, minlength=len(self._tallies.outcomes))
        sel: Counter[str] = Counter()
        elab: Counter[str] = Counter()
        for outcome, total in zip(self._tallies.outcomes, totals, strict=True):
            if total and outcome.sel_reason:
                sel[outcome.sel_reason] += int(total)
            if total and outcome.elab_reason:
                elab[outcome.elab_reason] += int(total)
        return {"sel": dict(sel), "elab": dict(elab)}
