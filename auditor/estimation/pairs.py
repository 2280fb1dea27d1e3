"""Compare two deployments on the statements and conditions that both were asked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from auditor.counting.stored import Row
from auditor.domain.estimate import Insufficient
from auditor.estimation.changes import ConditionGrid, condition_grids, named_rows
from auditor.estimation.differences import COMPARED
from auditor.metrics.paired import PairedDifference, paired_difference

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
    difference: PairedDifference | Insufficient  #: second minus first; each condition has the same weight


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

    Only statements that both were asked under the same condition count, so that neither has easier questions.

    Parameters
    ----------
    first, second
        Tallies of probes, as ``auditor.store.tallies.read_window_of`` gives them.
    """
    sides = [named_rows(row for row in side if row["uncoded"] is None) for side in (first, second)]
    questions = [{(statement, condition) for statement, condition, _ in side} for side in sides]
    shared = questions[0] & questions[1]
    first_grid, second_grid = condition_grids(*([row for row in side if row[:2] in shared] for side in sides))
    return Pairing(
        conditions=first_grid.conditions,
        n_statements=len({statement for statement, _ in shared}),
        measures=tuple(_measure(name, first_grid, second_grid) for name in COMPARED) if shared else (),
        statements=tuple(_statements(first_grid, second_grid)) if shared else (),
    )


def _measure(name: str, first: ConditionGrid, second: ConditionGrid) -> PairedMeasure:
    sides = first.counts(name), second.counts(name)
    shares = [Share(events=round(side.events.sum()), trials=round(side.trials.sum())) for side in sides]
    return PairedMeasure(name=name, first=shares[0], second=shares[1], difference=paired_difference(*sides))


def _statements(first_grid: ConditionGrid, second_grid: ConditionGrid) -> Sequence[PairedStatement]:
    counts = first_grid.counts(_UNION), second_grid.counts(_UNION)
    pairs = []
    for place, statement in enumerate(first_grid.statements):
        first, second = (
            Share(events=round(side.events[place].sum()), trials=round(side.trials[place].sum())) for side in counts
        )
        if first.trials and second.trials:
            pairs.append(PairedStatement(statement=statement, first=first, second=second))
    return sorted(pairs, key=lambda each: (-abs(each.difference), each.statement))
