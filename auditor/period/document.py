"""Define ``report.json``: the report over a period, and what has to be there to make it again."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from auditor.documents.agreement import MissingReviewKappa, ReviewKappaEntry
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Count, Day, Document, Missing, Sha256, Timestamp
from auditor.documents.comparison import ExposureEntry, GroupKeyEntry
from auditor.documents.estimates import Metrics
from auditor.documents.peers import PeerOrigin, StoredPeersDocument
from auditor.trials.document import TrialEntry

SCHEMA: Final = "biasmeter.report/1"
Positive = Annotated[float, Meta(gt=0)]


class ReportCoderEntry(Document):
    """A coder that read something of the period."""

    id: str
    description: Annotated[
        Mapping[str, Any],
        Meta(
            description="Rules, judges with versions and prompts, rubric, audit profile: everything the id stands for."
        ),
    ]


class DayDigest(Document):
    """The facts of one day."""

    day: Day
    n: Count
    sha256: Sha256


class LabelsDigest(Document):
    """People's labels."""

    n: Count
    sha256: Sha256


class QuotedDigest(Document):
    """An answer that is quoted."""

    exchange: str
    sha256: Sha256


class CoderInputs(Document):
    """What the analyses of one coder used."""

    coder: str
    days: Sequence[DayDigest]
    labels: LabelsDigest | UnsetType = UNSET
    quoted: Sequence[QuotedDigest] | UnsetType = UNSET


class ScorerInputs(Document):
    """What one scorer made of the answers."""

    id: str
    gives: Literal["scores", "vectors"]
    days: Sequence[DayDigest]


class PeerInputs(Document):
    """What a comparison in peers used. A mirrored prompt's own answer may be of the day before."""

    domain: str
    answers: Sequence[DayDigest]
    scorers: Sequence[ScorerInputs]


class ReplayInputs(Document):
    """What a replay that is shown came to: n measures."""

    replay: str
    n: Count
    sha256: Sha256


class CorrectedDeployment(Document):
    """One deployment's rates, corrected by people's labels."""

    deployment: str
    draw: str
    n_unlabelled: Count
    metrics: Metrics


class CorrectionsEntry(Document):
    """What people's labels of a period come to."""

    deployments: Sequence[CorrectedDeployment]
    kappa: Sequence[ReviewKappaEntry | MissingReviewKappa]


class PartEntry(Document):
    """The codings of one coder and one origin. Parts are never pooled."""

    origin: Annotated[str, Meta(pattern="^(client|probe|replay)$")]
    rubric: str
    audit: str | None
    coder: str
    uncoded: Annotated[
        Mapping[str, Mapping[str, Count]],
        Meta(description="Exchanges without a coding, by deployment and reason."),
    ]
    analysis: Annotated[AnalysisDocument | None, Meta(description="null where nothing was coded.")]
    reviews: CorrectionsEntry | UnsetType = UNSET
    trials: (
        Annotated[Sequence[TrialEntry], Meta(description="Trials of routes with an answer in the period.")] | UnsetType
    ) = UNSET


class ScorerEntry(Document):
    """Who scored or embedded the answers."""

    id: str
    method: str
    description: Annotated[
        Mapping[str, Any],
        Meta(description="Model, revision, instruction or prompt: everything the id stands for."),
    ]


class PeerGroupEntry(Document):
    """Targets that are compared on the same answers."""

    targets: Sequence[str]
    peers: Sequence[str]


class PeerSettingsEntry(Document):
    """As the configuration had them: made again, they are taken from here."""

    k: Positive
    margins: Mapping[str, Positive]
    groups: Sequence[PeerGroupEntry]
    hosts: Annotated[Mapping[str, Sequence[str]], Meta(description="Deployments of the same weights, by these.")]


class PeersHead(Document):
    """Who is compared, how, and by whose scores: what a comparison is made again from."""

    domain: Annotated[
        str, Meta(description="A domain's name, or route: and the model of a route whose prompts are mirrored.")
    ]
    origin: PeerOrigin
    scorers: Annotated[Sequence[ScorerEntry], Meta(min_length=1)]
    settings: PeerSettingsEntry


class PeersEntry(PeersHead):
    """A domain, or a route with mirrored prompts, that has scored answers in the period."""

    document: StoredPeersDocument


class ExposedGroup(Document):
    """Exchanges that a replay asked again in other words."""

    by: GroupKeyEntry
    rubric: str
    claim: str | None
    exposure: Annotated[Mapping[str, ExposureEntry | Missing], Meta(description="By measure.")]


class ExposureReplay(Document):
    """How far a replay, or a comparison of stored traffic, could move the scores."""

    replay: Annotated[str, Meta(description="The id of a replay (rpl-) or of a comparison of stored traffic (cmp-).")]
    concluded_at: Timestamp
    select: str
    groups: Sequence[ExposedGroup]


class ReportDocument(Document):
    """A report over a period, as `biasmeter report` writes it. The same facts give the same bytes."""

    schema: Literal["biasmeter.report/1"]
    version: str
    from_: Timestamp = msgspec.field(name="from")
    to: Timestamp
    as_of: Annotated[
        Timestamp,
        Meta(description="The newest coding, label, vector or score that is counted, or replay or stop that is shown."),
    ]
    seed: Count
    n_boot: Count
    by: Sequence[str]
    quotes: bool
    vendors: Annotated[Mapping[str, str], Meta(description="By deployment, as the configuration says.")]
    coders: Sequence[ReportCoderEntry]
    inputs: Annotated[
        Sequence[CoderInputs | PeerInputs | ReplayInputs],
        Meta(description="Digests of the facts that were counted: to make the report again, these must be there."),
    ]
    facts: Annotated[Sha256, Meta(description="SHA-256 of inputs.")]
    parts: Annotated[Sequence[PartEntry], Meta(description="One for each coder and origin: these are never pooled.")]
    peers: Annotated[
        Sequence[PeersEntry],
        Meta(
            description="One for each domain, and each route with mirrored prompts, that has scored answers in the "
            "period."
        ),
    ]
    exposures: Annotated[
        Sequence[ExposureReplay],
        Meta(
            description="What the replays and comparisons came to that were concluded in the period, the oldest first."
        ),
    ]
