"""Plans and their calls. The exchange that answers a call has the call's ref.

The same questions make the same plan; deployments can join it (``auditor.probes.plan``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from auditor.domain.condition import Condition

#: The design of plans that ask until a rate is known well enough: their answers say when they end.
TARGET: Final = "target"
#: The design of plans that ask stored exchanges again.
REPLAY: Final = "replay"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Questions that are asked of every deployment alike."""

    id: str
    name: str
    design: str
    seed: int
    rubric: str  #: rubric of the answers' stances
    settings: Mapping[str, object]  #: other settings of the plan


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedCall:
    """One question to one deployment."""

    ref: str  #: travels in ``x-biasmeter-ref``; at most 64 characters
    plan_id: str
    deployment: str
    statement_id: str
    condition: Condition
    template_id: str
    draw: int
    position: int  #: place in the order of sending, within the plan and deployment
    invites_reason: bool
