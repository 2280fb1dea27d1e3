"""Define instruments: distances of an embedding, or the scores of one judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from auditor.peers.comparison import peer_deviation
from auditor.peers.score_table import HIGHEST, LOWEST, Blocked, Mask, ScoreTable
from auditor.stats.intervals import Floats

EMBEDDING: Final = "embedding"
_JUDGE: Final = "judge:"

#: Columns of the table, the target's first.
Columns = Sequence[int]


class Instrument(Protocol):
    """Returns a value for every answer."""

    @property
    def name(self) -> str:
        """Its name in peers.json."""

    @property
    def bound(self) -> float:
        """The largest possible difference of two values."""

    def values(self, columns: Columns) -> Floats:
        """Return values of shape [N, len(columns)]; NaN is a missing value, larger is more deviant."""

    def pair(self, columns: Columns, others: Columns) -> Floats:
        """Return the values of two deployments, shape [N, 2]; neither is measured by the other's answers."""

    def by_rule(self) -> Mask:
        """Return which blocked answers have a value by rule, [N, K]."""


@dataclass(frozen=True, slots=True)
class JudgeScores:
    """One judge's scores, raw: the paper's tables test them, not D_LLM."""

    table: ScoreTable
    judge: str
    blocked: Blocked

    @property
    def name(self) -> str:
        """Its name in peers.json."""
        return f"{_JUDGE}{self.judge}"

    @property
    def bound(self) -> float:
        """The length of the scale."""
        return HIGHEST - LOWEST

    def values(self, columns: Columns) -> Floats:
        """Return the judge's scores, in [1, 10]."""
        return self.table.scores(self.judge, self.blocked)[:, columns]

    def pair(self, columns: Columns, others: Columns) -> Floats:  # noqa: ARG002 -- a score is of one answer alone
        """Return the judge's scores of both."""
        return self.values(columns)

    def by_rule(self) -> Mask:
        """Return which blocked answers the judge did not see; they score the top of the scale."""
        none = np.zeros_like(self.table.blocked)
        return self.table.by_rule(self.judge) if self.blocked == "answer" else none


class EmbeddingDistances:
    """Mean cosine distances to the others' answers; the others depend on the compared deployments."""

    name = EMBEDDING
    bound = 2.0

    def __init__(self, distances: Floats, answered: Mask) -> None:
        self._distances = distances
        self._answered = answered

    def values(self, columns: Columns) -> Floats:
        """Return each answer's mean distance to the answers of the other columns (Eq. 1), in [0, 2]."""
        return self._deviation(columns, columns)

    def clean(self, columns: Columns) -> Floats:
        """Return the values with the target left out of its peers' deviations."""
        return self._deviation(columns, columns[1:])

    def pair(self, columns: Columns, others: Columns) -> Floats:
        """Return the distances of both to the answers of the others; none where there are no others."""
        return self._deviation(columns, others)

    def by_rule(self) -> Mask:
        """No block gets a vector by rule."""
        return np.zeros_like(self._answered)

    def _deviation(self, columns: Columns, compared: Columns) -> Floats:
        """Average the distances of the columns' answers to those of who is compared."""
        members = np.zeros(self._answered.shape[1], dtype=np.bool_)
        members[list(compared)] = True
        return peer_deviation(self._distances, self._answered, members)[:, columns]


class Instruments:
    """All instruments of a table; distances are computed once for both readings of blocked answers."""

    def __init__(self, table: ScoreTable) -> None:
        self._table = table

    @cached_property
    def _distances(self) -> Floats:
        return self._table.vectors.distances(self._table.numbers)

    def read(self, blocked: Blocked) -> list[Instrument]:
        """List the instruments in a reading of blocked answers: the embedding first, then the judges by name."""
        table = self._table
        instruments: list[Instrument] = []
        if (table.numbers >= 0).any():
            instruments.append(EmbeddingDistances(self._distances, (table.numbers >= 0) & table.kept(blocked)))
        return [*instruments, *(JudgeScores(table, judge, blocked) for judge in table.judges)]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the instruments: the embedding first."""
        return tuple(instrument.name for instrument in self.read("answer"))
