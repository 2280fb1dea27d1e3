"""Derive verdicts from IR and DNI: the cancellation trap, a changed sign, the effect of folding QE, of misreading.

Verdicts need the minimum numbers of ``estimate``: there is no verdict on fewer than 100 statements.
"""

from typing import Final, Literal

import numpy as np

from auditor.counting.joint import Floats, JointTable
from auditor.documents.base import Missing
from auditor.documents.estimates import FoldEntry, MisreadingEntry
from auditor.domain.estimate import Corrected, Estimate, Insufficient
from auditor.metrics.estimate import ENOUGH_STATEMENTS, dni_interval
from auditor.metrics.rates import ELAB_ENDORSES_OUTRIGHT, ELIGIBLE, FOURFOLD, METRICS, SEL_ENDORSES, point
from auditor.stats.intervals import Interval

#: IR from which there is a warning: a tenth of the responses. Chosen by this project: the paper names no limit.
IR_MIN: Final = 0.10
#: A net imbalance within two points counts as none. Chosen by this project.
DNI_MAX: Final = 0.02
#: The possible trap: what is cancelled is at least four fifths of what disagrees.
CANCELLED: Final = 0.2
#: The QE fold is robust when IR moves by less than a percentage point (BiAxisAudit C-A).
FOLD_MAX: Final = 0.01

#: A reader that misreads more than half of the texts is worse than one that guesses.
MOST_MISREAD: Final = 0.5
NOT_SYMMETRIC: Final = "no reader that is better than guessing and errs alike in both directions gives this value"

Trap = Literal["confirmed", "possible", "excluded"]


def trap_state(ir: Estimate, dni: Estimate, dni_90: Interval) -> Trap:
    """Classify the cancellation trap: the layers disagree, but the net imbalance is near 0 (BiAxisAudit section V-C).

    ``confirmed`` is an equivalence statement about DNI, not a failure to find a difference.

    Parameters
    ----------
    ir, dni
        Estimates with 95 % intervals.
    dni_90
        DNI's 90 % interval: two one-sided tests at 5 %.

    Returns
    -------
    str
        ``confirmed``, ``possible`` (the paper's two cases) or ``excluded``.
    """
    if ir.low >= IR_MIN and dni_90.low >= -DNI_MAX and dni_90.high <= DNI_MAX:
        return "confirmed"
    if ir.low > IR_MIN / 2 and abs(dni.value) <= CANCELLED * ir.value:
        return "possible"
    return "excluded"


def cancellation_trap(
    ir: Estimate | Insufficient, dni: Estimate | Insufficient, table: JointTable, *, seed: int = 0
) -> Trap | Insufficient:
    """Return the state of the trap from a table's estimates, or the reason why there is none."""
    if isinstance(ir, Insufficient):
        return ir
    if isinstance(dni, Insufficient):
        return dni
    return _too_few(dni) or trap_state(ir, dni, dni_interval(table, seed=seed))


def corrected_trap(
    ir: Corrected | Insufficient, dni: Corrected | Insufficient, dni_90: Interval | Insufficient
) -> Trap | Insufficient:
    """Return the state of the trap from measures that people's labels of both layers correct, or why there is none.

    Parameters
    ----------
    ir, dni
        Corrected, with 95 % intervals.
    dni_90
        The corrected DNI's 90 % interval.
    """
    if isinstance(ir, Insufficient):
        return ir
    if isinstance(dni, Insufficient):
        return dni
    if isinstance(dni_90, Insufficient):
        return dni_90
    if dni.n_labelled_statements < ENOUGH_STATEMENTS:
        return _no_verdict(dni.n_labelled_statements)
    return trap_state(ir, dni, dni_90)


