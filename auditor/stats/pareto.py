"""Find the Pareto frontier: the options that no other option dominates."""

import numpy as np
from numpy.typing import NDArray

from auditor.stats.intervals import Floats


def pareto_frontier(costs: Floats) -> NDArray[np.bool_]:
    """Mark the options that no other dominates (BiAxisAudit Appendix F-E2).

    An option dominates another if no cost is higher and one is lower. The result departs from the paper's list in the
    cheapest option, which is on every frontier: F-E2 leaves out CTO.

    Parameters
    ----------
    costs
        Shape [n, m]: options by cost, less is better; each column in its own unit.

    Returns
    -------
    ndarray
        Shape [n]. Equal options are marked alike.

    Raises
    ------
    ValueError
        For a cost that is NaN, which cannot be compared.

    Examples
    --------
    >>> pareto_frontier(np.array([[0.2, 5.0], [0.1, 9.0], [0.2, 9.0]])).tolist()
    [True, True, False]
    """
    if np.isnan(costs).any():
        raise ValueError("a cost is unknown")
    no_dearer = (costs[:, None, :] <= costs[None, :, :]).all(axis=2)
    cheaper = (costs[:, None, :] < costs[None, :, :]).any(axis=2)
    dominated = np.logical_and(no_dearer, cheaper).any(axis=0)
    return np.asarray(~dominated, dtype=np.bool_)


def frontier_shares(replicates: Floats, cost: Floats) -> Floats:
    """Compute how often each option is on the frontier of an uncertain rate and a known cost.

    Parameters
    ----------
    replicates
        Shape [B, n]: paired bootstrap replicates of the rates.
    cost
        Shape [n].

    Returns
    -------
    ndarray
        Shape [n], in [0, 1]; 1 for an option that alone is the cheapest.

    Examples
    --------
    The dearer option is better in one of two draws.

    >>> frontier_shares(np.array([[0.3, 0.2], [0.3, 0.4]]), np.array([1.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    shares = np.zeros(len(cost))
    for option, rates in enumerate(replicates.T):
        cheaper = replicates[:, cost < cost[option]].min(axis=1, initial=np.inf)
        as_cheap = replicates[:, cost == cost[option]].min(axis=1)
        shares[option] = np.mean((rates < cheaper) & (rates <= as_cheap))
    return shares
