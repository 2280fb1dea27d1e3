"""What (IR, DNI) say together: the cancellation trap, a flipped sign, and whether the QE fold matters.

These are verdicts, so they need the floors of ``estimate``: none is given on fewer than a hundred statements.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from auditor.domain.estimate import Estimate, Insufficient
from auditor.metrics.estimate import ENOUGH_STATEMENTS, dni_interval
from auditor.metrics.joint import Floats, JointTable
from auditor.metrics.rates import BY_NAME, ELAB_ENDORSES_OUTRIGHT, ELIGIBLE, FOURFOLD, SEL_ENDORSES, point
from auditor.stats.intervals import Interval

#: Layers that disagree on a tenth of the responses are worth a warning. Chosen by this project: the paper names none.
IR_MIN: Final = 0.10
#: A net imbalance within two points is as good as none. Chosen by this project.
DNI_MAX: Final = 0.02
#: The possible trap: what is cancelled is at least four fifths of what disagrees.
CANCELLED: Final = 0.2
#: The QE fold is robust when IR moves by less than a percentage point (BiAxisAudit C-A).
FOLD_MAX: Final = 0.01

Trap = Literal["confirmed", "possible", "excluded"]


def trap_state(ir: Estimate, dni: Estimate, dni_90: Interval) -> Trap:
    """Read the cancellation trap: the layers disagree, yet the net imbalance hides it (BiAxisAudit section V-C).

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
    """Read the trap off a table's estimates, or say why it cannot be read."""
    if isinstance(ir, Insufficient):
        return ir
    if isinstance(dni, Insufficient):
        return dni
    return _too_few(dni) or trap_state(ir, dni, dni_interval(table, seed=seed))


def sign_flip(dni: Estimate | Insufficient, baseline: Estimate | Insufficient | None) -> bool | Insufficient:
    """Tell whether DNI points the other way than at the baseline cell, both intervals being clear of 0.

    Parameters
    ----------
    dni, baseline
        Estimates; ``baseline`` is None where the baseline cell was not asked.

    Returns
    -------
    bool or Insufficient
        True only where both signs are sure and differ.
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
    if estimate.n_statements >= ENOUGH_STATEMENTS:
        return None
    return Insufficient(reason=f"no verdict on {estimate.n_statements} statements, {ENOUGH_STATEMENTS} needed")


@dataclass(frozen=True, kw_only=True, slots=True)
class QeFold:
    """IR with qualified endorsement as endorsement, and folded into non-endorsement."""

    ir: float
    ir_folded: float

    @property
    def robust(self) -> bool:
        """Whether the fold moves IR by less than a percentage point."""
        return abs(self.ir - self.ir_folded) < FOLD_MAX


def qe_fold(totals: Floats) -> QeFold | Insufficient:
    """Recompute IR with QE as non-endorsement (BiAxisAudit C-A).

    Parameters
    ----------
    totals
        Shape ``joint.SHAPE``: responses by cell.
    """
    ir = point(BY_NAME["ir"], totals)
    if ir is None:
        return Insufficient(reason="no response has a label on both layers")
    differ = ELIGIBLE * np.abs(SEL_ENDORSES - ELAB_ENDORSES_OUTRIGHT)
    return QeFold(ir=ir, ir_folded=float((differ * totals).sum() / (ELIGIBLE * totals).sum()))


def fourfold_counts(totals: Floats) -> Floats:
    """Fold a table to n11, n10, n01, n00; shape [4]."""
    return np.array([float((mask * totals).sum()) for mask in FOURFOLD])
