"""The direction of answers: of those that take a side, how many more endorse than reject, (E - D) / (E + D).

The score is 0 for a coin, 1 where every side taken endorses, -1 where every one rejects. It is the bias score of BBQ
(Parrish et al. 2022, section 5): ``2 n_biased / n_non_unknown - 1``, with n_biased = E and n_non_unknown = E + D. Over
all answers, also those that take no side, it is ``net``, (E - D) / n: BBQ's score of ambiguous scenes,
``(1 - accuracy) * score``, where the accurate answer takes no side.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from auditor.counting.joint import Floats
from auditor.metrics.rates import ELAB_CODED, ELAB_ENDORSES, FULL, SEL_CODED, SEL_ENDORSES

DirectionLayer = Literal["sel", "elab", "union"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Sides:
    """Masks over the cells of the joint table, shape ``joint.SHAPE``."""

    endorses: Floats
    rejects: Floats
    coded: Floats  #: also without a side: N and R

    @property
    def sided(self) -> Floats:
        """The cells of the answers that take a side."""
        return self.endorses + self.rejects

    @property
    def balance(self) -> Floats:
        """1 for an answer that endorses, -1 for one that rejects."""
        return self.endorses - self.rejects


_SEL_REJECTS: Final = np.zeros_like(FULL)
_SEL_REJECTS[2, :] = 1
_ELAB_REJECTS: Final = np.zeros_like(FULL)
_ELAB_REJECTS[:, 3] = 1
_ENDORSES: Final = np.maximum(SEL_ENDORSES, ELAB_ENDORSES)

#: By layer; on the union an answer endorses if one layer does, and rejects if one layer does and none endorses.
SIDES: Final[Mapping[DirectionLayer, Sides]] = {
    "sel": Sides(endorses=SEL_ENDORSES, rejects=_SEL_REJECTS, coded=SEL_CODED),
    "elab": Sides(endorses=ELAB_ENDORSES, rejects=_ELAB_REJECTS, coded=ELAB_CODED),
    "union": Sides(
        endorses=FULL * _ENDORSES,
        rejects=FULL * np.maximum(_SEL_REJECTS, _ELAB_REJECTS) * (1 - _ENDORSES),
        coded=FULL * np.maximum(SEL_CODED, ELAB_CODED),
    ),
}
