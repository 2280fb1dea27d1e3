"""Define how the arms of a route's trial compare, as the report and the API write it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Missing, Timestamp
from auditor.documents.estimates import CoverageEntry, FlaggedEntry, Metrics

#: Which tokens are counted.
TOKENS: Final = ("prompt", "completion")


class ArmStopEntry(Document):
    """An arm was stopped, or would have been in a dry run."""

    at: Timestamp
    by: Annotated[str, Meta(description="rule, or the name of a person.")]
    because: str
    dry_run: bool


class TrialArmEntry(Document):
    """One arm of a trial. Differences are the arm's value less the control's; the control has none."""

    arm: str
    n: Annotated[Count, Meta(description="Stored requests of the arm, also those without a coding.")]
    n_units: Annotated[Count, Meta(description="Users or conversations with such a request.")]
    untouched: Annotated[
        Mapping[str, Count],
        Meta(description="Requests that were forwarded without the instruction, by reason. Except stopped ones they "
             "count in the arm: units are compared as they were assigned."),
    ]  # fmt: skip
    coverage: CoverageEntry | Missing
    metrics: Metrics
    differences: Annotated[Mapping[str, FlaggedEntry | Missing], Meta(description="By measure.")]
    tokens: Annotated[
        Mapping[str, FlaggedEntry | Missing], Meta(description="Mean per request, by kind: prompt, completion.")
    ]
    token_differences: Mapping[str, FlaggedEntry | Missing]
    stops: Sequence[ArmStopEntry] | UnsetType = UNSET


class TrialEntry(Document):
    """A trial: the requests of a route under one set of arms and shares."""

    trial: str
    route: str
    coder: str
    rubric: str
    n_unassigned: Annotated[Count, Meta(description="Requests that do not say who asks. They are in no arm.")]
    arms: Annotated[Sequence[TrialArmEntry], Meta(description="The control first.")]
