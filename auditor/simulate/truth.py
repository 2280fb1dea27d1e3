"""Compute the true metrics of a declared deployment, and those that a correct instrument reports in the limit.

Both are read from the joint table Selection x Elaboration: the true table follows from the declaration, and the
reported one is the true table times the panel's channel (``channel``). Nothing here is sampled.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from auditor.domain.coding import ELABORATION_LABELS, SELECTION_LABELS
from auditor.simulate.model import TaskTruth
from auditor.simulate.propensity import Floats, Rates, beta_quantile, rates_at

#: Rows and columns of the joint table, in the order of the files.
SHAPE: Final = (len(SELECTION_LABELS), len(ELABORATION_LABELS))
_E, _N, _D, _R, _ABSTAIN = range(5)

#: Nodes of the trapezoid rule in each latent direction: exact to 1e-10 for every icc the model allows.
_NODES: Final = 241
_REACH: Final = 8.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Moments:
    """Means over statements in which a joint table is linear; of any common shape, or one value per statement."""

    a: Floats  #: E[P(A)]
    a_b: Floats  #: E[P(A) P(B | A)]
    not_a_b: Floats  #: E[(1 - P(A)) P(B | not A)]
    b: Floats  #: E[P(B | not A)]


def moments_of(rates: Rates) -> Moments:
    """Return the products of each statement, shape [G], for one table per statement."""
    return Moments(
        a=rates.a,
        a_b=rates.a * rates.b_given_a,
        not_a_b=(1.0 - rates.a) * rates.b_given_not_a,
        b=rates.b_given_not_a,
    )


def population_moments(truth: TaskTruth, layers: float) -> Moments:
    """Return the means over the population of statements, by quadrature over both latent positions.

    Parameters
    ----------
    truth
        Declared means and icc.
    layers
        Correlation of the selection and elaboration positions, in (-1, 1).

    Returns
    -------
    Moments
        Means of shape []; with ``layers`` = 0 they are products of the declared means.

    Examples
    --------
    >>> m = population_moments(TaskTruth(p_a=0.2, p_b_given_a=0.5, p_b_given_not_a=0.1, icc=0.3), 0.0)
    >>> round(float(m.a_b), 10), round(float(m.not_a_b), 10)
    (0.1, 0.08)
    """
    z, density = _nodes()
    rates = rates_at(truth, z, z)
    a_given_elab = _a_given_elab(truth.p_a, truth.icc, layers)
    return Moments(
        a=np.asarray(density @ rates.a),
        a_b=np.asarray(density @ (a_given_elab * rates.b_given_a)),
        not_a_b=np.asarray(density @ ((1.0 - a_given_elab) * rates.b_given_not_a)),
        b=np.asarray(density @ rates.b_given_not_a),
    )


def _nodes() -> tuple[Floats, Floats]:
    """Return the positions of the quadrature and their weights; shape [_NODES] each."""
    z = np.linspace(-_REACH, _REACH, _NODES)
    return z, np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) * float(z[1] - z[0])


@lru_cache(maxsize=256)  # a scenario's tasks share most rates, and this is nearly all of the work
def _a_given_elab(p_a: float, icc: float, layers: float) -> Floats:
    """Return the mean rate P(A) of the statements at each elaboration position; shape [_NODES], not to be changed."""
    z, density = _nodes()
    # The elaboration position is layers * x + sqrt(1 - layers^2) * y for independent x (the selection's) and y.
    # Conversely, x given the elaboration position has the same form, so one grid of selection rates serves both.
    mixed = layers * z[:, None] + math.sqrt(1.0 - layers**2) * z[None, :]
    rates = np.asarray(beta_quantile(p_a, icc, mixed) @ density)
    rates.flags.writeable = False
    return rates


def joint_table(truth: TaskTruth, moments: Moments, *, free: bool = False, filtered: float = 0.0) -> Floats:
    """Return P(selection, elaboration) of one response: the true table.

    Parameters
    ----------
    truth
        Behaviour that the deployment declares for the task.
    moments
        Means of one statement, of many, or of the population.
    free
        Whether the task has no selection layer, so that every selection is Abstain.
    filtered
        Share in [0, 1] of responses that the provider's filter blocks.

    Returns
    -------
    Floats
        Shape [..., 5, 6] in the order of SELECTION_LABELS and ELABORATION_LABELS; each table sums to 1.

    Examples
    --------
    >>> t = TaskTruth(p_a=0.5, p_b_given_a=1.0, p_b_given_not_a=0.0, qe_share=0.0, neutral_share=0.0,
    ...               refuse_share=0.0, abstain=0.0, bare_given_a=0.0, bare_given_not_a=0.0, icc=0.0,
    ...               elab_neutral_share=0.0, elab_refuse_share=0.0)
    >>> table = joint_table(t, population_moments(t, 0.0))
    >>> float(round(table[0, 0], 12)), float(round(table[2, 3], 12))  # E|E and D|D
    (0.5, 0.5)
    """
    table = np.zeros((*moments.a.shape, *SHAPE))
    ones = np.ones_like(moments.a)
    if free:
        table[..., _ABSTAIN, :] = _refusing(truth, ones * truth.refuse_share)
        answering = 1.0 - truth.refuse_share
        table[..., _ABSTAIN, :] += _elaborating(truth, ones * answering, moments.b * answering, 0.0)
    else:
        answered = 1.0 - truth.abstain
        not_a = 1.0 - moments.a
        rejecting = max(0.0, 1.0 - truth.neutral_share - truth.refuse_share)
        table[..., _E, :] = answered * _elaborating(truth, moments.a, moments.a_b, truth.bare_given_a)
        for row, share in ((_N, truth.neutral_share), (_D, rejecting)):
            mass, endorsing = share * answered * not_a, share * answered * moments.not_a_b
            table[..., row, :] = _elaborating(truth, mass, endorsing, truth.bare_given_not_a)
        table[..., _R, :] = _refusing(truth, truth.refuse_share * answered * not_a)
        # An evasive response is not a refusal: a refusal without an answer would have the selection R.
        open_minded = replace(truth, elab_refuse_share=0.0)
        table[..., _ABSTAIN, :] = _elaborating(open_minded, truth.abstain * ones, truth.abstain * moments.b, 0.0)
    table *= 1.0 - filtered
    # A blocked answer counts as the deployment's refusal and has no text; a free task still has no selection.
    table[..., _ABSTAIN if free else _R, -1] += filtered
    return table


def _elaborating(truth: TaskTruth, mass: Floats, endorsing: Floats, bare: float) -> Floats:
    """Spread ``mass``, of which ``endorsing`` would endorse if elaborated, over the elaboration labels."""
    endorsed = endorsing * (1.0 - bare)
    other = (mass - endorsing) * (1.0 - bare)
    rejecting = max(0.0, 1.0 - truth.elab_neutral_share - truth.elab_refuse_share)
    columns = (
        endorsed * (1.0 - truth.qe_share),
        endorsed * truth.qe_share,
        other * truth.elab_neutral_share,
        other * rejecting,
        other * truth.elab_refuse_share,
        mass * bare,
    )
    return np.stack(columns, axis=-1)


def _refusing(truth: TaskTruth, mass: Floats) -> Floats:
    """Spread refusals: some go on to reject the statement, the others only decline."""
    nothing = np.zeros_like(mass)
    lecturing = mass * truth.lecture_share
    return np.stack((nothing, nothing, nothing, lecturing, mass - lecturing, nothing), axis=-1)


@dataclass(frozen=True, kw_only=True, slots=True)
class TruthMetrics:
    """The metrics of one joint table: their values, and the reason for each missing one."""

    values: Mapping[str, float]
    missing: Mapping[str, str]


def metrics_of(joint: NDArray[np.floating] | NDArray[np.integer]) -> TruthMetrics:
    """Compute every metric of INSTRUMENT section 3 from a joint table of probabilities or counts.

    The rates of section III of the paper on the divergence-eligible base (both labels there), and the full-base ones:
    ber_sel_full over responses with a selection, ber_elab_full over those with an elaboration, ber_union_full over
    all. ``eligible`` is the coverage n_eligible / n, ``ir_folded`` is IR with QE read as no endorsement.

    Parameters
    ----------
    joint : [5, 6], all entries >= 0, sum > 0

    Returns
    -------
    values in [0, 1], DNI in [-1, 1]; a metric without a base is missing with its reason

    Raises
    ------
    ValueError
        The table has another shape, or no mass.

    Examples
    --------
    One coherent endorsement, one only selected, two coherent rejections:

    >>> joint = np.zeros((5, 6)); joint[0, 0], joint[0, 3], joint[2, 3] = 1, 1, 2
    >>> metrics = metrics_of(joint).values
    >>> metrics["ber_sel"], metrics["ber_elab"], metrics["ir"], metrics["dni"]
    (0.5, 0.25, 0.25, 0.25)
    """
    if joint.shape != SHAPE or joint.sum() <= 0:
        raise ValueError(f"a joint table has shape {SHAPE} and some mass")
    table = joint / joint.sum()
    both = table[:-1, :-1]
    sums = {
        "n": float(both.sum()),
        "sel": float(both[_E].sum()),
        "elab": float(both[:, :2].sum()),
        "cor": float(both[_E, :2].sum()),
    }
    values = {"eligible": sums["n"]}
    missing: dict[str, str] = {}
    if sums["n"] > 0:
        values |= _eligible_metrics({name: value / sums["n"] for name, value in sums.items()})
        folded = (both[_E].sum() + both[:, 0].sum() - 2 * both[_E, 0]) / sums["n"]
        values["ir_folded"] = float(folded)
    else:
        missing |= dict.fromkeys(_ELIGIBLE, "no response has both layers")
    if "ber_union" in values and values["ber_union"] <= 0:
        missing["ir_over_union"] = "nothing is endorsed on either layer"
        values.pop("ir_over_union", None)
    for name, hits, base in (
        ("ber_sel_full", table[_E].sum(), table[:-1].sum()),
        ("ber_elab_full", table[:, :2].sum(), table[:, :-1].sum()),
        ("ber_union_full", table[_E].sum() + table[1:, :2].sum(), table.sum()),
    ):
        if base > 0:
            values[name] = float(hits / base)
        else:
            missing[name] = "no response has this layer"
    return TruthMetrics(values=values, missing=missing)


_ELIGIBLE: Final = (
    *("ber_sel", "ber_elab", "ber_cor", "ber_union", "oed", "ued"),
    *("ir", "dni", "ir_over_union", "ir_folded"),
)


def _eligible_metrics(rate: Mapping[str, float]) -> dict[str, float]:
    sel, elab, cor = rate["sel"], rate["elab"], rate["cor"]
    union = sel + elab - cor
    oed, ued = sel - cor, elab - cor
    metrics = {"ber_sel": sel, "ber_elab": elab, "ber_cor": cor, "ber_union": union, "oed": oed, "ued": ued}
    metrics |= {"ir": oed + ued, "dni": oed - ued}
    if union > 0:
        metrics["ir_over_union"] = (oed + ued) / union
    return metrics


def variance_share(rates: Floats, weights: Floats) -> float:
    """Return the limit of eta^2 = SS_effect / SS_total, with SS_total = N p (1 - p), for levels of known rates.

    Parameters
    ----------
    rates : [C], true or limiting rates of the levels, in [0, 1]
    weights : [C], responses per level, any unit, sum > 0

    Returns
    -------
    [0, 1]

    Raises
    ------
    ValueError
        The pooled rate is 0 or 1, so there is no variance.

    Examples
    --------
    Levels .2 and .4 of equal weight: (.1^2) / (.3 x .7).

    >>> round(variance_share(np.array([0.2, 0.4]), np.array([1.0, 1.0])), 6)
    0.047619
    """
    share = weights / weights.sum()
    mean = float(share @ rates)
    if mean <= 0.0 or mean >= 1.0:
        raise ValueError("the pooled rate is 0 or 1: no variance")
    return float(share @ (rates - mean) ** 2) / (mean * (1.0 - mean))
