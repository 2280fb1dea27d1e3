"""Everything by the values of one field of the rows, such as a category or a region: what holds where."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from auditor.analysis.across import Across, Scope
from auditor.analysis.document import Json, group_json, range_json, share_json
from auditor.analysis.groups import CONDITION, Estimator, Group, group_profiles
from auditor.analysis.levels import levels
from auditor.analysis.rows import STATEMENT
from auditor.analysis.tallies import Tallies, scalar_key
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.metrics.shares import FACTORS

#: Fields that the rest of the document is already by.
_ELSEWHERE: Final = frozenset({"deployment", "rubric", "claim", CONDITION, *FACTORS})
#: The headline, whose range over the tasks is given.
_RANGED: Final = "ber_union_full"


@dataclass(frozen=True, kw_only=True, slots=True)
class Slicer:
    """What slices are made with."""

    tallies: Tallies
    estimator: Estimator
    across: Across
    panel_differs: bool
    seed: int
    n_boot: int

    def slices(self, by: Sequence[str]) -> list[Json]:
        """Write the entries of ``slices``: one for each rubric and field of ``by`` that the document is not by already.

        Conditions are compared among rows that were asked under them, of ``MIN_STATEMENTS`` statements or more.
        """
        out: list[Json] = []
        for field in by:
            if field not in _ELSEWHERE:
                values = self._values(field)
                out += [{"rubric": rubric, "field": field, "values": values[rubric]} for rubric in sorted(values)]
        return out

    def _values(self, field: str) -> dict[str, list[Json]]:
        out: dict[str, list[Json]] = {}
        deployments: dict[tuple[object, str], list[Group]] = {}
        for group in self.estimator.groups((field, "deployment")):
            deployments.setdefault((scalar_key(group.by[field]), group.rubric), []).append(group)
        parts = zip(group_profiles(self.tallies, (field,)), self.estimator.groups((field,)), strict=True)
        for (_, profiles), pooled in parts:
            value, rubric = pooled.by[field], pooled.rubric
            entry: dict[str, Json] = {
                "value": value,
                "n_statements": pooled.n_statements,
                "pooled": group_json(pooled),
                "deployments": [group_json(group) for group in deployments[scalar_key(value), rubric]],
                "eta_squared": [],
                "horizontal": [],
                "levels": [],
            }
            if rubric == STATEMENT and pooled.n_statements >= MIN_STATEMENTS:
                entry |= self._compared(Scope(by={field: value}, rubric=rubric, profiles=tuple(profiles)))
            out.setdefault(rubric, []).append(entry)
        return out

    def _compared(self, scope: Scope) -> dict[str, Json]:
        """Compare conditions among the rows of one value, pooled and by deployment."""
        members: dict[str, list[int]] = {}
        for index in scope.profiles:
            members.setdefault(self.tallies.profiles[index].deployment, []).append(index)
        each = [
            Scope(by={**scope.by, "deployment": name}, rubric=scope.rubric, profiles=tuple(members[name]))
            for name in sorted(members)
        ]
        return {
            "eta_squared": [share_json(row) for row in self.across.shares(scope)],
            "horizontal": [range_json(self.across.range_over(own, _RANGED, "task")) for own in (scope, *each)],
            "levels": self.levels(scope),
        }

    def levels(self, scope: Scope) -> list[Json]:
        """Write the entries of ``levels`` of one scope."""
        return levels(
            self.tallies, scope.profiles, panel_differs=self.panel_differs, seed=self.seed, n_boot=self.n_boot
        )
