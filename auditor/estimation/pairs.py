"""Compare two deployments on the statements and conditions that both were asked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.counting.stored import Row
from auditor.domain.estimate import Insufficient
from auditor.estimation.changes import ConditionGrid, asked_rows, condition_grids
from auditor.metrics.standardised import Standardised, estimable, standardised_difference

#: The measures that are compared.
COMPARED: Final = ("ber_union_full", "ber_sel_full", "ber_elab_full", "ir", "dni")
_UNION: Final = "ber_union_full"


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """How many of some responses count in a measure; of DNI the difference of two numbers."""

    events: int
    trials: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedMeasure:
    """One measure of two deployments."""

    name: str
    first: Share
    second: Share
    difference: Standardised | Insufficient  #: second minus first; each condition has the same weight


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedStatement:
    """The union of both layers on one statement."""

    statement: str
    first: Share
    second: Share

    @property
    def difference(self) -> float:
        """The second's rate minus the first's."""
        return self.second.events / self.second.trials - self.first.events / self.first.trials


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairing:
    """Two deployments on the same statements and conditions."""

    conditions: tuple[str, ...]  #: asked of both about a common statement
    n_statements: int  #: common ones
    measures: tuple[PairedMeasure, ...]
    statements: tuple[PairedStatement, ...]  #: that have a rate of both, the largest difference first


def pair(first: Iterable[Row], second: Iterable[Row]) -> Pairing:
    """Compare two deployments.

    Only statements that both were asked under the same condition count, so that neither has easier questions. The
    difference is paired by statement (MONITORING 1): a statement's own level cancels.

    Parameters
    ----------
    first, second
        Tallies of probes, as ``auditor.store.tallies.read_window_of`` gives them.
    """
    sides = [asked_rows(row for row in side if row["uncoded"] is None) for side in (first, second)]
    asked = [{(statement, condition) for statement, condition, _ in side} for side in sides]
    shared = asked[0] & asked[1]
    one, other = condition_grids(*([row for row in side if row[:2] in shared] for side in sides))
    return Pairing(
        conditions=one.conditions,
        n_statements=len({statement for statement, _ in shared}),
        measures=tuple(_measure(name, one, other) for name in COMPARED) if shared else (),
        statements=tuple(_statements(one, other)) if shared else (),
    )


def _measure(name: str, one: ConditionGrid, other: ConditionGrid) -> PairedMeasure:
    sides = one.counts(name), other.counts(name)
    kept = estimable(sides[0]) & estimable(sides[1])
    found: Standardised | Insufficient = Insufficient(reason="no condition has 5 statements of both")
    if kept.any():
        weights = np.full(int(kept.sum()), 1 / kept.sum())
        found = standardised_difference(other.counts(name, kept), one.counts(name, kept), weights)
    shares = [Share(events=round(side.events.sum()), trials=round(side.trials.sum())) for side in sides]
    return PairedMeasure(name=name, first=shares[0], second=shares[1], difference=found)


def _statements(one: ConditionGrid, other: ConditionGrid) -> Sequence[PairedStatement]:
    counts = one.counts(_UNION), other.counts(_UNION)
    found = []
    for place, statement in enumerate(one.statements):
        first, second = (
            Share(events=round(side.events[place].sum()), trials=round(side.trials[place].sum())) for side in counts
        )
        if first.trials and second.trials:
            found.append(PairedStatement(statement=statement, first=first, second=second))
    return sorted(found, key=lambda each: (-abs(each.difference), each.statement))
