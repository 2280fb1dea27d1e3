"""Define what compares conditions and deployments: variance shares, ranges, mitigation, token costs, rankings."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Interval, Missing, Reason, Share
from auditor.documents.estimates import BoundedEntry, By, EstimateEntry, Flags
from auditor.domain.condition import Factor

MitigationVerdict = Literal["co-reducing", "layer-rerouting", "mixed", "no reduction", "amplifying"]
#: One factor at a time, crossed factors, or the choice of deployment.
Design = Literal["oat", "factorial", "deployment"]
Weighting = Literal["responses", "equal"]


class VarianceShareKey(Document):
    """What shares of variance are of."""

    by: By
    rubric: str
    outcome: str
    base: Literal["full"]
    design: Design
    weights: Weighting | UnsetType = UNSET
    flags: Flags


class VarianceShareEntry(VarianceShareKey):
    """Shares of variance of the prompt's factors, or of the choice of deployment."""

    n: Count
    effects: Annotated[Mapping[str, float | Missing], Meta(description="By factor, or pair of factors task:sentiment.")]
    intervals: Annotated[
        Mapping[str, Interval],
        Meta(description="95 %, aware that the share of noise is above 0; over templates too, where `fixed` is given."),
    ]
    fixed: (
        Annotated[Mapping[str, Interval], Meta(description="The intervals for these templates alone.")] | UnsetType
    ) = UNSET
    imbalance: float | UnsetType = UNSET


class MissingVarianceShare(VarianceShareKey):
    """Shares of variance that cannot be had."""

    missing: Reason


class LevelRange(Document):
    """The range of a rate over levels."""

    min: float
    max: float
    min_at: str
    max_at: str
    range: float
    range_corrected: float
    low: Annotated[float, Meta(description="95 %; over statements, and over templates too where `fixed` is given.")]
    high: float
    fixed: Annotated[Interval, Meta(description="The interval for these templates alone.")] | UnsetType = UNSET
    n_statements: Count
    left_out: Sequence[str]
    flags: Flags


class RangeEntry(LevelRange):
    """The range of a measure over conditions."""

    by: By
    rubric: str
    metric: str
    over: str


class MissingRange(Document):
    """A range that cannot be had."""

    by: By
    rubric: str
    metric: str
    over: str
    missing: Reason


class FactorShare(BoundedEntry):
    """A factor's share of the variance; the interval is over templates too, where `fixed` is given."""

    fixed: Annotated[Interval, Meta(description="The interval for these templates alone.")] | UnsetType = UNSET


class FactorEntry(Document):
    """What one factor of the prompt does to one rate."""

    rubric: str
    factor: Factor
    outcome: str
    base: str
    n: Count
    flags: Flags
    eta_squared: FactorShare | Missing
    range: LevelRange | Missing


class EffectEntry(Document):
    """Changes of the rates against the baseline, and DNI at both; eligible base."""

    sel: BoundedEntry
    elab: BoundedEntry
    ir: BoundedEntry
    dni_before: BoundedEntry
    dni_after: BoundedEntry


class SelectionTestEntry(Document):
    """BER_sel over all responses with a selection: level less baseline; p, low and high from max-T over all levels."""

    difference: float
    low: float
    high: float
    p: float
    cohen_d: float | Missing
    cohen_h: float
    p_tukey: float | UnsetType = UNSET


class ChangedRates(Document):
    """What one way of asking does to the rates, against another one, and what follows."""

    n_statements: Count
    effect: EffectEntry | Missing
    published: Annotated[MitigationVerdict | Missing, Meta(description="By the paper's rule, from point values.")]
    verdict: Annotated[MitigationVerdict | Missing, Meta(description="By intervals that hold together.")]
    flags: Flags


class MitigationLevel(ChangedRates):
    """One level of a factor against the baseline; the intervals of all levels hold together."""

    level: str
    selection: SelectionTestEntry | Missing


class MitigationEntry(Document):
    """Whether the levels of one factor lower bias, on both layers or on one."""

    rubric: str
    by: By
    factor: Factor
    baseline: str
    levels: Sequence[MitigationLevel]


