"""Fit a logistic regression to counts whose answers share clusters, and estimate from it.

The coefficients are those of statsmodels' binomial GLM, which depend on the sums of each design row only; so hundreds
of thousands of answers are as quick as their few hundred different rows. The covariance is clustered and bias-reduced
(CR2, Bell and McCaffrey 2002, for a GLM as in McCaffrey and Bell 2006): as each row has one mean, a cluster's adjusted
score needs the eigenvalues of a matrix of the size of the coefficients, not of the answers.
"""

import warnings
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.stats.intervals import Floats

Ints = NDArray[np.int64]
#: A column with a smaller remainder than this, relative to its length, is a sum of earlier columns.
_DEPENDENT: Final = 1e-8
#: A log odds ratio beyond this is a fit on its way to infinity.
_LARGEST: Final = 15.0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BinomialCells:
    """Events and trials of N pairs of a design row and a cluster."""

    row: Ints  #: shape [N]: from 0 to R - 1
    cluster: Ints  #: shape [N]: from 0 to G - 1
    events: Floats  #: shape [N]
    trials: Floats  #: shape [N], above 0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Fit:
    """A fitted model of p coefficients."""

    beta: Floats  #: shape [p]: log odds
    influence: Floats  #: shape [G, p]: each cluster's part of the error of ``beta``, with CR2's adjustment
    spread: Floats  #: shape [G, p, p]: each cluster's part of the covariance under independence
    is_separated: bool  #: whether some coefficient is infinite, so that a little was added to every row

    def estimate(self, gradients: Floats) -> tuple[Floats, Floats, Floats]:
        """Return standard errors, degrees of freedom and cluster parts of K functions of the coefficients.

        Parameters
        ----------
        gradients
            Shape [K, p].

        Returns
        -------
        (se, df, parts)
            Shapes [K], [K] and [G, K]. The degrees of freedom are the effective number of clusters less 1, which is
            Satterthwaite's for independent answers.
        """
        parts = self.influence @ gradients.T
        shares = ((gradients @ self.spread) * gradients).sum(axis=2)
        squares = np.maximum((shares**2).sum(axis=0), np.finfo(float).tiny)
        return np.sqrt((parts**2).sum(axis=0)), np.maximum(1.0, shares.sum(axis=0) ** 2 / squares - 1), parts


def independent_columns(design: Floats) -> NDArray[np.bool_]:
    """Find the columns that are no sum of earlier ones.

    Parameters
    ----------
    design
        Shape [R, p].

    Examples
    --------
    >>> independent_columns(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])).tolist()
    [True, True, False]
    """
    basis = np.zeros((len(design), 0))
    kept = []
    for column in design.T:
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        length = float(np.linalg.norm(rest))
        kept.append(length > _DEPENDENT * max(1.0, float(np.linalg.norm(column))))
        if kept[-1]:
            basis = np.column_stack([basis, rest / length])
    return np.array(kept)


def fit_binomial(design: Floats, counts: BinomialCells) -> Fit:
    """Fit ``logit(P(event)) = design @ beta``, with errors clustered.

    Where a coefficient is infinite (none or all of the answers with a level are events), as many answers as there are
    coefficients are spread over the rows, at the rate of all answers (Clogg and others 1991), so that the others have
    their values.

    Parameters
    ----------
    design
        Shape [R, p], of independent columns.
    counts
        Of two clusters or more.

    Raises
    ------
    ValueError
        All answers are events, or none is.

    Examples
    --------
    >>> cells = BinomialCells(
    ...     row=np.array([0, 1, 0, 1]), cluster=np.array([0, 0, 1, 1]),
    ...     events=np.array([1.0, 2.0, 1.0, 2.0]), trials=np.array([4.0, 4.0, 4.0, 4.0]),
    ... )
    >>> fit_binomial(np.array([[1.0, 0.0], [1.0, 1.0]]), cells).beta.round(6).tolist()
    [-1.098612, 1.098612]
    """
    n_rows, n_clusters = len(design), int(counts.cluster.max()) + 1
    events, trials = (
        np.bincount(counts.row, weights=each, minlength=n_rows).astype(np.float64)
        for each in (counts.events, counts.trials)
    )
    rate = float(events.sum() / trials.sum())
    if not 0 < rate < 1:
        raise ValueError("all answers are events, or none is")
    is_separated = _has_empty_level(design, events, trials)
    beta = None if is_separated else _maximise(design, events, trials)
    if beta is None or np.abs(beta).max() > _LARGEST:
        is_separated = True
        added = design.shape[1] * trials / trials.sum()
        beta = _maximise(design, events + added * rate, trials + added)
    mean = special.expit(design @ beta)
    x, weight = design[counts.row], counts.trials * (mean * (1 - mean))[counts.row]
    scores = np.zeros((n_clusters, design.shape[1]))
    np.add.at(scores, counts.cluster, x * (counts.events - counts.trials * mean[counts.row])[:, None])
    information = _by_cluster(x, weight, counts.cluster, n_clusters)
    values, vectors = np.linalg.eigh(np.linalg.inv(information.sum(axis=0)))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    leverage, turns = np.linalg.eigh(root @ information @ root)
    left = 1 - leverage
    # A coefficient that one cluster alone decides has no error that can be seen.
    factor = np.where(left > _DEPENDENT, 1 / np.sqrt(np.maximum(left, _DEPENDENT)), 0.0)
    turned = np.einsum("gqk,gq->gk", turns, scores @ root) * factor
    covariance = root @ root
    return Fit(
        beta=beta,
        influence=np.einsum("gqk,gk->gq", turns, turned) @ root,
        spread=covariance @ information @ covariance,
        is_separated=is_separated,
    )


def _maximise(design: Floats, events: Floats, trials: Floats) -> Floats:
    """Return the coefficients of the binomial GLM."""
    from statsmodels.genmod.families import Binomial  # noqa: PLC0415 -- slow to import
    from statsmodels.genmod.generalized_linear_model import GLM  # noqa: PLC0415
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning  # noqa: PLC0415

    used = trials > 0
    model = GLM(np.column_stack([events, trials - events])[used], design[used], family=Binomial())
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        # It takes counts that are fitted exactly, as by as many coefficients as rows, for separated answers.
        warnings.simplefilter("ignore", PerfectSeparationWarning)
        return np.asarray(model.fit(maxiter=50, tol=1e-10).params, dtype=np.float64)


def _has_empty_level(design: Floats, events: Floats, trials: Floats) -> bool:
    """Return whether the answers of one column are all events, or none of them is."""
    marked = (design != 0).astype(np.float64)
    y, n = marked.T @ events, marked.T @ trials
    return bool(((y == 0) | (y == n)).any())


def _by_cluster(x: Floats, weight: Floats, cluster: Ints, n_clusters: int) -> Floats:
    """Sum ``weight * x x'`` over each cluster; shape [G, p, p]."""
    order = np.argsort(cluster, kind="stable")
    ends = np.searchsorted(cluster[order], np.arange(n_clusters + 1))
    parts = [order[ends[place] : ends[place + 1]] for place in range(n_clusters)]
    return np.stack([(x[part] * weight[part, None]).T @ x[part] for part in parts])
