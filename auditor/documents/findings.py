"""Define what the API and the webhook show of the monitoring: findings, what they do to routes, and references."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Day, Document, Share, Timestamp


class FindingWindowEntry(Document):
    """The first and the last day of the tested data."""

    since: Day
    until: Day


class FindingEntry(Document):
    """A finding about one measure of one deployment, and its state."""

    id: str
    deployment: str
    metric: str
    level: str
    state: str
    n: Count
    n_statements: Count
    coder: str
    value: Annotated[float, Meta(description="The change against the reference.")] | UnsetType = UNSET
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET
    note: str | UnsetType = UNSET
    by: str | UnsetType = UNSET
    silenced_until: Timestamp | UnsetType = UNSET
    window: FindingWindowEntry
    first_seen: Timestamp
    reference: str
    evidence: Mapping[str, Any]


class FindingsBody(Document):
    """Findings, the newest first."""

    findings: Sequence[FindingEntry]


class FindingEventEntry(Document):
    """A change of a finding, and who made it."""

    at: Timestamp
    action: str
    by: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    reference: str | UnsetType = UNSET
    until: Timestamp | UnsetType = UNSET


class FindingBody(FindingEntry):
    """A finding with its events."""

    events: Sequence[FindingEventEntry]


class RouteActionEntry(Document):
    """What a finding does to a route."""

    id: str
    finding: str
    route: str
    deployment: str
    level: str
    action: str
    to: Annotated[Sequence[str], Meta(description="The deployments that get the share.")] | UnsetType = UNSET
    share: Annotated[Share, Meta(description="Of the route's requests.")] | UnsetType = UNSET
    dry_run: bool
    began: Timestamp
    evidence_day: Day
    expires: Timestamp
    ended: Timestamp | UnsetType = UNSET
    because: str | UnsetType | None = UNSET


class RouteActionsBody(Document):
    """What findings have done to routes, the newest first."""

    actions: Sequence[RouteActionEntry]


class ReferenceEntry(Document):
    """What a deployment is compared with; without ``until`` its days are still being collected."""

    id: str
    deployment: str
    since: Day
    accepted_at: Timestamp
    in_force: bool
    coder: str
    by: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    release: str | UnsetType = UNSET
    until: Day | UnsetType = UNSET


class ReferencesBody(Document):
    """References, each deployment's newest first."""

    references: Sequence[ReferenceEntry]
