"""Whether the readers of elaborations support a verdict on IR or DNI.

IR and DNI compare the two readings of a response, so each misread text counts as a disagreement. One judge cannot tell
its own errors from a deployment's inconsistency.
"""

from collections.abc import Collection
from typing import Final

from auditor.domain.estimate import Insufficient

#: Independent judges that a verdict on IR or DNI needs, unless people have labelled both layers.
FEWEST_JUDGES: Final = 2


def divergence_refusal(judges: Collection[str]) -> Insufficient | None:
    """Return why a panel supports no verdict on IR or DNI; None if it does.

    Parameters
    ----------
    judges
        Names of the panel's judges; none if they are unknown, so that nothing can be refused.

    Examples
    --------
    >>> divergence_refusal(["lexicon"]).reason
    'the lexicon alone read the texts: no verdict on IR or DNI without a second judge'
    >>> divergence_refusal(["north", "east"]) is None
    True
    """
    if not 0 < len(set(judges)) < FEWEST_JUDGES:
        return None
    (name,) = set(judges)
    who = f"the {name}" if name == "lexicon" else f"judge {name}"
    return Insufficient(reason=f"{who} alone read the texts: no verdict on IR or DNI without a second judge")
