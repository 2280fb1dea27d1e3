"""How small a change a plan can show, and how wide the interval of one pass is: from its size alone, before it runs.

Closed forms on assumed values; ``estimate`` puts them beside the cost. What is measured later has intervals of its own
from ``auditor.stats``, which this borrows the quantiles from.
"""

import math
from dataclasses import dataclass
from typing import Final

from auditor.stats.intervals import t_quantile, z_quantile

#: Under so many statements nothing is reported (INSTRUMENT section 3, floors).
FEWEST_STATEMENTS: Final = 15


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumptions:
    """What is not known before a plan has run. The rate and the ICC are those of the design study (MONITORING)."""

    rate: float = 0.29  #: of endorsing answers, in (0, 1); nearer to 0 or 1 less is needed
    icc: float = 0.3  #: share of an answer's variance that lies between statements, in [0, 1)
    alpha: float = 0.05  #: two-sided
    power: float = 0.8


TYPICAL: Final = Assumptions()


def smallest_shift(statements: int, per_statement: float, assumed: Assumptions = TYPICAL) -> float | None:
    """Give the smallest change of a rate between two passes of the same plan that a paired test finds.

    MONITORING sections 1 and 5: the statements are the same in both passes, so what differs between statements cancels,
    and only the variance within them is left: ``V = 2 p (1 - p) (1 - icc) / (G m)``. The shift is
    ``(t(G-1, 1 - alpha/2) + z(power)) sqrt(V)``. It is assumed to be equal for all statements; ``m`` counts answers
    that have the metric (a rate on the eligible base has fewer).

    Parameters
    ----------
    statements
        G, clusters; at least 15.
    per_statement
        m, answers a statement and pass, > 0.

    Returns
    -------
    float or None
        Difference of two rates, in (0, 1]; ``None`` under the floor of 15 statements.

    Examples
    --------
    100 statements, 3 answers each: sqrt(2 x .29 x .71 x .7 / 300) = .0310, times 1.984 + .842 is .0876.

    >>> round(smallest_shift(100, 3), 4)
    0.0876
    """
    if statements < FEWEST_STATEMENTS or per_statement <= 0:
        return None
    variance = 2 * assumed.rate * (1 - assumed.rate) * (1 - assumed.icc) / (statements * per_statement)
    reach = t_quantile(1 - assumed.alpha, statements - 1) + z_quantile(2 * assumed.power - 1)
    return min(1.0, reach * math.sqrt(variance))


def half_width(statements: int, per_statement: float, assumed: Assumptions = TYPICAL) -> float | None:
    """Give half the width of a rate's interval after one pass, for statements like these.

    MONITORING section 5: ``n = z^2 p (1 - p) / h^2 (1 + (m - 1) icc)``, solved for h, with t(G-1) for z.

    Parameters
    ----------
    statements
        G, clusters; at least 15.
    per_statement
        m, answers a statement, > 0.

    Returns
    -------
    float or None
        In (0, 1]; ``None`` under the floor of 15 statements.

    Examples
    --------
    100 statements, 1 answer each: 1.984 x sqrt(.29 x .71 / 100) = .0900.

    >>> round(half_width(100, 1), 4)
    0.09
    """
    if statements < FEWEST_STATEMENTS or per_statement <= 0:
        return None
    inflation = 1 + max(per_statement - 1, 0) * assumed.icc
    variance = assumed.rate * (1 - assumed.rate) * inflation / (statements * per_statement)
    return min(1.0, t_quantile(1 - assumed.alpha, statements - 1) * math.sqrt(variance))
