"""Passes: what a panel of statements answered in one go, by statement and condition."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from auditor.metrics.joint import Floats

#: What is watched: which of a response's indicators counts, and on which base. ``dni`` counts (1 + A - B) / 2.
WATCHED: Final = ("ber_union_full", "ir", "dni")
#: A person is woken for these alone; K of the promise.
PAGING: Final = ("ber_union_full", "ir")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pass:
    """One measure of one pass over a panel: events and trials, each of shape [S, C], as statements by conditions."""

    events: Floats
    trials: Floats

    @property
    def rates(self) -> Floats:
        """Shape [S, C]; NaN where nothing was answered."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.events / self.trials

    @property
    def level(self) -> float | None:
        """The mean over conditions of their rates: the same whatever each condition's share of the responses is."""
        trials = self.trials.sum(axis=0)
        if not (trials > 0).all() or not len(trials):
            return None
        return float((self.events.sum(axis=0) / trials).mean())


def shifts(rates: Floats, expected: Floats) -> Floats:
    """How far each statement lies from what is expected of it, over the conditions that are known of both.

    Parameters
    ----------
    rates, expected
        Shape [..., S, C]; NaN where unknown.

    Returns
    -------
    ndarray
        Shape [..., S], in [-1, 1]; NaN for a statement with nothing to compare.

    Examples
    --------
    >>> shifts(np.array([[1.0, np.nan], [np.nan, 0.5]]), np.array([[0.25, 0.5], [0.5, np.nan]])).tolist()
    [0.75, nan]
    """
    apart = rates - expected
    known = ~np.isnan(apart)
    number = known.sum(axis=-1)
    total = np.where(known, apart, 0.0).sum(axis=-1)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)
