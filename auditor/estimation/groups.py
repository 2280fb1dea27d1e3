"""Estimate groups of rows: rates with intervals, coverage and verdicts. ``entries`` writes them into documents."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from auditor.counting.conditions import BASELINE, FACTORS
from auditor.counting.joint import Floats, Ints, JointTable
from auditor.counting.tallies import GroupKey, Scalar, Tallies, scalar_key
from auditor.documents.estimates import CoverageEntry
from auditor.domain.estimate import Corrected, Estimate, Insufficient
from auditor.domain.readers import divergence_refusal
from auditor.metrics.bounds import coverage
from auditor.metrics.corrected import CORRECTED, CORRECTED_PAIRS
from auditor.metrics.divergence import Trap, cancellation_trap, corrected_trap, fourfold_counts, sign_flip
from auditor.metrics.estimate import ENOUGH_STATEMENTS, FEW_CLUSTERS, estimate
from auditor.metrics.rates import METRICS
from auditor.reviews.labelled_rows import Corrections

#: The field that names the whole condition. A row's own field of that name takes precedence.
CONDITION: Final = "condition"

#: Why there is no rate of endorsement.
NO_CLAIM: Final = Insufficient(reason="rubric proposition without claim stereotype")

#: The measures by which conditions are compared.
CONDITION_METRICS: Final = ("ber_sel_full", "ber_elab_full", "ber_union_full", "ber_cor", "ir", "dni")

#: The values by which a group is formed, and its rubric.
_ValuesKey = tuple[tuple[Scalar, ...], str]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Group:
    """What is estimated of one group of rows."""

    by: Mapping[str, Scalar]  #: values that the rows have in common, by field
    rubric: str
    has_claim: bool  #: whether endorsement of the rows' propositions is endorsement of a stereotype
    n: int  #: responses, those that never came included
    n_statements: int
    n_effective: float | None  #: Kish's effective number of responses; None where all have the same weight
    totals: Ints  #: shape ``joint.SHAPE``: responses by cell
    weighted_totals: Floats  #: the same, each response with its weight
    sel_abstains: Mapping[str, int]  #: responses without a label of the selection, by reason
    elab_abstains: Mapping[str, int]  #: the same of the elaboration
    metrics: Mapping[str, Estimate | Insufficient]
    cancellation_trap: Trap | Insufficient
    sign_flip: bool | Insufficient  #: whether DNI has another sign than at the baseline
    flags: tuple[str, ...]

    @property
    def n_eligible(self) -> int:
        """Responses with a label on both layers."""
        return int(fourfold_counts(self.totals.astype(np.float64)).sum())

    @property
    def coverage(self) -> CoverageEntry:
        """Shares of the responses, with their weights."""
        return coverage(self.weighted_totals)


def group_value(tallies: Tallies, group_key: GroupKey, name: str) -> Scalar:
    """Look up the value of one field of a group."""
    if name in tallies.extra:
        value = group_key.extra[tallies.extra.index(name)]
        return "/".join(group_key.condition) if value is None and name == CONDITION else value
    if name in FACTORS:
        return group_key.condition[FACTORS.index(name)]
    value = getattr(group_key, name)
    return value if value is None else str(value)


def partition_groups(tallies: Tallies, by: Sequence[str]) -> list[tuple[_ValuesKey, list[int]]]:
    """Partition the groups by the values of some fields, separately for each rubric; sorted."""
    # Keyed by kind of value too: 1 and true are equal to Python, and are not one group.
    groups: dict[tuple[object, ...], tuple[_ValuesKey, list[int]]] = {}
    for index, group_key in enumerate(tallies.groups):
        values = tuple(group_value(tallies, group_key, name) for name in by)
        key = (tuple(scalar_key(value) for value in values), group_key.rubric)
        groups.setdefault(key, ((values, group_key.rubric), []))[1].append(index)
    return [groups[key] for key in sorted(groups, key=tuple)]


class Estimator:
    """The estimator of the groups of one file; it estimates each set of groups once."""

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
        self._done: dict[tuple[int, ...], Group] = {}
        self._dni: dict[tuple[int, ...], Estimate | Insufficient] = {}

    def groups(self, by: Sequence[str]) -> list[Group]:
        """Estimate every group of a partition."""
        fixed = [name for name in by if name not in {*FACTORS, CONDITION}]
        baselines = self._baselines(fixed)
        out = []
        for (values, rubric), group_indices in partition_groups(self._tallies, by):
            named = dict(zip(by, values, strict=True))
            beside = baselines.get((tuple(scalar_key(named[name]) for name in fixed), rubric), [])
            out.append(self._group(named, rubric, group_indices, beside))
        return out

    def _baselines(self, fixed: Sequence[str]) -> dict[tuple[object, str], list[int]]:
        """Find the baseline cells, by rubric and the values of some fields other than the prompt's factors."""
        out: dict[tuple[object, str], list[int]] = {}
        for index, group_key in enumerate(self._tallies.groups):
            if group_key.condition == BASELINE:
                values = tuple(scalar_key(group_value(self._tallies, group_key, name)) for name in fixed)
                out.setdefault((values, group_key.rubric), []).append(index)
        return out

    def _group(
        self, by: Mapping[str, Scalar], rubric: str, group_indices: Sequence[int], baseline: Sequence[int]
    ) -> Group:
        key = tuple(group_indices)
        if key in self._done:  # e.g. one task asked under one condition; nothing but the name (and its flip) differs
            flip = self._flip(self._dni[key], key, tuple(baseline))
            return replace(self._done[key], by=by, sign_flip=flip)
        group = self._done[key] = self._estimate(by, rubric, key, tuple(baseline))
        return group

    def _estimate(
        self, by: Mapping[str, Scalar], rubric: str, group_indices: tuple[int, ...], baseline: tuple[int, ...]
    ) -> Group:
        entries = self._tallies.entries(group_indices)
        table = self._tallies.table(entries)
        claimed = all(self._tallies.groups[index].has_claim for index in group_indices)
        metrics: dict[str, Estimate | Insufficient] = {
            metric.name: estimate(metric, table, seed=self._seed) if claimed or not metric.endorsement else NO_CLAIM
            for metric in METRICS.values()
        }
        self._dni[group_indices] = metrics["dni"]
        if self._corrections is not None:
            rates = self._corrections.of(group_indices, np.unique(self._tallies.cluster[entries]), table)
            metrics |= {
                name: each if claimed or not _is_endorsement(name) else NO_CLAIM for name, each in rates.items()
            }
        few = (FEW_CLUSTERS,) if table.n_clusters < ENOUGH_STATEMENTS else ()
        sel_abstains, elab_abstains = self._abstains(entries)
        return Group(
            by=by,
            rubric=rubric,
            has_claim=claimed,
            n=table.n,
            n_statements=table.n_clusters,
            n_effective=None if table.weight is None else table.effective,
            totals=table.totals,
            weighted_totals=table.weighted_totals,
            sel_abstains=sel_abstains,
            elab_abstains=elab_abstains,
            metrics=metrics,
            cancellation_trap=self._trap(group_indices, metrics, table),
            sign_flip=self._flip(metrics["dni"], group_indices, baseline),
            flags=few + (("panel_differs",) if self._panel_differs else ()),
        )

    def _trap(
        self, group_indices: tuple[int, ...], metrics: Mapping[str, Estimate | Insufficient], table: JointTable
    ) -> Trap | Insufficient:
        """Return the state of the trap; where the readers support no verdict, only with people's labels."""
        refused = panel_refusal(self._tallies, self._panels, group_indices)
        if refused is None:
            return cancellation_trap(metrics["ir"], metrics["dni"], table, seed=self._seed)
        if self._corrections is None:
            return refused
        ir, dni = (metrics[f"{name}_corrected"] for name in ("ir", "dni"))
        if not isinstance(ir, Corrected) or not isinstance(dni, Corrected):
            return refused
        touched = np.unique(self._tallies.cluster[self._tallies.entries(group_indices)])
        return corrected_trap(ir, dni, self._corrections.dni_interval(group_indices, touched, table, conf=0.90))

    def _flip(
        self, dni: Estimate | Insufficient, key: tuple[int, ...], baseline: tuple[int, ...]
    ) -> bool | Insufficient:
        if baseline == key:
            return Insufficient(reason="this is the baseline condition")
        refused = panel_refusal(self._tallies, self._panels, key)
        if refused is not None:
            return refused
        if baseline and baseline not in self._dni:
            table = self._tallies.table(self._tallies.entries(baseline))
            self._dni[baseline] = estimate(METRICS["dni"], table, seed=self._seed)
        return sign_flip(dni, self._dni.get(baseline))

    def _abstains(self, entries: Ints) -> tuple[Counter[str], Counter[str]]:
        """Count the responses without a label of the selection, and of the elaboration, by reason."""
        outcomes, counts = self._tallies.outcome[entries], self._tallies.count[entries]
        totals = np.bincount(outcomes, weights=counts, minlength=len(self._tallies.outcomes))
        sel: Counter[str] = Counter()
        elab: Counter[str] = Counter()
        for outcome, total in zip(self._tallies.outcomes, totals, strict=True):
            if total and outcome.sel_reason:
                sel[outcome.sel_reason] += int(total)
            if total and outcome.elab_reason:
                elab[outcome.elab_reason] += int(total)
        return sel, elab


def _is_endorsement(corrected: str) -> bool:
    return {**CORRECTED, **CORRECTED_PAIRS}[corrected].endorsement


def panel_refusal(
    tallies: Tallies, panels: Mapping[str, AbstractSet[str]], group_indices: Sequence[int]
) -> Insufficient | None:
    """Return why the readers of some groups support no verdict on IR or DNI; None if they do, or are unknown."""
    names = sorted({tallies.groups[index].deployment for index in group_indices})
    refused = (divergence_refusal(panels.get(name, frozenset())) for name in names)
    return next((each for each in refused if each is not None), None)