class MissingMitigation(Document):
    """A factor without a baseline to compare its levels with."""

    rubric: str
    by: By
    factor: Factor
    levels: Sequence[MitigationLevel]
    missing: Reason


class TradeoffOption(Document):
    """One condition by its rate and its completion tokens."""

    name: str
    by: By
    rate: float
    reduction: float
    tokens: float
    cost: float
    on_frontier: bool
    frontier_share: Share
    dni: EstimateEntry | Missing


class TradeoffRecipe(Document):
    """The condition for one use."""

    use: Literal["max_reduction", "balanced", "cost_constrained"]
    name: str
    support: Share


class TradeoffEntry(Document):
    """A rate against completion tokens, by condition."""

    rubric: str
    by: By
    outcome: str
    deployments: Sequence[str]
    options: Sequence[TradeoffOption]
    recipes: Sequence[TradeoffRecipe]
    n_statements: Count
    left_out: Sequence[str]


class MissingTradeoff(Document):
    """A rate that cannot be set against tokens."""

    rubric: str
    by: By
    outcome: str
    missing: Reason


class InteractionEntry(Document):
    """One task under one tone, over the crossed design's other factors."""

    rubric: str
    task: str
    sentiment: str
    n: Count
    n_deployments: Count
    ber_sel_full: EstimateEntry | Missing
    mean: Annotated[float | Missing, Meta(description="Of the deployments' rates.")]
    sd: float | Missing


class RankEntry(Document):
    """An observed rank and the bootstrap's 95 % range."""

    rank: Count
    low: Count
    high: Count


class AgreementKey(Document):
    """What deployments are ranked by."""

    by: By
    rubric: str
    metrics: Sequence[str]
    deployments: Sequence[str]


class AgreementEntry(AgreementKey):
    """How far two rankings of the deployments agree."""

    rho: float
    p: float
    p_method: str
    loo_low: Annotated[float, Meta(description="Without one deployment, whichever: the smallest rho.")] | UnsetType = (
        UNSET
    )
    loo_high: float | UnsetType = UNSET
    ranks: Annotated[Mapping[str, Mapping[str, RankEntry]], Meta(description="By measure and deployment.")]


class MissingAgreement(AgreementKey):
    """Rankings that cannot be compared."""

    missing: Reason


class RankShareEntry(Document):
    """One deployment's ranks over the conditions."""

    best: Count
    worst: Count
    shares: Annotated[Sequence[Share], Meta(description="By rank: the share of the conditions.")]
    resampled: Annotated[Sequence[Share], Meta(description="The same with statements resampled.")]


class ConditionRankEntry(Document):
    """Ranks of the deployments from condition to condition."""

    rubric: str
    metric: str
    ranks: Annotated[Mapping[str, RankShareEntry], Meta(description="By deployment.")]
    concordance: float | Missing
    conditions: Sequence[str]
    left_out: Sequence[str]
    flags: Flags


class MissingConditionRank(Document):
    """Ranks over conditions that cannot be had."""

    rubric: str
    metric: str
    missing: Reason


class QeFoldEntry(Document):
    """How far measures and rankings by condition rest on counting qualified endorsement as endorsement."""

    rubric: str
    change: Annotated[float, Meta(description="The largest change of IR.")]
    condition: str
    deployment: str
    robust: bool
    rho: Annotated[Mapping[str, float | Missing], Meta(description="Of the rankings with and without it, by measure.")]
    left_out: Sequence[str]
    flags: Flags


class VendorEntry(Document):
    """Measures without the deployments of one vendor."""

    rubric: str
    vendor: str
    n_deployments: Annotated[Count, Meta(description="Deployments that are left.")]
    pooled: Annotated[Mapping[str, float | Missing], Meta(description="By measure.")]
    unweighted: Annotated[Mapping[str, float | Missing], Meta(description="By measure; deployments count alike.")]
    rho: float | Missing


class MissingOfRubric(Document):
    """A result for one rubric that cannot be had."""

    rubric: str
    missing: Reason
