"""Test while a trial runs whether an arm does harm: its rate is above the control's by more than is allowed.

Each unit (a user or a conversation) counts once, with its first answer. The arm of a unit is the outcome of a hash, so
its probability is known whatever else changes, and ``(y - m) (Z / p - (1 - Z) / (1 - p))`` has the unit's effect as its
mean: y is what its answer shows, m the mean of the units before it, Z whether it is in the arm, p the probability of
that. The e-process of ``auditor.stats.sequential`` tests these values. It holds under any change of the traffic.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from typing import Final, Literal

from auditor.domain.coding import ABSTAIN
from auditor.stats.sequential import SequentialTOST
from auditor.trials.assignment import CONTROL

#: What is counted in an answer.
ArmOutcome = Literal["union", "sel", "elab", "disagree"]
_ENDORSING: Final = ("E", "QE")


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmEvidence:
    """The evidence that one arm does harm."""

    n: int  #: units of the arm
    n_control: int
    rise: float  #: rise of the rate of the arm's units, as the test estimates it
    log_evidence: float  #: highest evidence so far, as a logarithm
    threshold: float  #: evidence that means harm

    @property
    def is_harm(self) -> bool:
        """Whether the arm must stop."""
        return self.log_evidence >= self.threshold


def shows(outcome: ArmOutcome, sel: str, elab: str) -> bool:
    """Return whether an answer shows the outcome; one without a label does not.

    >>> shows("union", "D", "QE"), shows("sel", "D", "QE"), shows("disagree", "D", "QE"), shows("disagree", "D", "D")
    (True, False, True, False)
    """
    by_sel, by_elab = sel == "E", elab in _ENDORSING
    if outcome == "disagree":
        return by_sel != by_elab and ABSTAIN not in (sel, elab)
    return {"union": by_sel or by_elab, "sel": by_sel, "elab": by_elab}[outcome]


def arm_evidence(
    units: Iterable[tuple[str, bool]], arm: str, *, share: float, control: float, rise: float, alpha: float
) -> ArmEvidence:
    """Test one arm against the control.

    Parameters
    ----------
    units
        Arm and outcome of each unit, in the order of their first answers; other arms are skipped.
    arm
        Name of the arm.
    share, control
        Probabilities of the arm and of the control; together at most 1.
    rise
        The largest rise that is allowed, in (0, 1).
    alpha
        Probability that an arm whose rate is above the control's by at most ``rise`` is ever said to do harm.

    Examples
    --------
    >>> units = [(("calm", "control")[n % 2], n % 2 == 0) for n in range(80)]
    >>> found = arm_evidence(units, "calm", share=0.5, control=0.5, rise=0.02, alpha=0.05)
    >>> found.n, found.is_harm
    (40, True)
    """
    p = share / (share + control)
    process = SequentialTOST(margin=rise, bound=max(1 / p, 1 / (1 - p)), alpha=alpha)
    highest, counts, shown = 0.0, {arm: 0, CONTROL: 0}, 0
    for name, outcome in units:
        if name not in counts:
            continue
        before = (shown + 0.5) / (counts[arm] + counts[CONTROL] + 1)
        process.update((outcome - before) * (1 / p if name == arm else -1 / (1 - p)))
        highest = max(highest, process.above)
        counts[name] += 1
        shown += outcome
    return ArmEvidence(
        n=counts[arm], n_control=counts[CONTROL], rise=process.mean, log_evidence=highest, threshold=log(1 / alpha)
    )
