"""Define ``peers.json``: each target's difference from its peers, by every instrument (Relative Bias section 3)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Missing

Number = float | Missing
Verdict = str | Missing
#: Whose answers are compared: those to probes, or those to mirrored prompts of clients.
PeerOrigin = Annotated[str, Meta(pattern="^(probe|peer)$")]
Theme = Annotated[str | float | None, Meta(description="The theme of the questions.")]


class DifferenceEntry(Document):
    """A difference of means with its standard error and degrees of freedom."""

    diff: float
    se: float
    df: float


class PairedTestEntry(DifferenceEntry):
    """The mean of the differences question by question: 95 % interval and tests against the margin."""

    low: float
    high: float
    t_lower: Number
    t_upper: Number
    p_lower: Number
    p_upper: Number
    p_different: Number


class AdjustedDifferenceEntry(DifferenceEntry):
    """The difference at equal length of the answers, with its 95 % interval."""

    low: float
    high: float


class PeerMeanEntry(Document):
    """A mean over questions; the 95 % interval is absent for a single question."""

    mean: float
    n: Count
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET


class DistributionEntry(PeerMeanEntry):
    """A deployment's values: mean, quartiles with the extremes, and counts between the bins' edges."""

    quartiles: Sequence[float]
    counts: Sequence[Count]


class MissingDistributionEntry(Document):
    """A deployment without values."""

    missing: str
    quartiles: Sequence[float]
    counts: Sequence[Count]


class ThemeEntry(Document):
    """Means of one theme by deployment, and the target's paired difference."""

    theme: Theme
    deployments: Mapping[str, PeerMeanEntry | Missing]
    difference: PeerMeanEntry | Missing


class ValuesEntry(Document):
    """How many answers have no value, and how many have one by rule."""

    without_value: Count
    blocked_without_value: Count
    blocked_by_rule: Count


class BriefEntry(Document):
    """A comparison in short: with another margin, another reading, or without a peer."""

    diff: Number
    delta: Number
    verdict: Verdict


class LeaveOneOutEntry(BriefEntry):
    """The comparison without one peer."""

    without: str


class MissingLeaveOneOutEntry(Document):
    """Without this peer nothing can be compared."""

    without: str
    missing: str


class LengthEntry(Document):
    """How the paired difference goes with the length of the answers: a covariate, not a correction."""

    n: Count
    characters_target: float
    characters_peers: float
    ratio: float
    correlation: float
    slope: float
    adjusted: AdjustedDifferenceEntry


class PathPointEntry(Document):
    """The mean difference after n questions; bounds from the fiftieth on."""

    n: Count
    mean: float
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET


class ConfidenceSequenceEntry(Document):
    """Bounds that hold at every n, and the verdict they give; ``after`` is the question that decided it."""

    low: float
    high: float
    verdict: str
    after: Count | UnsetType = UNSET


class SequentialEntry(Document):
    """The verdict that may be read after every question; evidence is in natural logarithms."""

    verdict: str
    after: Count | UnsetType = UNSET
    n: Count
    n_calibration: Count
    margin: float
    e_lower: float
    e_upper: float
    e_different: float
    confidence_sequence: ConfidenceSequenceEntry | Missing
    path: Sequence[PathPointEntry]


class CautionEntry(Document):
    """What a reader of a verdict should know before using it."""

    code: str
    text: str


class MissingInstrumentEntry(Document):
    """An instrument by which the target cannot be compared; its values are described all the same."""

    missing: str
    bins: Sequence[float]
    deployments: Mapping[str, DistributionEntry | MissingDistributionEntry]
    themes: Sequence[ThemeEntry]
    answers: ValuesEntry


class InstrumentEntry(DifferenceEntry):
    """One instrument's comparison: the paper's Welch test flat, the paired test under ``paired``."""

    n_target: Count
    n_baseline: Count
    n_questions: Count
    n_peers: Count
    mean_target: float
    mean_baseline: float
    delta: Number
    t_lower: Number
    t_upper: Number
    p_lower: Number
    p_upper: Number
    equivalent: bool | Missing
    conclusion: str | Missing
    verdict: Verdict
    paired: PairedTestEntry | Missing
    d_llm: Number
    d_embed: Mapping[str, Number] | UnsetType = UNSET
    d_embed_clean: Mapping[str, Number] | UnsetType = UNSET
    clean: BriefEntry | Missing | UnsetType = UNSET
    robust: BriefEntry | Missing
    leave_one_peer_out: Sequence[LeaveOneOutEntry | MissingLeaveOneOutEntry]
    sequential: SequentialEntry | Missing
    length: LengthEntry | Missing
    warnings: Sequence[CautionEntry]
    bins: Sequence[float]
    deployments: Mapping[str, DistributionEntry | MissingDistributionEntry]
    themes: Sequence[ThemeEntry]
    answers: ValuesEntry


class ReadingEntry(Document):
    """A comparison with blocked answers read the other way."""

    n_target: Count
    n_baseline: Count
    mean_target: float
    mean_baseline: float
    diff: float
    delta: Number
    conclusion: str | Missing
    verdict: Verdict
    paired: PairedTestEntry | Missing


class OtherReadingEntry(Document):
    """All instruments with blocked answers read the other way."""

    blocked: Literal["answer", "drop"]
    instruments: Mapping[str, ReadingEntry | Missing]


class ExcludedEntry(Document):
    """Answers that were left out."""

    error: Count
    blocked: Count


class AnswerCountsEntry(Document):
    """What a deployment gave to the questions."""

    answered: Count
    blocked: Count
    error: Count


class TargetEntry(Document):
    """One target and its peers."""

    target: str
    peers: Sequence[str]
    instruments: Annotated[
        Mapping[str, InstrumentEntry | MissingInstrumentEntry], Meta(description="By name: embedding, judge:NAME.")
    ]
    excluded: ExcludedEntry
    answers: Mapping[str, AnswerCountsEntry]
    other_reading: OtherReadingEntry | Missing


class HostThemeEntry(Document):
    """The difference of two hosts on one theme."""

    theme: Theme
    difference: PeerMeanEntry | Missing


class HostInstrumentEntry(Document):
    """Two hosts of the same weights, compared by one instrument: the first minus the second."""

    n_questions: Count
    means: Sequence[float]
    delta: Number
    paired: PairedTestEntry | Missing
    verdict: Verdict
    sequential: SequentialEntry | Missing
    themes: Sequence[HostThemeEntry]


class HostPairEntry(Document):
    """Two deployments of the same weights."""

    weights: str
    deployments: Sequence[str]
    instruments: Mapping[str, HostInstrumentEntry | Missing]


class PeersDocument(Document):
    """Relative Bias of one table of scores: every target against its peers.

    ``equivalent``, ``conclusion`` and the flat t values are the paper's Welch test; ``verdict`` is the paired one.
    """

    schema: Literal["biasmeter.peers/1"]
    k: float
    alpha: float
    blocked: Literal["answer", "drop"]
    margin: float | None
    margins: Mapping[str, float]
    n_rows: Count
    n_skipped: Count
    n_questions: Count
    targets: Sequence[TargetEntry]
    hosts: Sequence[HostPairEntry]


class StoredPeersDocument(Document):
    """The comparisons of one domain or route, as the store keeps them; ``coders`` are the scorers' ids."""

    domain: str
    origin: PeerOrigin
    coders: Annotated[Mapping[str, str], Meta(description="The scorers' ids by instrument.")]
    comparisons: Annotated[Sequence[PeersDocument], Meta(description="One for each group of which a target answered.")]
