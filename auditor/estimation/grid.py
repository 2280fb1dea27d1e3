"""Count the rows of one rubric by statement, condition and deployment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from auditor.counting.conditions import Levels, condition_name
from auditor.counting.joint import N_CELLS, SHAPE, Floats, Ints, JointTable
from auditor.counting.tallies import Tallies
from auditor.metrics.rates import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Entries of some profiles with their indices. Sizes: S statements, C conditions, K deployments."""

    conditions: tuple[Levels, ...]
    deployments: tuple[str, ...]
    n_statements: int
    #: Per entry.
    statement: Ints
    condition: Ints
    deployment: Ints
    cell: Ints
    count: Ints
    ways: tuple[Ints, ...]
    weight: Floats | None  #: one over the inclusion probability; None if all are the same

    @classmethod
    def of(cls, tallies: Tallies, profiles: Sequence[int]) -> Self:
        """Index the rows of some profiles by the statements, conditions and deployments that they have."""
        own = [tallies.profiles[index] for index in profiles]
        conditions = sorted({profile.condition for profile in own})
        deployments = sorted({profile.deployment for profile in own})
        entries = tallies.entries(profiles)
        names, statement = np.unique(tallies.cluster[entries], return_inverse=True)
        sizes = [tallies.spans[index + 1] - tallies.spans[index] for index in profiles]
        return cls(
            conditions=tuple(conditions),
            deployments=tuple(deployments),
            n_statements=len(names),
            statement=statement,
            condition=np.repeat(_places(conditions, [profile.condition for profile in own]), sizes),
            deployment=np.repeat(_places(deployments, [profile.deployment for profile in own]), sizes),
            cell=tallies.cells(entries),
            count=tallies.count[entries],
            ways=tallies.ways_of(entries),
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
        asked = np.isin(self.condition, conditions)
        out = {}
        for index, name in enumerate(self.deployments):
            own = asked & (self.deployment == index)
            if own.any():
                out[name] = JointTable(
                    cluster=self.statement[own],
                    cell=self.cell[own],
                    count=self.count[own],
                    n_clusters=self.n_statements,
                    ways=tuple(way[own] for way in self.ways),
                    weight=None if self.weight is None else self.weight[own],
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


def _places(order: Sequence[object], values: Sequence[object]) -> Ints:
    place = {value: index for index, value in enumerate(order)}
    return np.array([place[value] for value in values], dtype=np.int64)


def rubric_profiles(tallies: Tallies, rubric: str) -> list[int]:
    """Find the profiles of one rubric."""
    return [index for index, profile in enumerate(tallies.profiles) if profile.rubric == rubric]
