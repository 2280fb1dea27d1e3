"""Declare what findings may do to a route (``routes[].on_finding``)."""

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from auditor.config.values import PositiveSeconds, Section, Share
from auditor.domain.actions import ActionKind

_DAY: Final = 86_400.0


class FindingPolicy(Section):
    """What a finding about a deployment of the route does, while it lasts; nothing acts without such an entry.

    ``level`` is the level of the findings (``page``, ``investigate`` or ``instrument``) and ``action`` what they do:
    ``shift_weight`` moves requests from the deployment to other deployments of the route, ``stop_sampling`` keeps no
    copies of clients' requests, ``notify`` only writes and posts that it happened. ``to`` names the deployments that
    get the requests, by default all others of the route. ``share`` is the largest part of the route's requests that is
    moved, over all actions on the route together. An action ends after ``expires`` unless a later day shows the change
    again, and when the last ``recovered_after`` days no longer show it. ``per_day`` is how many actions of this kind
    may begin on the route within 24 hours. Findings and days with fewer than ``min_answers`` answers, or a smaller
    share of coded answers than ``min_coverage``, do nothing. With ``dry_run`` all of it is written down and nothing
    is done.
    """

    level: Literal["page", "investigate", "instrument"] = "page"
    action: ActionKind
    to: tuple[str, ...] = ()
    share: Annotated[float, Field(gt=0, le=0.95, allow_inf_nan=False)] = 0.5
    expires: PositiveSeconds = 2 * _DAY
    recovered_after: Annotated[int, Field(ge=1, le=30)] = 3
    per_day: Annotated[int, Field(ge=1, le=100)] = 2
    min_answers: Annotated[int, Field(ge=1)] = 300
    min_coverage: Share = 0.9
    dry_run: bool = False

    @model_validator(mode="after")
    def _check(self) -> "FindingPolicy":
        if self.to and self.action != "shift_weight":
            raise ValueError("to is only for the action shift_weight")
        return self
