"""Estimate variance components of responses to statements in templates (a generalizability study).

All estimates are made of symmetric sums (Koch 1967): mean products of the residuals of pairs of responses that have
certain factors in common and differ in all others. They need neither normality nor balance. Where the design is crossed
and balanced they are the classical estimates of the analysis of variance (Brennan 2001, chapter 3).
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from auditor.stats.crossed import Ints
from auditor.stats.intervals import Floats

#: The component of single responses: what no factor explains.
RESIDUAL: Final = "residual"
#: Up to so many possible groups are summed without finding out which of them occur.
_MOST_GROUPS: Final = 5_000_000


def variance_components(y: Floats, n: Floats, factors: Mapping[str, Ints], stratum: Ints) -> dict[str, float]:
    """Estimate the variance components of a binary response to random factors, within strata.

    Parameters
    ----------
    y, n
        Shape [N]: successes and trials of each combination of stratum and factors that occurs, once each; n over 0.
    factors
        Value of each combination by the factor's name, from 0 on; shape [N] each.
    stratum
        Shape [N]: the condition of each combination. Rates of conditions are fixed, and only pairs of responses in one
        condition are compared.

    Returns
    -------
    dict
        Variances by factor, and by interaction (``"statement:template"``); ``residual`` is the rest of the variance of
        a single response. Values may be below 0 by chance. The interaction of all factors is absent, and a part of the
        residual, where no combination was tried twice. So is everything that needs pairs of responses that the design
        lacks, such as the same statement in two templates.

    Examples
    --------
    Two statements in two templates: statements differ, templates do not.

    >>> crossed = {"statement": np.array([0, 0, 1, 1]), "template": np.array([0, 1, 0, 1])}
    >>> components = variance_components(np.array([1.0, 1, 0, 0]), np.ones(4), crossed, np.zeros(4, dtype=int))
    >>> {name: round(value, 9) + 0 for name, value in components.items()}
    {'statement': 0.5, 'template': 0.0, 'residual': 0.0}
    """
    names = list(factors)
    rates = (np.bincount(stratum, weights=y) / np.maximum(np.bincount(stratum, weights=n), 1))[stratum]
    residual = y - rates * n
    single = float((y * (1 - 2 * rates) + n * rates**2).sum())
    sets = [frozenset(each) for size in range(len(names) + 1) for each in combinations(range(len(names)), size)]
    at_least = {each: _pairs(residual, n, [stratum, *(factors[names[at]] for at in sorted(each))]) for each in sets}
    means: dict[frozenset[int], float] = {}
    for each in sets:
        over = [((-1) ** len(other - each), at_least[other]) for other in sets if other >= each]
        products, count = (sum(sign * sums[side] for sign, sums in over) for side in (0, 1))
        if each == sets[-1]:  # a response is no pair with itself
            products, count = products - single, count - float(n.sum())
        if count > 0.5:
            means[each] = products / count
    out: dict[str, float] = {}
    for each in sets[1:]:
        below = [other for other in sets if other <= each]
        if all(other in means for other in below):
            value = sum((-1) ** len(each - other) * means[other] for other in below)
            out[":".join(names[at] for at in sorted(each))] = value
    total = single / float(n.sum()) - means.get(sets[0], 0.0)
    return {**out, RESIDUAL: total - sum(out.values())}


def common_component(y: Floats, n: Floats, unit: Ints, stratum: Ints) -> float | None:
    """Estimate the variance that units, such as statements, have in common under all strata, such as conditions.

    Parameters
    ----------
    y, n, unit, stratum
        Shape [N], as in ``variance_components``.

    Returns
    -------
    float or None
        The mean product of the residuals of two responses of one unit in different strata, which is the covariance of
        its effects; None if no unit is in two strata.
    """
    rates = (np.bincount(stratum, weights=y) / np.maximum(np.bincount(stratum, weights=n), 1))[stratum]
    residual = y - rates * n
    (all_products, all_pairs), (products, pairs) = (_pairs(residual, n, shared) for shared in ([unit], [unit, stratum]))
    return (all_products - products) / (all_pairs - pairs) if all_pairs - pairs > 0.5 else None


def _pairs(residual: Floats, n: Floats, shared: Sequence[Ints]) -> tuple[float, float]:
    """Sum the products of all ordered pairs that share the values of some columns; and count the pairs."""
    shape = [int(each.max(initial=0)) + 1 for each in shared]
    group = np.ravel_multi_index(tuple(shared), shape)
    if np.prod(shape, dtype=float) > _MOST_GROUPS:
        _, group = np.unique(group, return_inverse=True)
    sums, sizes = np.bincount(group, weights=residual), np.bincount(group, weights=n)
    return float(sums @ sums), float(sizes @ sizes)
