"""Count the rows of one rubric by statement, condition and deployment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from auditor.counting.conditions import Levels, condition_name
from auditor.counting.joint import N_CELLS, SHAPE, Floats, Ints, JointTable
from auditor.counting.tallies import Tallies
from auditor.metrics.rates import Metric
from auditor.stats.sampled_templates import TemplateCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Entries of some groups with their indices. Sizes: S statements, C conditions, K deployments."""

    conditions: tuple[Levels, ...]
    deployments: tuple[str, ...]
    n_statements: int
    #: Per entry.
    statement: Ints
    condition: Ints
    deployment: Ints
    cell: Ints
    count: Ints
    clusterings: tuple[Ints, ...]
    weight: Floats | None  #: one over the inclusion probability; None if all are the same

    @classmethod
    def of(cls, tallies: Tallies, group_indices: Sequence[int]) -> Self:
        """Index the rows of some groups by the statements, conditions and deployments that they have."""
        keys = [tallies.groups[index] for index in group_indices]
        conditions = sorted({group_key.condition for group_key in keys})
        deployments = sorted({group_key.deployment for group_key in keys})
        entries = tallies.entries(group_indices)
        names, statement = np.unique(tallies.cluster[entries], return_inverse=True)
        sizes = [tallies.spans[index + 1] - tallies.spans[index] for index in group_indices]
        return cls(
            conditions=tuple(conditions),
            deployments=tuple(deployments),
            n_statements=len(names),
            statement=statement,
            condition=np.repeat(_places(conditions, [group_key.condition for group_key in keys]), sizes),
            deployment=np.repeat(_places(deployments, [group_key.deployment for group_key in keys]), sizes),
            cell=tallies.cells(entries),
            count=tallies.count[entries],
            clusterings=tallies.clusterings_of(entries),
            weight=tallies.weight(entries),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The conditions' names."""
        return tuple(condition_name(condition) for condition in self.conditions)

    def sums(self, metric: Metric) -> tuple[Floats, Floats]:
        """Return events and trials of a measure; shapes [S, C, K]."""
        numerator, denominator = (self._sum(weights) for weights in (metric.numerator, metric.denominator))
        return numerator, denominator

    def _sum(self, weights: Floats) -> Floats:
        shape = (self.n_statements, len(self.conditions), len(self.deployments))
        place = np.ravel_multi_index((self.statement, self.condition, self.deployment), shape)
        flat = np.bincount(place, weights=weights.ravel()[self.cell] * self._mass, minlength=int(np.prod(shape)))
        return flat.reshape(shape).astype(np.float64)

    def tables(self, conditions: Sequence[int]) -> dict[str, JointTable]:
        """Return each deployment's joint table over the S statements, where it was asked under the conditions."""
        selected = np.isin(self.condition, conditions)
        out = {}
        for index, name in enumerate(self.deployments):
            mask = selected & (self.deployment == index)
            if mask.any():
                out[name] = JointTable(
                    cluster=self.statement[mask],
                    cell=self.cell[mask],
                    count=self.count[mask],
                    n_clusters=self.n_statements,
                    clusterings=tuple(cluster[mask] for cluster in self.clusterings),
                    weight=None if self.weight is None else self.weight[mask],
                )
        return out

    @property
    def _mass(self) -> Ints | Floats:
        """Counts; with weights scaled so that they sum to the number of responses."""
        if self.weight is None:
            return self.count
        weighted: Floats = self.count * self.weight
        scaled: Floats = weighted * (self.count.sum() / weighted.sum())
        return scaled

    @property
    def totals(self) -> Floats:
        """Responses by condition, deployment and cell of the joint table; shape [C, K, *``joint.SHAPE``]."""
        shape = (len(self.conditions), len(self.deployments), N_CELLS)
        place = np.ravel_multi_index((self.condition, self.deployment, self.cell), shape)
        flat = np.bincount(place, weights=self._mass, minlength=int(np.prod(shape)))
        return flat.reshape(*shape[:2], *SHAPE).astype(np.float64)


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplateGrid:
    """Entries of some groups by template too, where every response states its template and has the same weight."""

    conditions: tuple[Levels, ...]  #: the same as those of the ``Grid`` of the same groups
    deployments: tuple[str, ...]
    templates: tuple[str, ...]
    #: Per entry.
    statement: Ints
    template: Ints
    condition: Ints
    deployment: Ints
    cell: Ints
    count: Ints

    @classmethod
    def of(cls, tallies: Tallies, group_indices: Sequence[int]) -> Self | None:
        """Index the rows of some groups; None where the template of a response is unknown, or weights differ."""
        entries = tallies.entries(group_indices)
        stated = tallies.templates
        if stated is None or not len(entries) or tallies.weight(entries) is not None:
            return None
        mask = np.isin(stated.group, group_indices)
        if stated.count[mask].sum() < tallies.count[entries].sum():
            return None
        keys = [tallies.groups[index] for index in group_indices]
        conditions = sorted({group_key.condition for group_key in keys})
        deployments = sorted({group_key.deployment for group_key in keys})
        place = np.zeros((2, len(tallies.groups)), dtype=np.int64)
        place[0, group_indices] = _places(conditions, [group_key.condition for group_key in keys])
        place[1, group_indices] = _places(deployments, [group_key.deployment for group_key in keys])
        condition, deployment = place[:, stated.group[mask]]
        used, template = np.unique(stated.template[mask], return_inverse=True)
        return cls(
            conditions=tuple(conditions),
            deployments=tuple(deployments),
            templates=tuple(stated.names[index] for index in used.tolist()),
            statement=np.unique(stated.cluster[mask], return_inverse=True)[1],
            template=template,
            condition=condition,
            deployment=deployment,
            cell=np.array([outcome.cell for outcome in tallies.outcomes], dtype=np.int64)[stated.outcome[mask]],
            count=stated.count[mask],
        )

    def counts(self, metric: Metric, conditions: Sequence[int], *, by_deployment: bool = False) -> TemplateCounts:
        """Count events and trials of a measure under some conditions.

        Parameters
        ----------
        metric
            A share of responses.
        conditions
            Places of the conditions, which are the columns; with ``by_deployment`` deployments are the columns, and
            conditions the strata.
        """
        order = np.full(len(self.conditions), -1)
        order[list(conditions)] = np.arange(len(conditions))
        condition = order[self.condition]
        y, n = (side.ravel()[self.cell] * self.count for side in (metric.numerator, metric.denominator))
        tried = (condition >= 0) & (n > 0)
        keys = [each[tried] for each in (self.statement, self.template, condition, self.deployment)]
        if not by_deployment:
            keys = keys[:3]
        shape = tuple(int(each.max(initial=0)) + 1 for each in keys)
        codes, place = np.unique(np.ravel_multi_index(tuple(keys), shape), return_inverse=True)
        values = np.unravel_index(codes, shape)
        return TemplateCounts(
            y=np.bincount(place, weights=y[tried]).astype(np.float64),
            n=np.bincount(place, weights=n[tried]).astype(np.float64),
            statement=values[0],
            template=values[1],
            column=values[3] if by_deployment else values[2],
            stratum=values[2] if by_deployment else np.zeros_like(values[2]),
        )


def _places(order: Sequence[object], values: Sequence[object]) -> Ints:
    place = {value: index for index, value in enumerate(order)}
    return np.array([place[value] for value in values], dtype=np.int64)


def rubric_groups(tallies: Tallies, rubric: str) -> list[int]:
    """Find the groups of one rubric."""
    return [index for index, group_key in enumerate(tallies.groups) if group_key.rubric == rubric]
