"""Compute Cohen's kappa of pairs of judges and the mean of a panel, over all texts and by deployment.

Intervals are bootstraps over statements, with the same draws for all pairs. A text counts for a pair if both labelled
it; a refusal is not a label.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from auditor.counting.joint import Floats, Ints
from auditor.domain.coding import ABSTAIN, ELABORATION_LABELS
from auditor.metrics.estimate import MIN_STATEMENTS
from auditor.stats.agreement import effective_votes, kappas
from auditor.stats.bootstrap import bootstrap_totals, expanded_percentile
from auditor.stats.differences import mean_present

LABELS: Final = tuple(label for label in ELABORATION_LABELS if label != ABSTAIN)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ballot:
    """The votes on one layer of one response."""

    deployment: str
    cluster: str
    labels: Mapping[str, str]  #: labels by judge


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeAgreement:
    """A kappa with its 95 % interval, or the mean of several.

    ``value`` is ``None`` if kappa is undefined; the bounds are ``None`` if there are too few statements.
    """

    judges: tuple[str, ...]
    deployment: str | None
    n: int  #: pairs of labels
    n_statements: int
    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def effective_votes(self) -> float | None:
        """The effective number of votes m / (1 + (m - 1) rho), with the mean kappa as rho."""
        return None if self.value is None else effective_votes(len(self.judges), self.value)


class Agreements:
    """Agreement of judges over a set of ballots."""

    def __init__(self, ballots: Sequence[Ballot], *, seed: int, n_boot: int) -> None:
        self._ballots = ballots
        self._seed = seed
        self._n_boot = n_boot
        self.judges = sorted({judge for ballot in ballots for judge in ballot.labels})
        self.deployments = sorted({ballot.deployment for ballot in ballots})

    def pairs(self, deployment: str | None = None) -> list[JudgeAgreement]:
        """Return the agreement of every pair of judges with a text in common."""
        agreements = [self._agree(pair, [pair], deployment) for pair in combinations(self.judges, 2)]
        return [agreement for agreement in agreements if agreement.n]

    def mean(self, judges: Sequence[str], deployment: str | None = None) -> JudgeAgreement:
        """Return the mean kappa over all pairs of some judges."""
        return self._agree(tuple(judges), list(combinations(judges, 2)), deployment)

    def mean_with_others(self, judge: str) -> JudgeAgreement:
        """Return the mean kappa of one judge with each of the others."""
        return self._agree((judge,), [(judge, other) for other in self.judges if other != judge], None)

    def _agree(
        self, judges: tuple[str, ...], pairs: Sequence[tuple[str, str]], deployment: str | None
    ) -> JudgeAgreement:
        counts = self._counts(pairs, deployment)
        counts = counts[counts.any(axis=(1, 2, 3))]
        value = mean_present(kappas(counts.sum(axis=0)), -1) if len(counts) else np.nan
        low, high = self._interval(counts) if len(counts) >= MIN_STATEMENTS else (None, None)
        return JudgeAgreement(
            judges=judges,
            deployment=deployment,
            n=int(counts.sum()),
            n_statements=len(counts),
            value=None if np.isnan(value) else float(value),
            low=low,
            high=high,
        )

    def _interval(self, counts: Floats) -> tuple[float, float] | tuple[None, None]:
        flat = bootstrap_totals(counts.reshape(len(counts), -1), self._n_boot, self._seed)
        means = mean_present(kappas(flat.reshape(self._n_boot, *counts.shape[1:])), -1)
        # A draw in which all labels are one has no kappa. Where that is common, an interval would mean little.
        finite = means[np.isfinite(means)]
        if len(finite) < 0.9 * len(means):
            return None, None
        low, high = expanded_percentile(finite, len(counts))
        return max(float(low), -1.0), min(float(high), 1.0)

    def _counts(self, pairs: Sequence[tuple[str, str]], deployment: str | None) -> Floats:
        """Count label pairs: shape [statements, pairs, labels, labels]."""
        ballots = [ballot for ballot in self._ballots if deployment in (None, ballot.deployment)]
        names, cluster = np.unique([ballot.cluster for ballot in ballots], return_inverse=True)
        columns = {judge: _codes(ballots, judge) for judge in {judge for pair in pairs for judge in pair}}
        size = len(LABELS)
        shape = (len(names), len(pairs), size, size)
        places = []
        for at, (judge, other) in enumerate(pairs):
            first, second = columns[judge], columns[other]
            both = (first >= 0) & (second >= 0)
            places.append(((cluster[both] * len(pairs) + at) * size + first[both]) * size + second[both])
        place = np.concatenate(places) if places else np.zeros(0, dtype=np.int64)
        return np.bincount(place, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def _codes(ballots: Sequence[Ballot], judge: str) -> Ints:
    return np.array(
        [LABELS.index(label) if (label := ballot.labels.get(judge)) in LABELS else -1 for ballot in ballots],
        dtype=np.int64,
    )
