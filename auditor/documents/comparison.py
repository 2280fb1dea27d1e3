"""Define ``comparison.json``: stored exchanges asked in several ways, compared in pairs.

``biasmeter replay`` and ``biasmeter compare`` write it. One way of asking is a side. A parent is a stored exchange that
is compared; the sides hold the answers to it.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Interval, Missing, Share
from auditor.documents.conditions import ChangedRates
from auditor.documents.estimates import CoverageEntry, EstimateEntry, FlaggedEntry, Flags
from auditor.domain.estimate import Base, IntervalMethod

NotNegative = Annotated[float, Meta(ge=0)]
Reasons = Annotated[Mapping[str, Count], Meta(description="Counts by reason.")]


class CoderEntry(Document):
    """Who read the answers."""

    rubric: str
    selection: str
    judges: Sequence[str]


class CallsEntry(Document):
    """The calls of a replay; none where stored traffic was compared as it is."""

    planned: Count
    answered: Count
    failed: Reasons


class GroupKeyEntry(Document):
    """What the parents of a group have in common."""

    deployment: str
    origin: Annotated[str, Meta(pattern="^(client|probe)$")]
    route: Annotated[str | None, Meta(description="Of client traffic.")]
    task: Annotated[str | None, Meta(description="Of probes: the task in which they were first asked.")]


class SupportEntry(Document):
    """The parents with an answer in every format: scores, exposure, factors and mitigation are over these."""

    parents: Count
    statements: Count
    parents_left_out: Count
    sides_left_out: Annotated[Mapping[str, str], Meta(description="The reason by side.")]


class TokenMeanEntry(Document):
    """The mean completion tokens of a side's answers, and how many answers say theirs."""

    mean: NotNegative
    n: Count


class ArmEntry(Document):
    """One way of asking, its answers and its scores."""

    side: str
    task: str | None
    changes: Annotated[
        Mapping[str, str], Meta(description="Level by factor, as far as it differs from that of the first side.")
    ]
    repeats: Annotated[bool, Meta(description="Whether it asked the same as the first side again.")]
    n: Annotated[Count, Meta(description="Parents that were asked this way.")]
    coverage: CoverageEntry | Missing
    missing: Annotated[Mapping[str, Count], Meta(description="Parents that were not asked this way, by reason.")]
    tokens: TokenMeanEntry | Missing
    selection_abstains: Share | Missing
    scores: Annotated[Mapping[str, EstimateEntry | Missing], Meta(description="By metric, over the group's support.")]


class RangeEndEntry(FlaggedEntry):
    """The lowest or highest score, the side that gave it, and an interval of the lowest or highest true score."""

    side: str
    flags: Annotated[Flags, Meta(description="Of this side's score.")]


class ScoreRangeEntry(Document):
    """The highest score less the lowest, with its interval."""

    value: float
    corrected: Annotated[float, Meta(ge=0, description="Less its bootstrap bias.")]
    low: Annotated[float, Meta(ge=0, description="0 where the data do not show that the sides differ.")]
    high: float


class RepetitionEntry(Document):
    """How far asking the same again moved the score."""

    difference: float
    reach: Annotated[float, Meta(ge=0, description="The bound of the difference that is farther from 0.")]
    beyond: Annotated[bool, Meta(description="Whether the lower bound of the range is above the reach.")]


class ExposureEntry(Document):
    """How far one score moves with the way of asking."""

    lowest: RangeEndEntry
    highest: RangeEndEntry
    range: ScoreRangeEntry
    n_statements: Count
    left_out: Annotated[Sequence[str], Meta(description="Sides with too few statements in the metric's base.")]
    flags: Flags
    repetition: RepetitionEntry | Missing


class FactorShareEntry(Document):
    """The share of a score's variance that a factor explains (eta squared)."""

    value: Share
    low: Share
    high: Share
    n: Count
    n_statements: Count
    sides: Sequence[str]


class PairedDifferenceEntry(Document):
    """The second answer less the first, on average over the pairs; 95 % interval, clustered by statement."""

    first: float
    second: float
    difference: float
    low: float
    high: float
    method: IntervalMethod
    n_pairs: Count
    n_statements: Count
    flags: Flags


