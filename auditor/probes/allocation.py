"""How the questions of a probe are shared out over its conditions, so that its rate is known soonest (MONITORING 5).

Neyman's allocation on rates of the past: a condition whose answers vary more is asked more, within a floor and a cap.
"""

import math
from typing import Final

import numpy as np

from auditor.stats.intervals import Floats, z_quantile

#: Of the equal share: no condition is asked less than the floor, or more than the cap.
FLOOR: Final = 0.1
CAP: Final = 3.0
#: Where answers were nearly all alike, they are taken to vary as at this rate: nothing symmetric holds below it.
LEAST: Final = 0.05


def plug_in(events: Floats, trials: Floats) -> Floats:
    """Give rates of the past, (k + 1) / (n + 2), kept away from 0 and 1; one half where there is no past.

    >>> plug_in(np.array([0.0, 0.0, 49.0]), np.array([0.0, 998.0, 98.0])).tolist()
    [0.5, 0.05, 0.5]
    """
    return np.asarray(np.clip((events + 1) / (trials + 2), LEAST, 1 - LEAST))


def shares(rates: Floats, weights: Floats, costs: Floats) -> Floats:
    """Share questions out: ``a_c ~ w_c sqrt(p_c (1 - p_c) / cost_c)``, within floor and cap.

    The factor ``1 - ICC`` of MONITORING 5 is left out: it is taken to be the same for all conditions.

    Parameters
    ----------
    rates
        Shape [C], in (0, 1).
    weights, costs
        Shape [C]; of the conditions in the rate (sum 1), and of one question, > 0.

    Returns
    -------
    ndarray
        Shape [C], of sum 1, each between ``FLOOR / C`` and ``CAP / C``.

    Examples
    --------
    Standard deviations of .5 and .3: five to three.

    >>> shares(np.array([0.5, 0.1]), np.full(2, 0.5), np.ones(2)).round(3).tolist()
    [0.625, 0.375]
    """
    size = len(rates)
    wanted = weights * np.sqrt(rates * (1 - rates) / costs)
    low, high = FLOOR / size, min(CAP / size, 1.0)
    # The larger the scale the larger every share: the one at which they add up to 1 is found by halving.
    smallest, largest = 0.0, 1 / float(wanted.min())
    for _ in range(100):
        scale = (smallest + largest) / 2
        if np.clip(scale * wanted, low, high).sum() < 1:
            smallest = scale
        else:
            largest = scale
    found = np.clip(largest * wanted, low, high)
    return np.asarray(found / found.sum())


def needed(rates: Floats, weights: Floats, asked: Floats, half_width: float, conf: float = 0.95) -> int:
    """Count the answers that make the weighed rate's interval so narrow: ``(z / h)^2 sum_c w_c^2 p_c (1 - p_c) / a_c``.

    Parameters
    ----------
    rates, weights, asked
        Shape [C]; ``asked`` are the shares of the questions.
    half_width
        Of the interval, for who looks once.
    conf
        Two-sided level.

    Examples
    --------
    One condition at .29: 1.96^2 x .2059 / .02^2.

    >>> needed(np.array([0.29]), np.ones(1), np.ones(1), 0.02)
    1978
    """
    variance = float((weights**2 * rates * (1 - rates) / asked).sum())
    return math.ceil((z_quantile(conf) / half_width) ** 2 * variance)
