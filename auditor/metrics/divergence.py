"""Derive verdicts from IR and DNI: the cancellation trap, a changed sign, and the effect of folding QE.

Verdicts need the minimum numbers of ``estimate``: there is no verdict on fewer than 100 statements.
"""

from typing import Final, Literal

import numpy as np

from auditor.counting.joint import Floats, JointTable
from auditor.documents.estimates import FoldEntry
from auditor.domain.estimate import Estimate, Insufficient
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
    if estimate.worth >= ENOUGH_STATEMENTS:
        return None
    return Insufficient(reason=f"no verdict on {estimate.worth:.0f} statements, {ENOUGH_STATEMENTS} needed")


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
