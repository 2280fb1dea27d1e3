"""Compute the channel of a panel: the probability of each reported elaboration given the true one.

Judges err independently given the stance, except on a declared share of texts, where all draw the same number.
``judging`` simulates the same model; ``truth`` multiplies the true joint table by this channel.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from auditor.domain.coding import ELABORATION_LABELS
from auditor.simulate.model import STANCES, SimulatedJudge, StanceName

Floats = NDArray[np.float64]

_L: Final = len(ELABORATION_LABELS)  # the five stances, then Abstain
_NONE: Final = _L - 1

#: The distribution of errors under ``accuracy``: near stances are likelier than far ones.
_NEAR: Final[Mapping[StanceName, Mapping[StanceName, float]]] = {
    "E": {"QE": 0.6, "N": 0.2, "D": 0.2},
    "QE": {"E": 0.5, "N": 0.3, "D": 0.2},
    "N": {"D": 0.4, "QE": 0.2, "E": 0.1, "R": 0.3},
    "D": {"N": 0.5, "QE": 0.3, "E": 0.1, "R": 0.1},
    "R": {"D": 0.6, "N": 0.4},
}


def confusion_matrix(judge: SimulatedJudge) -> Floats:
    """Return P(label | true stance) of one judge.

    Returns
    -------
    [5, 6]; rows E QE N D R, columns the same and Abstain (the judge gives no label); rows sum to 1
    """
    matrix = np.zeros((len(STANCES), _L))
    for row, stance in enumerate(STANCES):
        if judge.accuracy is None:
            for label, share in (judge.confusion.get(stance) or {}).items():
                matrix[row, STANCES.index(label)] = share if label != stance else 0.0
        else:
            # A missing label is not an error: accuracy is the share of correct labels among the given labels.
            wrong = (1.0 - judge.accuracy) * (1.0 - judge.refuse)
            for label, share in _NEAR[stance].items():
                matrix[row, STANCES.index(label)] = share * wrong
        matrix[row, _NONE] = judge.refuse
        matrix[row, row] = max(0.0, 1.0 - matrix[row].sum())
    return matrix


def vote(labels: Sequence[int]) -> int:
    """Return the panel's label: the most frequent stance; Abstain for a tie or for no stance.

    >>> vote([0, 0, 3]), vote([0, 3]), vote([5, 5, 2])  # E E D; E D; two judges without a label, one N
    (0, 5, 2)
    """
    counts = [labels.count(stance) for stance in range(_NONE)]
    top = max(counts)
    if top == 0 or counts.count(top) > 1:
        return _NONE
    return counts.index(top)


def panel_channel(judges: Sequence[SimulatedJudge], shared_error: float = 0.0) -> Floats:
    """Return P(panel's label | true elaboration) with majority vote, by summing over every pattern of votes.

    Parameters
    ----------
    judges
        Judges of the panel, one or more.
    shared_error
        Share of texts, in [0, 1], on which all judges draw the same uniform number.

    Returns
    -------
    Floats
        Shape [6, 6]; rows and columns E QE N D R Abstain. An elaboration that is absent stays absent.

    Raises
    ------
    ValueError
        The panel is empty.

    Examples
    --------
    Three judges, each right on D with .9 and saying N otherwise: two or three right give D, .9^3 + 3 (.9^2)(.1).

    >>> j = [SimulatedJudge(name=f"j{i}", confusion={"D": {"N": 0.1}}) for i in range(3)]
    >>> round(float(panel_channel(j)[3, 3]), 4)
    0.972
    """
    if not judges:
        raise ValueError("a panel needs at least one judge")
    matrices = np.stack([confusion_matrix(judge) for judge in judges])
    channel = np.zeros((_L, _L))
    channel[_NONE, _NONE] = 1.0
    for stance in range(len(STANCES)):
        rows = matrices[:, stance, :]
        apart = _independent(rows)
        together = _comonotone(rows) if shared_error > 0 else apart
        channel[stance] = (1.0 - shared_error) * apart + shared_error * together
    return channel


def _independent(rows: Floats) -> Floats:
    """Return the distribution of the vote for independent judges; states are the counts of each stance so far."""
    states: dict[tuple[int, ...], float] = {(0,) * _NONE: 1.0}
    for row in rows:
        following: dict[tuple[int, ...], float] = {}
        for counts, weight in states.items():
            for label, share in enumerate(row):
                if share > 0.0:
                    key = counts if label == _NONE else (*counts[:label], counts[label] + 1, *counts[label + 1 :])
                    following[key] = following.get(key, 0.0) + weight * float(share)
        states = following
    result = np.zeros(_L)
    for counts, weight in states.items():
        result[vote([label for label, count in enumerate(counts) for _ in range(count)])] += weight
    return result


def _comonotone(rows: Floats) -> Floats:
    """Return the distribution of the vote if judges share one uniform number: constant between the merged edges."""
    cumulative = np.cumsum(rows, axis=1)
    edges = np.unique(np.concatenate([[0.0, 1.0], np.clip(cumulative.ravel(), 0.0, 1.0)]))
    result = np.zeros(_L)
    for low, high in itertools.pairwise(edges.tolist()):
        middle = (low + high) / 2
        result[vote([min(int(np.searchsorted(row, middle, side="right")), _NONE) for row in cumulative])] += high - low
    return result
