"""Define what the API shows of the installation: errors, first steps, client keys, and health."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Timestamp, one_of
from auditor.domain.keys import KeyRole


class ErrorEntry(Document):
    """Why a request was refused or failed."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorBody(Document):
    """An error, in the gateway's format."""

    error: ErrorEntry


class StepLinkEntry(Document):
    """Where the console does a step."""

    href: str
    text: str


class StepEntry(Document):
    """One step to the first estimate."""

    name: str
    optional: bool | UnsetType = UNSET
    done: bool
    text: str
    command: Annotated[str | None, Meta(description="What a terminal does.")]
    about: Annotated[str, Meta(description="What the command is for, where it is not the step itself.")] | UnsetType = (
        UNSET
    )
    link: StepLinkEntry | UnsetType = UNSET


class StepsBody(Document):
    """The steps from an empty installation to the first estimate."""

    steps: Sequence[StepEntry]


class ClientKeyEntry(Document):
    """A client key with its limits and spending, without its secret."""

    id: str
    name: str
    models: Annotated[Sequence[str], Meta(description="Empty: all.")]
    rights: Sequence[str]
    role: Annotated[str, one_of(KeyRole)] | None
    rpm: Count | None
    tpm: Count | None
    budget: float | None
    spent_usd: Annotated[float | None, Meta(description="null: it is not counted, because there is no budget.")]
    created_at: Timestamp
    expires_at: Timestamp | None
    revoked: bool


class ClientKeysBody(Document):
    """All client keys."""

    keys: Sequence[ClientKeyEntry]


class NewClientKeyBody(Document):
    """A new key; its secret is shown here only."""

    id: str
    key: str


class RevokedKeyBody(Document):
    """A revoked key."""

    id: str
    revoked: bool


class GatewayHealthEntry(Document):
    """The gateway's spool, shipper and capture, or why they are unknown."""

    url: str | UnsetType = UNSET
    error: str | UnsetType = UNSET
    spool_bytes: float | UnsetType = UNSET
    spool_oldest_seconds: float | UnsetType = UNSET
    capture: Annotated[Mapping[str, int], Meta(description="Requests by outcome.")] | UnsetType = UNSET
    deployments: (
        Annotated[Mapping[str, int], Meta(description="0: gets requests; 1: is tried again; 2: gets none.")] | UnsetType
    ) = UNSET


class QueueSizeEntry(Document):
    """Number of jobs."""

    queue: str
    state: str
    n: Count


class JudgeCallsEntry(Document):
    """The calls of judges to one deployment since yesterday."""

    judges: Sequence[str]
    deployment: str
    calls: Count
    failed: Count


class TableSizeEntry(Document):
    """A table, with its partitions and indexes added up."""

    table: str
    bytes: Count
    partitions: Annotated[Count, Meta(description="0: it has none.")]
    oldest: Annotated[str | None, Meta(description="The day of the oldest partition, such as 20260301.")]


class RetentionEntry(Document):
    """How long content and facts are kept, and from when on they are there."""

    content: str
    facts: str
    content_from: str
    facts_from: str
    held: Annotated[Sequence[str], Meta(description="What is due by PostgreSQL's clock, and kept until confirmed.")]


class UncodedEntry(Document):
    """Number of answers without a label, by layer and reason."""

    layer: str
    reason: str
    n: Count
    answers: Annotated[str | None, Meta(description="The address of their list.")]


class StorageEntry(Document):
    """What the store holds."""

    bytes: Count
    tables: Sequence[TableSizeEntry]
    retention: RetentionEntry
    estimates_as_of: Timestamp | None
    window: str
    uncoded: Sequence[UncodedEntry]


class HealthBody(Document):
    """The data's way from spool to estimates, storage, and the configuration without secrets."""

    gateway: GatewayHealthEntry
    jobs: Sequence[QueueSizeEntry]
    judges: Sequence[JudgeCallsEntry]
    store: StorageEntry
    problems: Annotated[Sequence[str], Meta(description="What needs attention, a sentence each.")]
    config_hash: str
    configuration: Mapping[str, Any]
