"""Define what the API shows of stored exchanges: facts, labels of judges and people, and answers in lists."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.agreement import AlphaEntry, MissingAlpha
from auditor.documents.base import Count, Document, Id, Missing, Share, Timestamp, one_of
from auditor.documents.estimates import EstimateEntry
from auditor.reviews.opinions import AnswerView, Layer

LayerName = Annotated[str, one_of(Layer)]
ViewName = Annotated[str, one_of(AnswerView)]


class JudgeVoteEntry(Document):
    """One judge's label of a text, or why there is none."""

    judge: str
    label: str
    reason: str | None
    rationale: str | UnsetType = UNSET


class StoredCodingEntry(Document):
    """The labels that one coder has found in an exchange."""

    coder: str
    rubric: str
    sel: str | None
    sel_reason: str | None
    sel_via: str | None
    elab: str | None
    elab_reason: str | None
    uncoded: Annotated[str | None, Meta(description="Why it could not be coded.")]
    coded_at: Timestamp
    votes: Sequence[JudgeVoteEntry]


class PersonLabelEntry(Document):
    """A person's label of one layer of an exchange."""

    id: Count
    exchange: Id
    layer: LayerName
    view: ViewName
    label: str
    reviewer: str
    rubric: str
    note: str | UnsetType = UNSET
    adjudicates: Annotated[bool, Meta(description="It settles labels that differ.")] | UnsetType = UNSET
    at: Timestamp
    superseded: bool


class PersonLabelsBody(Document):
    """All labels of one exchange by people."""

    reviews: Sequence[PersonLabelEntry]


class ExchangeSummaryEntry(Document):
    """What a list shows of an exchange."""

    id: Id
    at: Timestamp
    origin: str
    route: str
    deployment: str
    status: Count
    complete: bool


class ExchangesBody(Document):
    """A page of a list."""

    exchanges: Sequence[ExchangeSummaryEntry]
    next: Annotated[Id | None, Meta(description="The value of after for the next page.")]


class TokensUsedEntry(Document):
    """The tokens that a deployment has counted."""

    prompt_tokens: int | None
    completion_tokens: int | None


class TimingsEntry(Document):
    """Microseconds."""

    total_us: int
    upstream_us: int
    first_byte_us: int | None


class ExchangeBody(Document):
    """One stored exchange: facts, content where it was captured, codings, and people's labels."""

    id: Id
    at: Timestamp
    complete: bool
    origin: str
    endpoint: str
    route: str
    deployment: str
    model: str
    status: Count
    outcome: str
    stream: bool
    attempts: Count
    capture: str
    inclusion: Share
    config_hash: str
    request_id: str
    key_id: str | None
    ref: str | None
    tags: Mapping[str, Any] | None
    error_type: str | None
    finish_reason: str | None
    request_bytes: Count
    response_bytes: Count
    truncated: bool
    redacted: bool
    parent: Id | None
    usage: TokensUsedEntry | None
    timings: TimingsEntry
    request_sha256: str | None
    response_sha256: str | None
    request: str | None
    response: str | None
    codings: Sequence[StoredCodingEntry]
    labels: Sequence[PersonLabelEntry]


class AnswerEntry(Document):
    """The coding of an answer, with the answer where it is shown."""

    id: Id
    at: Timestamp | None
    statement_id: str
    statement: str | None
    deployment: str
    origin: str
    rubric: str
    audit: str | None
    claim: str | None
    task: str | None
    perspective: str | None
    role: str | None
    sentiment: str | None
    category: str | None
    sel: str | None
    sel_reason: str | None
    sel_via: str | None
    elab: str | None
    elab_reason: str | None
    uncoded: str | None
    inclusion: Share
    coder: str
    votes: Sequence[JudgeVoteEntry]
    response: str | None


class AnswersBody(Document):
    """A page of the answers that a number counts, the newest first."""

    total: Count
    answers: Sequence[AnswerEntry]
    next: Annotated[Id | None, Meta(description="The value of after for the next page.")]


class AnswerCopyEntry(Document):
    """The same prompt as another exchange: a replay, or what was mirrored to a peer."""

    id: Id
    origin: str
    deployment: str
    at: Timestamp
    response: str | None
    codings: Sequence[AnswerEntry]


class CountedInEntry(Document):
    """An estimate that counts an answer."""

    window: str
    condition: str
    metric: str
    layer: str | None
    base: str | None
    value: float | None
    n: Count


class FindingMentionEntry(Document):
    """A finding whose days include an answer."""

    id: str
    metric: str
    level: str
    state: str


class AnswerBody(Document):
    """One answer with its codings, votes, copies, estimates and findings."""

    id: Id
    statement: str | None
    response: str | None
    codings: Sequence[AnswerEntry]
    coders: Annotated[Mapping[str, Mapping[str, Any]], Meta(description="What each coder consists of.")]
    copies: Sequence[AnswerCopyEntry]
    counted_in: Sequence[CountedInEntry]
    findings: Sequence[FindingMentionEntry]


class ReviewQueueEntry(Document):
    """One queue of a sample."""

    title: str
    layer: LayerName
    view: ViewName
    labelled: Count


class ReviewDrawEntry(Document):
    """A sample that people label."""

    id: str
    drawn_at: Timestamp
    drawn: Annotated[str, Meta(description="The same time for people.")]
    origin: str
    rubric: str
    strata: Sequence[str]
    items: Count
    queues: Sequence[ReviewQueueEntry]


class ReviewDrawsBody(Document):
    """The newest samples."""

    draws: Sequence[ReviewDrawEntry]


class QueueProgressEntry(Document):
    """Numbers of answers of a queue."""

    items: Count
    own: Annotated[Count, Meta(description="Labelled by the reviewer.")]
    complete: Annotated[Count, Meta(description="With the labels of as many reviewers as are wanted.")]
    disputed: Annotated[Count, Meta(description="Labels differ, and nobody has settled it.")]
    adjudicated: Count


class ReviewDrawBody(Document):
    """One queue of a sample: progress, agreement, estimates."""

    draw: str
    layer: LayerName
    view: ViewName
    progress: QueueProgressEntry
    alpha: Annotated[AlphaEntry | MissingAlpha | None, Meta(description="null: no answer has two labels.")]
    corrected: Annotated[Mapping[str, EstimateEntry | Missing], Meta(description="By measure.")]
    lines: Annotated[Sequence[str], Meta(description="The numbers as sentences.")]
