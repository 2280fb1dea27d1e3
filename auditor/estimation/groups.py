"""Estimate groups of rows: rates with intervals, coverage, bounds and verdicts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from auditor.counting.conditions import BASELINE, FACTORS
from auditor.counting.joint import Floats, Ints, JointTable, label_counts
from auditor.counting.rows import STATEMENT
from auditor.counting.tallies import GroupKey, Scalar, Tallies, scalar_key
from auditor.documents.analysis import CategoryEntry, PoolEntry
from auditor.documents.base import Missing, or_missing
from auditor.documents.estimates import (
    AbstainEntry,
    ConditionEntry,
    CountsEntry,
    GroupEntry,
    MisreadingEntry,
    estimate_entry,
)
from auditor.domain.estimate import Corrected, Estimate, Insufficient
from auditor.domain.readers import divergence_refusal
from auditor.estimation.grid import rubric_profiles
from auditor.metrics.bounds import coverage, failure_bounds, layer_sizes
from auditor.metrics.corrected import CORRECTED, CORRECTED_PAIRS
from auditor.metrics.divergence import (
    Trap,
    cancellation_trap,
    corrected_trap,
    fourfold_counts,
    misreading,
    qe_fold,
    sign_flip,
)
from auditor.metrics.estimate import ENOUGH_STATEMENTS, FEW_CLUSTERS, estimate
from auditor.metrics.rates import METRICS
from auditor.reviews.labelled_rows import Corrections

#: The field that names the whole condition. A row's own field of that name takes precedence.
CONDITION: Final = "condition"

#: Why there is no rate of endorsement.
NO_CLAIM: Final = Insufficient(reason="rubric proposition without claim stereotype")

#: What a condition's entry keeps of a group.
CONDITION_METRICS: Final = ("ber_sel_full", "ber_elab_full", "ber_union_full", "ber_cor", "ir", "dni")

#: The values by which a group is formed, and its rubric.
_ValuesKey = tuple[tuple[Scalar, ...], str]


def profile_value(tallies: Tallies, profile: GroupKey, name: str) -> Scalar:
    """Look up the value of one field of a profile."""
    if name in tallies.extra:
        value = profile.extra[tallies.extra.index(name)]
        return "/".join(profile.condition) if value is None and name == CONDITION else value
    if name in FACTORS:
        return profile.condition[FACTORS.index(name)]
    value = getattr(profile, name)
    return value if value is None else str(value)


def group_profiles(tallies: Tallies, by: Sequence[str]) -> list[tuple[_ValuesKey, list[int]]]:
    """Partition the profiles by the values of some fields, separately for each rubric; sorted."""
    # Keyed by kind of value too: 1 and true are equal to Python, and are not one group.
    groups: dict[tuple[object, ...], tuple[_ValuesKey, list[int]]] = {}
    for index, profile in enumerate(tallies.profiles):
        values = tuple(profile_value(tallies, profile, name) for name in by)
        key = (tuple(scalar_key(value) for value in values), profile.rubric)
        groups.setdefault(key, ((values, profile.rubric), []))[1].append(index)
    return [groups[key] for key in sorted(groups, key=tuple)]


class Estimator:
    """The estimator of the groups of one file; it estimates each set of profiles once."""

    def __init__(
        self,
        tallies: Tallies,
        *,
        seed: int,
        panel_differs: bool,
        panels: Mapping[str, AbstractSet[str]] | None = None,
    ) -> None:
        """Take the counts; ``panels`` has the judges of each deployment, as far as they are known."""
        self._tallies = tallies
        self._panels = panels or {}
        self._corrections = None if tallies.reviewed is None else Corrections(tallies)
        self._seed = seed
        self._panel_differs = panel_differs
        self._done: dict[tuple[int, ...], GroupEntry] = {}
        self._dni: dict[tuple[int, ...], Estimate | Insufficient] = {}

    def groups(self, by: Sequence[str]) -> list[GroupEntry]:
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

    def _group(
        self, by: Mapping[str, Scalar], rubric: str, profiles: Sequence[int], baseline: Sequence[int]
    ) -> GroupEntry:
        key = tuple(profiles)
        if key in self._done:  # e.g. one task asked under one condition; nothing but the name (and its flip) differs
            flip = self._flip(self._dni[key], key, tuple(baseline))
            return replace(self._done[key], by=by, sign_flip=flip)
        group = self._done[key] = self._estimate(by, rubric, key, tuple(baseline))
        return group

    def _estimate(
        self, by: Mapping[str, Scalar], rubric: str, profiles: tuple[int, ...], baseline: tuple[int, ...]
    ) -> GroupEntry:
        entries = self._tallies.entries(profiles)
        table = self._tallies.table(entries)
        totals, weighted = table.totals, table.weighted_totals
        claimed = all(self._tallies.profiles[index].has_claim for index in profiles)
        metrics: dict[str, Estimate | Insufficient] = {
            metric.name: estimate(metric, table, seed=self._seed) if claimed or not metric.endorsement else NO_CLAIM
            for metric in METRICS.values()
        }
        self._dni[profiles] = metrics["dni"]
        if self._corrections is not None:
            found = self._corrections.of(profiles, np.unique(self._tallies.cluster[entries]), table)
            metrics |= {
                name: each if claimed or not _is_endorsement(name) else NO_CLAIM for name, each in found.items()
            }
        n_selection, n_elaboration = layer_sizes(totals)
        n11, n10, n01, n00 = (int(count) for count in fourfold_counts(totals.astype(np.float64)))
        bounds = failure_bounds(weighted)
        ir = metrics["ir"]
        flags = [FEW_CLUSTERS] if table.n_clusters < ENOUGH_STATEMENTS else []
        return GroupEntry(
            by=by,
            rubric=rubric,
            n=table.n,
            n_selection=n_selection,
            n_elaboration=n_elaboration,
            n_eligible=n11 + n10 + n01 + n00,
            n_statements=table.n_clusters,
            n_effective=UNSET if table.weight is None else table.effective,
            coverage=coverage(weighted),
            joint=label_counts(totals),
            counts=CountsEntry(n11=n11, n10=n10, n01=n01, n00=n00),
            abstain=self._abstain(entries),
            metrics={name: estimate_entry(found) for name, found in metrics.items()},
            bounds={
                m.name: bounds[m.name] for m in METRICS.values() if m.name in bounds and (claimed or not m.endorsement)
            },
            cancellation_trap=or_missing(self._trap(profiles, metrics, table)),
            sign_flip=self._flip(metrics["dni"], profiles, baseline),
            qe_fold=or_missing(ir if isinstance(ir, Insufficient) else qe_fold(weighted)),
            misreading=_misreading(ir, metrics["dni"], weighted),
            flags=flags + (["panel_differs"] if self._panel_differs else []),
        )

    def _trap(
        self, profiles: tuple[int, ...], metrics: Mapping[str, Estimate | Insufficient], table: JointTable
    ) -> Trap | Insufficient:
        """Return the state of the trap; where the readers support no verdict, only with people's labels."""
        refused = panel_refusal(self._tallies, self._panels, profiles)
        if refused is None:
            return cancellation_trap(metrics["ir"], metrics["dni"], table, seed=self._seed)
        if self._corrections is None:
            return refused
        ir, dni = (metrics[f"{name}_corrected"] for name in ("ir", "dni"))
        if not isinstance(ir, Corrected) or not isinstance(dni, Corrected):
            return refused
        touched = np.unique(self._tallies.cluster[self._tallies.entries(profiles)])
        return corrected_trap(ir, dni, self._corrections.dni_interval(profiles, touched, table, conf=0.90))

    def _flip(self, dni: Estimate | Insufficient, key: tuple[int, ...], baseline: tuple[int, ...]) -> bool | Missing:
        if baseline == key:
            return Missing(missing="this is the baseline condition")
        refused = panel_refusal(self._tallies, self._panels, key)
        if refused is not None:
            return or_missing(refused)
        if baseline and baseline not in self._dni:
            table = self._tallies.table(self._tallies.entries(baseline))
            self._dni[baseline] = estimate(METRICS["dni"], table, seed=self._seed)
        return or_missing(sign_flip(dni, self._dni.get(baseline)))

    def _abstain(self, entries: Ints) -> AbstainEntry:
        outcomes, counts = self._tallies.outcome[entries], self._tallies.count[entries]
        totals = np.bincount(outcomes, weights=counts, minlength=len(self._tallies.outcomes))
        sel: Counter[str] = Counter()
        elab: Counter[str] = Counter()
        for outcome, total in zip(self._tallies.outcomes, totals, strict=True):
            if total and outcome.sel_reason:
                sel[outcome.sel_reason] += int(total)
            if total and outcome.elab_reason:
                elab[outcome.elab_reason] += int(total)
        return AbstainEntry(sel=sel, elab=elab)


