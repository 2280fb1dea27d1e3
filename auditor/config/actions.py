"""Declare what findings may do to a route (``routes[].on_finding``)."""

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from auditor.config.values import PositiveSeconds, Section, Share
from auditor.domain.actions import ActionKind

_DAY: Final = 86_400.0


class FindingPolicy(Section):
    """What a finding about a deployment of the route does, while it lasts; nothing acts without such an entry."""

    level: Literal["page", "investigate", "instrument"] = "page"
    """The level of the findings that act."""
    action: ActionKind
    """``shift_weight`` moves requests from the deployment to others of the route, ``stop_sampling`` keeps no copies of
    clients' requests, ``notify`` only writes and posts that it happened."""
    to: tuple[str, ...] = ()
    """The deployments that get the requests of ``shift_weight``, in proportion to their weights; none: all others of
    the route."""
    share: Annotated[float, Field(gt=0, le=0.95, allow_inf_nan=False)] = 0.5
    """The largest part of the route's requests that is moved, over all actions on the route together."""
    expires: PositiveSeconds = 2 * _DAY
    """How long an action lasts, unless a later day shows the change again."""
    recovered_after: Annotated[int, Field(ge=1, le=30)] = 3
    """An action ends when this many last days together no longer show the change."""
    per_day: Annotated[int, Field(ge=1, le=100)] = 2
    """How many actions of this kind may begin on the route within 24 hours."""
    min_answers: Annotated[int, Field(ge=1)] = 300
    """Findings and days with fewer answers begin and renew nothing."""
    min_coverage: Share = 0.9
    """Findings and days with a smaller share of coded answers begin and renew nothing."""
    dry_run: bool = False
    """``true``: everything is decided and written down, and nothing is done."""

    @model_validator(mode="after")
    def _check(self) -> "FindingPolicy":
        if self.to and self.action != "shift_weight":
            raise ValueError("to is only for the action shift_weight")
        return self
