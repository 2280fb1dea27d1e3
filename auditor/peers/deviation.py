"""How far each deployment's answers lie from the others' on the same questions (Relative Bias Eq. 1 to 4).

Arrays are questions by deployments; NaN is an answer that is not there, and stays within these functions' callers.
"""

import numpy as np

from auditor.peers.score_table import Mask
from auditor.stats.intervals import Floats


def mean_present(values: Floats, axis: int) -> Floats:
    """Average what is there along an axis; NaN where nothing is.

    >>> mean_present(np.array([[1.0, 3.0], [np.nan, 5.0], [np.nan, np.nan]]), 1).tolist()
    [2.0, 5.0, nan]
    """
    there = ~np.isnan(values)
    counts = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    means: Floats = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def peer_deviation(distances: Floats, there: Mask, members: Mask) -> Floats:
    """Average each answer's cosine distances to the members' answers to the same question (Eq. 1).

    Departs from the equation where an answer is missing: the mean is over the members who answered.

    Parameters
    ----------
    distances
        Shape [N, K, K], 0 on the diagonal.
    there
        Shape [N, K]: which answers count.
    members
        Shape [K]: whom answers are compared with. A member is not compared with itself; a deployment that is no
        member is compared with all of them.

    Returns
    -------
    array
        Shape [N, K]: delta(q_i, M_j), in [0, 2]; NaN where there is no answer, or none to compare it with.

    Examples
    --------
    >>> d = np.array([[[0.0, 0.2, 0.4], [0.2, 0.0, 0.6], [0.4, 0.6, 0.0]]])
    >>> peer_deviation(d, np.array([[True, True, True]]), np.array([True, True, True])).round(3).tolist()
    [[0.3, 0.4, 0.5]]
    """
    counted = (there & members).astype(np.float64)
    sums = (distances @ counted[:, :, None])[:, :, 0]
    others = counted.sum(axis=1, keepdims=True) - counted
    deviations: Floats = np.full(sums.shape, np.nan)
    np.divide(sums, others, out=deviations, where=there & (others > 0))
    return deviations


def judge_deviation(scores: Floats) -> Floats:
    """Compare a target's scores with its peers' on the same questions (Eq. 3).

    Parameters
    ----------
    scores
        Shape [N, 1 + P], the target first.

    Returns
    -------
    array
        Shape [n]: ``s_i - mu_i`` of the questions that the target and a peer have; D_LLM is the mean of its absolute
        values (Eq. 4).

    Examples
    --------
    >>> judge_deviation(np.array([[7.0, 2.0, 4.0], [np.nan, 2.0, 2.0], [5.0, 6.0, np.nan]])).tolist()
    [4.0, -1.0]
    """
    differences = scores[:, 0] - mean_present(scores[:, 1:], 1)
    return differences[~np.isnan(differences)]