def _is_endorsement(corrected: str) -> bool:
    return {**CORRECTED, **CORRECTED_PAIRS}[corrected].endorsement


def panel_refusal(
    tallies: Tallies, panels: Mapping[str, AbstractSet[str]], profiles: Sequence[int]
) -> Insufficient | None:
    """Return why the readers of some profiles support no verdict on IR or DNI; None if they do, or are unknown."""
    names = sorted({tallies.profiles[index].deployment for index in profiles})
    refused = (divergence_refusal(panels.get(name, frozenset())) for name in names)
    return next((each for each in refused if each is not None), None)


def _misreading(
    ir: Estimate | Insufficient, dni: Estimate | Insufficient, totals: Floats
) -> dict[str, MisreadingEntry | Missing]:
    for each in (ir, dni):
        if isinstance(each, Insufficient):
            return dict.fromkeys(("ir", "dni"), Missing(missing=each.reason))
    assert isinstance(ir, Estimate)
    assert isinstance(dni, Estimate)
    return {**misreading(ir, dni, totals)}


def condition_entry(group: GroupEntry) -> ConditionEntry:
    """Return a group without its tables, with the measures by which conditions are compared."""
    return ConditionEntry(
        by=group.by,
        rubric=group.rubric,
        n=group.n,
        n_eligible=group.n_eligible,
        n_statements=group.n_statements,
        coverage=group.coverage,
        metrics={name: group.metrics[name] for name in CONDITION_METRICS},
        sign_flip=group.sign_flip,
        flags=group.flags,
    )


def pool(tallies: Tallies) -> list[PoolEntry]:
    """Return the entry of ``pool``: how many statements there are, in all and by category (BiAxisAudit Table V).

    A statement that rows put in two categories counts in both; rows without a category come last.
    """
    profiles = rubric_profiles(tallies, STATEMENT)
    if not profiles:
        return []
    by_category: dict[str | None, list[int]] = {}
    for index in profiles:
        by_category.setdefault(tallies.profiles[index].category, []).append(index)
    names = sorted(by_category, key=lambda name: (name is None, name or ""))
    categories = [CategoryEntry(category=name, n_statements=_count(tallies, by_category[name])) for name in names]
    return [PoolEntry(rubric=STATEMENT, n_statements=_count(tallies, profiles), categories=categories)]


def _count(tallies: Tallies, profiles: Sequence[int]) -> int:
    return len(np.unique(tallies.statement[tallies.entries(profiles)]))