class McNemarEntry(Document):
    """McNemar's exact test, which takes the pairs for independent."""

    gained: Count
    lost: Count
    p: Share


class ChangeEntry(PairedDifferenceEntry):
    """The difference of one metric between two sides, with its tests."""

    base: Base
    p_adjusted: Annotated[Share, Meta(description="Max-T over all comparisons of the group.")]
    cohen_h: Annotated[float, Meta(description="Second less first; not of DNI.")] | UnsetType = UNSET
    mcnemar: Annotated[McNemarEntry, Meta(description="Not of DNI.")] | UnsetType = UNSET


class FlipsEntry(Document):
    """How one layer's labels changed between two sides."""

    changed: Annotated[
        EstimateEntry | Missing, Meta(description="Share of pairs with two labels whose second label is another one.")
    ]
    effect: Annotated[
        PairedDifferenceEntry | Missing, Meta(description="Endorses the second time less the first, in [-1, 1].")
    ]
    labels: Annotated[
        Mapping[str, Count], Meta(description='"E>D": pairs that went from E to D; Abstain counts as a label.')
    ]


class LayerFlipsEntry(Document):
    """The changes of both layers' labels."""

    selection: FlipsEntry
    elaboration: FlipsEntry


class ArmPairEntry(Document):
    """Two sides, compared parent by parent."""

    first: str
    second: str
    n_pairs: Annotated[Count, Meta(description="Parents with an answer on both sides.")]
    n_statements: Count
    metrics: Annotated[Mapping[str, ChangeEntry | Missing], Meta(description="By metric.")]
    coverage: Annotated[
        PairedDifferenceEntry | Missing,
        Meta(description="Of the share coded on both layers, over the parents asked in both ways."),
    ]
    flips: LayerFlipsEntry


class TokensEntry(Document):
    """Mean completion tokens on two sides, over the parents for which both are known."""

    first: NotNegative
    second: NotNegative
    n: Count


class RemedyEntry(ChangedRates):
    """What another task or role does to both layers, against the first side, and what it costs.

    The intervals of all sides hold together.
    """

    side: str
    task: str | None
    tokens: TokensEntry | Missing


class ComparisonGroupEntry(Document):
    """Parents that may be compared: of one deployment and origin, first asked in one way."""

    by: GroupKeyEntry
    rubric: str
    claim: str | None
    parents: Count
    inclusion: Annotated[Interval, Meta(description="Smallest and largest probability with which a parent is here.")]
    statements: Count
    support: SupportEntry
    sides: Annotated[Sequence[ArmEntry], Meta(min_length=1)]
    exposure: Annotated[
        Mapping[str, ExposureEntry | Missing],
        Meta(description="By metric: how far its score moves with the way of asking."),
    ]
    factors: Annotated[
        Mapping[str, Mapping[str, FactorShareEntry | Missing]],
        Meta(description="By factor and metric, over the first side and those that change this factor only."),
    ]
    mitigation: Annotated[
        Sequence[RemedyEntry], Meta(description="Sides that change the task or the role, against the first side.")
    ]
    comparisons: Annotated[Count, Meta(description="The differences that p_adjusted is adjusted for.")]
    pairs: Sequence[ArmPairEntry]


class ComparisonDocument(Document):
    """A comparison of formats (`biasmeter replay`) or of stored traffic (`biasmeter compare`).

    The same answers give the same bytes.
    """

    schema: Literal["biasmeter.replay/1"]
    replay: str
    select: str
    by: (
        Annotated[str, Meta(description="Of stored traffic compared as it is: the field whose values are the sides.")]
        | UnsetType
    ) = UNSET
    formats: Sequence[str]
    to: Annotated[str | None, Meta(description="The deployment that was asked instead of the original one.")]
    seed: int
    coders: Mapping[str, CoderEntry]
    parents: Count
    left_out: Annotated[Mapping[str, Count], Meta(description="Selected exchanges not asked again, by reason.")]
    calls: CallsEntry
    groups: Sequence[ComparisonGroupEntry]