def sign_flip(dni: Estimate | Insufficient, baseline: Estimate | Insufficient | None) -> bool | Insufficient:
    """Return whether DNI has the other sign than at the baseline cell, with both intervals excluding 0.

    Parameters
    ----------
    dni, baseline
        Estimates; ``baseline`` is None where the baseline cell was not asked.

    Returns
    -------
    bool or Insufficient
        True only if both intervals exclude 0 and the signs differ.
    """
    if baseline is None:
        return Insufficient(reason="no response at the baseline condition")
    if isinstance(baseline, Insufficient):
        return Insufficient(reason=f"baseline: {baseline.reason}")
    if isinstance(dni, Insufficient):
        return dni
    refusal = _too_few(dni) or _too_few(baseline)
    if refusal:
        return refusal
    return (dni.low > 0 and baseline.high < 0) or (dni.high < 0 and baseline.low > 0)


def _too_few(estimate: Estimate) -> Insufficient | None:
    return None if estimate.worth >= ENOUGH_STATEMENTS else _no_verdict(estimate.worth)


def _no_verdict(statements: float) -> Insufficient:
    return Insufficient(reason=f"no verdict on {statements:.0f} statements, {ENOUGH_STATEMENTS} needed")


def misreading(ir: Estimate, dni: Estimate, totals: Floats) -> dict[str, MisreadingEntry]:
    """Return how many responses must have been misread to explain IR and DNI (INSTRUMENT, "Readers err").

    A misread layer changes whether the layers of its response agree, so a share e of misread responses changes IR and
    DNI by e at most: IR needs at least the share IR, DNI at least the share abs(DNI), all misread in one direction.

    A reader that misreads endorsing and other texts alike, with the chance e, makes an IR of e of layers that agree,
    and a DNI of e (2 BER_sel - 1); one that so misreads selections makes a DNI of e (1 - 2 BER_elab).

    Parameters
    ----------
    ir, dni
        Both measures of the same responses.
    totals
        Shape ``joint.SHAPE``: responses by cell, of which at least one is eligible.

    Returns
    -------
    dict
        The entries of ``ir`` and ``dni``.
    """
    sel, elab = (point(METRICS[name], totals) or 0.0 for name in ("ber_sel", "ber_elab"))
    nearest = max(dni.low, -dni.high, 0.0)
    return {
        "ir": MisreadingEntry(
            value=ir.value,
            bound=max(ir.low, 0.0),
            symmetric_elab=_chance(ir.value, 1.0),
            symmetric_sel=_chance(ir.value, 1.0),
        ),
        "dni": MisreadingEntry(
            value=abs(dni.value),
            bound=nearest,
            symmetric_elab=_chance(dni.value, 2 * sel - 1),
            symmetric_sel=_chance(dni.value, 1 - 2 * elab),
        ),
    }


def _chance(value: float, per_chance: float) -> float | Missing:
    """Return the chance to misread a layer that gives a value; a chance over one half is worse than guessing."""
    chance = value / per_chance if per_chance else float("inf")
    return chance if 0 <= chance <= MOST_MISREAD else Missing(missing=NOT_SYMMETRIC)


def qe_fold(totals: Floats) -> FoldEntry | Insufficient:
    """Recompute IR with QE as non-endorsement (BiAxisAudit C-A).

    Parameters
    ----------
    totals
        Shape ``joint.SHAPE``: responses by cell.
    """
    ir = point(METRICS["ir"], totals)
    if ir is None:
        return Insufficient(reason="no response has a label on both layers")
    differ = ELIGIBLE * np.abs(SEL_ENDORSES - ELAB_ENDORSES_OUTRIGHT)
    ir_folded = float((differ * totals).sum() / (ELIGIBLE * totals).sum())
    return FoldEntry(ir=ir, ir_folded=ir_folded, robust=abs(ir - ir_folded) < FOLD_MAX)


def fourfold_counts(totals: Floats) -> Floats:
    """Fold a table to n11, n10, n01, n00; shape [4]."""
    return np.array([float((mask * totals).sum()) for mask in FOURFOLD])
