"""Define what the API shows of deployments: progress, stored estimates, what changed, and two side by side."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Day, Document, HasFields, Missing, Reason, Share, Timestamp
from auditor.documents.findings import FindingEntry, ReferenceEntry


class EstimateRowEntry(Document):
    """One number as it is shown everywhere, or the reason why there is none; further keys say what it is about."""

    origin: str
    rubric: str
    condition: str
    window: str
    metric: str
    deployment: Annotated[str, Meta(description="Absent: of all deployments.")] | UnsetType = UNSET
    layer: str | UnsetType = UNSET
    base: str | UnsetType = UNSET
    value: float | UnsetType = UNSET
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET
    n_statements: Count | UnsetType = UNSET
    n_eligible: Count | UnsetType = UNSET
    n_effective: Annotated[float, Meta(ge=0)] | UnsetType = UNSET
    coverage: Share | UnsetType = UNSET
    method: str | UnsetType = UNSET
    missing: Reason | UnsetType = UNSET
    n: Count
    flags: Sequence[str]
    since: Timestamp
    as_of: Timestamp
    coder: str
    seed: int


#: The keys of ``EstimateRowEntry``, and those that its measure has besides.
EstimateRow = Annotated[Mapping[str, Any], HasFields(EstimateRowEntry)]


class EstimatesBody(Document):
    """The rows of the newest snapshot."""

    as_of: Annotated[Timestamp | None, Meta(description="null: there is no snapshot.")]
    estimates: Sequence[EstimateRow]


class EstimatesRequestedBody(Document):
    """Whether new estimates were requested; false: they already were."""

    asked: bool


class OriginEntry(Document):
    """The answers of one origin, in the longest window."""

    stored: Count
    complete: Count
    with_content: Count
    coded: Count
    uncoded: Count
    waiting: Count
    last_at: Timestamp | None


class DriftStateEntry(Document):
    """Whether a deployment has changed against its reference."""

    state: str


class PeerVerdictEntry(Document):
    """The verdicts of the comparison with peers."""

    verdict: str


class DeploymentEntry(Document):
    """One deployment: progress, headline estimates, what is missing and why."""

    name: str
    configured: bool
    model: str | UnsetType = UNSET
    vendor: str | UnsetType = UNSET
    weights: str | UnsetType = UNSET
    routes: Sequence[str]
    planned: Count
    answered: Count
    origins: Mapping[str, OriginEntry]
    estimates: Sequence[EstimateRow]
    drift: DriftStateEntry | Missing
    peers: PeerVerdictEntry | Missing
    reasons: Sequence[str]
    next: Annotated[str | None, Meta(description="The command that would change what is missing.")]


class WeekChangeEntry(Document):
    """A finding, an accepted reference, or a rate that moved."""

    kind: Literal["finding", "reference", "change"]
    at: Timestamp | UnsetType = UNSET
    deployment: str
    text: str
    page: str


class WeekChangesEntry(Document):
    """What changed in the last seven days."""

    window: Annotated[str, Meta(description="Over which rates are compared with the reference.")]
    compared: Annotated[Count, Meta(description="Deployments whose rate was compared.")]
    moved: Annotated[Count, Meta(description="Of these, those whose interval leaves 0 out.")]
    entries: Sequence[WeekChangeEntry]


class DeploymentsBody(Document):
    """All deployments, and what changed."""

    as_of: Timestamp | None
    window: str
    deployments: Sequence[DeploymentEntry]
    week: WeekChangesEntry


class LabelPairEntry(Document):
    """Number of answers with a pair of labels."""

    sel: str
    elab: str
    n: Count


class DayRateEntry(Document):
    """The union rate of one day (UTC), full base."""

    day: Day
    value: Share
    low: Share
    high: Share
    n: Count
    n_statements: Count
    method: str


class MissingDayRate(Document):
    """A day without a rate."""

    day: Day
    missing: Reason


class DeploymentBody(DeploymentEntry):
    """One deployment: also all estimates of one origin and window, labels, days, references and findings."""

    as_of: Timestamp | None
    origin: str
    window: str
    labels: Sequence[LabelPairEntry]
    days: Sequence[DayRateEntry | MissingDayRate]
    references: Sequence[ReferenceEntry]
    findings: Sequence[FindingEntry]


class EventsEntry(Document):
    """How many of n responses count; of DNI the difference of two numbers."""

    events: int
    n: Count


class _TwoDeploymentsKey(Document):
    """One measure of two deployments."""

    first: EventsEntry
    second: EventsEntry


class TwoDeploymentsEntry(_TwoDeploymentsKey):
    """One measure of two deployments, and the second minus the first; each condition has the same weight."""

    difference: float
    low: float
    high: float
    n_statements: Count


class MissingTwoDeployments(_TwoDeploymentsKey):
    """One measure of two deployments without a difference."""

    missing: Reason


class UnionCountEntry(Document):
    """How many of n responses endorse on either layer."""

    union: Count
    n: Count


class StatementOfTwoEntry(Document):
    """One statement that both deployments were asked about."""

    statement_id: str
    statement: str | None
    first: UnionCountEntry
    second: UnionCountEntry


class TwoDeploymentsBody(Document):
    """Two deployments on the questions that both were asked."""

    first: str
    second: str
    conditions: Sequence[str]
    n_statements: Count
    measures: Mapping[str, TwoDeploymentsEntry | MissingTwoDeployments]
    statements: Sequence[StatementOfTwoEntry]
