"""Spread a declared mean rate over statements: Beta quantiles of correlated normal numbers.

A statement's position is a function of its text, the scenario's seed and the deployment's weights, so a statement
need not be listed to have a true rate. ``truth`` averages over this distribution; ``respondent`` draws from it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, ndtr, ndtri

from auditor.domain.condition import Task
from auditor.simulate.chance import uniform
from auditor.simulate.model import SimulatedDeployment, StatementSpread, TaskTruth

Floats = NDArray[np.float64]

_SPACE = re.compile(r"\s+")
#: Below this a spread cannot be seen, and the quantile function's parameters leave the numbers it can work with.
_FLAT = 1e-6
#: Beyond this position a value carries no weight: it is met once in 10^11 statements.
_FAR = 6.8


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """True rates of statements: P(A), P(B | A), P(B | not A); shape [G] each, in [0, 1]."""

    a: Floats
    b_given_a: Floats
    b_given_not_a: Floats


def statement_key(text: str) -> str:
    """Return the statement's key: the text without differences of case, spacing and final full stop.

    >>> statement_key(" Bakers  rise EARLY. ")
    'bakers rise early'
    """
    return _SPACE.sub(" ", text).strip().rstrip(".").casefold()


def beta_quantile(mean: float, icc: float, z: Floats) -> Floats:
    """Return values of Beta(mean m, variance icc m (1 - m)) at the standard normal positions ``z``.

    ``icc`` is the between-statement share of a 0/1 answer's variance m (1 - m). With 0 every value is the mean.
    Parameters are a = m (1 - icc) / icc and b = (1 - m)(1 - icc) / icc.

    >>> beta_quantile(0.5, 1 / 3, np.array([0.0]))  # Beta(1, 1): the quantile is the normal's own level
    array([0.5])
    """
    if icc < _FLAT or not _FLAT < mean < 1.0 - _FLAT:
        return np.full(z.shape, mean, dtype=np.float64)
    a, b = mean * (1.0 - icc) / icc, (1.0 - mean) * (1.0 - icc) / icc
    values = np.asarray(betaincinv(a, b, ndtr(z)), dtype=np.float64)
    # The root finder fails at some far tails (scipy 1.17); from the other tail it does not.
    lost = np.isnan(values)
    if lost.any():
        values[lost] = betainccinv(a, b, ndtr(-z[lost]))
        lost = np.isnan(values)
        if (np.abs(z[lost]) < _FAR).any():
            raise ArithmeticError(f"no quantile of Beta({a}, {b})")
        values[lost] = z[lost] > 0
    return values


def rates_at(truth: TaskTruth, z_sel: Floats, z_elab: Floats) -> Rates:
    """Return the rates of statements at given latent positions; both elaboration rates depend on ``z_elab``."""
    return Rates(
        a=beta_quantile(truth.p_a, truth.icc, z_sel),
        b_given_a=beta_quantile(truth.p_b_given_a, truth.icc, z_elab),
        b_given_not_a=beta_quantile(truth.p_b_given_not_a, truth.icc, z_elab),
    )


def latent_positions(
    seed: int, spread: StatementSpread, deployment: SimulatedDeployment, task: Task, statements: Sequence[str]
) -> tuple[Floats, Floats]:
    """Return the selection and elaboration positions of statements, each standard normal over statements.

    A position is the sum of three parts: common to all deployments, common to all tasks of the weights, and specific to
    the task. Each part has the declared correlation between selection and elaboration, so the sum has it too.

    Returns
    -------
    two arrays of shape [G]
    """
    weights = deployment.weights or deployment.name
    specific = max(0.0, 1.0 - spread.shared - spread.deployment)
    parts = ((spread.shared, ("all",)), (spread.deployment, ("weights", weights)), (specific, ("task", weights, task)))
    bond, rest = spread.layers, math.sqrt(1.0 - spread.layers**2)
    first = np.zeros(len(statements))
    second = np.zeros(len(statements))
    keys = [statement_key(text) for text in statements]
    for share, scope in parts:
        if share <= 0.0:
            continue
        u = np.array([[uniform(seed, "latent", *scope, axis, key) for key in keys] for axis in ("sel", "elab")])
        e = ndtri(u)
        first += math.sqrt(share) * e[0]
        second += math.sqrt(share) * (bond * e[0] + rest * e[1])
    return first, second
