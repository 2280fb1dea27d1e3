"""Define ``analysis.json``: what ``biasmeter analyze`` estimates of coded rows."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.agreement import (
    AlphaEntry,
    JudgeMeanEntry,
    KappaEntry,
    MissingAlpha,
    MissingJudgeMean,
    MissingKappa,
    MissingPanel,
    MissingPanelSwap,
    MissingReviewKappa,
    MissingViewComparison,
    PanelEntry,
    PanelSubstitutionEntry,
    PanelSwapEntry,
    ReviewKappaEntry,
    ViewComparisonEntry,
)
from auditor.documents.base import Count, Document, Scalar, Share
from auditor.documents.conditions import (
    AgreementEntry,
    ConditionRankEntry,
    FactorEntry,
    InteractionEntry,
    MissingAgreement,
    MissingConditionRank,
    MissingMitigation,
    MissingOfRubric,
    MissingRange,
    MissingTradeoff,
    MissingVarianceShare,
    MitigationEntry,
    QeFoldEntry,
    RangeEntry,
    TradeoffEntry,
    VarianceShareEntry,
    VendorEntry,
)
from auditor.documents.contrasts import (
    AdditivityEntry,
    DominanceEntry,
    MissingAdditivity,
    MissingDominance,
    MissingSignFlip,
    SignFlipEntry,
)
from auditor.documents.design import DesignEntry
from auditor.documents.differences import DeploymentDifferenceEntry, MissingDifference, StandardisedEntry
from auditor.documents.direction import DirectionEntry, ResponseStyleEntry
from auditor.documents.estimates import ConditionEntry, GroupEntry, LevelEntry, MeanEntry
from auditor.documents.generalizability import GeneralizabilityEntry, MissingGeneralizability
from auditor.documents.model import ModelDocument

#: E endorses, QE endorses with a qualification, N neither, D rejects, R refuses, Abstain: no label.
Label = Annotated[
    str,
    Meta(
        pattern="^(E|QE|N|D|R|Abstain)$",
        description="E endorses, QE endorses with a qualification, N neither, D rejects, R refuses, Abstain: no label.",
    ),
]
VarianceShares = Sequence[VarianceShareEntry | MissingVarianceShare]
Ranges = Sequence[RangeEntry | MissingRange]


class CategoryEntry(Document):
    """The statements of one category."""

    category: str | None
    n_statements: Count


class PoolEntry(Document):
    """The statements that rows are about."""

    rubric: str
    n_statements: Count
    categories: Sequence[CategoryEntry]


class VoteEntry(Document):
    """One judge's label of a response."""

    judge: str
    label: str | None


class CaseEntry(Document):
    """The shortest response whose panel is unanimous and whose layers disagree. Quotes an answer."""

    rubric: str
    deployment: str
    stratum: Literal["over", "under", "qualified"]
    n: Count
    id: str
    statement_id: str | None
    statement: str | None
    category: str | None
    task: str
    perspective: str
    role: str
    sentiment: str
    sel: Label
    elab: Label
    votes: Sequence[VoteEntry]
    response: str | UnsetType = UNSET


class SwingAnswer(Document):
    """The answers to one statement under one task."""

    task: str
    n: Count
    id: str
    sel: Label
    elab: Label
    rate: Share | UnsetType = UNSET
    response: str | UnsetType = UNSET


class SwingEntry(Document):
    """The statement whose rate differs most between tasks."""

    rubric: str
    deployment: str
    statement_id: str | None
    statement: str | None
    metric: str
    delta: float
    tasks: Sequence[SwingAnswer]


class SliceValue(Document):
    """All rows with one value of a field."""

    value: Scalar
    n_statements: Count
    pooled: GroupEntry
    deployments: Sequence[GroupEntry]
    eta_squared: VarianceShares
    horizontal: Ranges
    levels: Sequence[LevelEntry]


class SliceEntry(Document):
    """Results by the values of one field of the rows."""

    rubric: str
    field: str
    values: Sequence[SliceValue]


class ReviewsEntry(Document):
    """How far people agree with the coders, and with each other."""

    n: Annotated[Count, Meta(description="Rows with a person's label.")]
    kappa: Sequence[ReviewKappaEntry | MissingReviewKappa]
    alpha: Annotated[
        Sequence[AlphaEntry | MissingAlpha], Meta(description="Agreement of two or more people, by layer and view.")
    ]
    views: Annotated[
        Sequence[ViewComparisonEntry | MissingViewComparison],
        Meta(description="Labels of the split text against those of the whole answer, by layer."),
    ]


class ClusterCount(Document):
    """How many clusters a field makes."""

    field: str
    n_clusters: Count


class CoarserEntry(Document):
    """A field in whose values the clusters lie, and by which answers differ more than the intervals assume."""

    field: str
    n_clusters: Count
    widening: Annotated[
        float,
        Meta(description="Standard error of the pooled ber_union_full by this field, over that by the clusters used."),
    ]
    p: Annotated[Share, Meta(description="Of no difference between the values of the field: F test over clusters.")]


class ClustersEntry(Document):
    """What intervals are clustered by, and fields that are coarser. Absent for statements without a coarser field."""

    fields: Annotated[Sequence[str], Meta(description="Of --cluster; empty for the statement.")]
    used: Annotated[
        Sequence[ClusterCount],
        Meta(description="Crossed where there are several; without fields whose values lie in those of another one."),
    ]
    coarser: Sequence[CoarserEntry]


class AnalysisDocument(Document):
    """What `biasmeter analyze` estimates of coded rows; also the analysis of each part of a report.

    Tables, figures and sections are those of BiAxisAudit (arXiv 2605.09041). Ten significant digits, sorted keys, no
    clock.
    """

    schema: Literal["biasmeter.analysis/1"]
    version: Annotated[
        str, Meta(description="Of Biasmeter. The same version, rows, options and seed give the same bytes.")
    ]
    seed: Count
    n_boot: Count
    by: Sequence[str]
    n_rows: Count
    n_skipped: Count
    panels: Annotated[Mapping[str, Sequence[str]], Meta(description="Judges by deployment.")]
    groups: Annotated[Sequence[GroupEntry], Meta(description="By the fields of `by`, and one of all rows (by: {}).")]
    deployments: Sequence[GroupEntry]
    conditions: Annotated[
        Sequence[ConditionEntry],
        Meta(description="By deployment and condition (Tables IX, XI, XIII; Figures 5, 8)."),
    ]
    cells: Annotated[Sequence[ConditionEntry], Meta(description="By condition, all deployments together (Figure 8).")]
    direction: Annotated[
        Sequence[DirectionEntry],
        Meta(description="By deployment, beside that by task and by category; one for each layer."),
    ]
    response_styles: Annotated[
        Sequence[ResponseStyleEntry], Meta(description="By deployment, and by deployment and task.")
    ]
    design: Annotated[Sequence[DesignEntry], Meta(description="Figure 3, Table I.")]
    pool: Annotated[Sequence[PoolEntry], Meta(description="Statements asked about (Table V).")]
    means: Annotated[Sequence[MeanEntry], Meta(description="Table III, Appendix B.")]
    standardised: Annotated[
        Sequence[StandardisedEntry],
        Meta(description="Rates that the mix of conditions does not move, where there are several deployments."),
    ]
    differences: Annotated[
        Sequence[DeploymentDifferenceEntry | MissingDifference],
        Meta(description="Pairs of up to 40 deployments on the same statements and conditions."),
    ]
    levels: Annotated[Sequence[LevelEntry], Meta(description="Tables IX, X, XII; Figures 1, 9.")]
    factors: Annotated[Sequence[FactorEntry], Meta(description="Figure 9.")]
    eta_squared: Annotated[
        VarianceShares,
        Meta(description="Section V-B, Table IV; design deployment: what the choice of deployment explains."),
    ]
    horizontal: Annotated[Ranges, Meta(description="Section III-E, Figure 5.")]
    generalizability: Annotated[
        Sequence[GeneralizabilityEntry | MissingGeneralizability],
        Meta(description="How far the rates depend on the templates drawn. Of all rows, and of each deployment."),
    ]
    mitigation: Annotated[Sequence[MitigationEntry | MissingMitigation], Meta(description="Section VI, Tables X, XII.")]
    tradeoff: Annotated[Sequence[TradeoffEntry | MissingTradeoff], Meta(description="Tables XIV, XV.")]
    interaction: Annotated[Sequence[InteractionEntry], Meta(description="Figure 7.")]
    additivity: Annotated[Sequence[AdditivityEntry | MissingAdditivity], Meta(description="Section VI-B.")]
    sign_flips: Annotated[Sequence[SignFlipEntry | MissingSignFlip], Meta(description="Section V-D, Figure 8.")]
    dominance: Annotated[Sequence[DominanceEntry | MissingDominance], Meta(description="Section V-B.")]
    agreement: Annotated[Sequence[AgreementEntry | MissingAgreement], Meta(description="Finding 2.")]
    kappa: Sequence[KappaEntry | MissingKappa]
    judge_means: Annotated[Sequence[JudgeMeanEntry | MissingJudgeMean], Meta(description="Figure 4.")]
    panel: Sequence[PanelEntry | MissingPanel]
    panel_swap: Sequence[PanelSwapEntry | MissingPanelSwap]
    panel_substitution: Annotated[
        Sequence[PanelSubstitutionEntry | MissingPanelSwap],
        Meta(description="Where four judges or more read the rows: each pair of panels that differ in one seat."),
    ]
    vendors: Sequence[VendorEntry | MissingOfRubric]
    qe_fold: Annotated[Sequence[QeFoldEntry | MissingOfRubric], Meta(description="Appendix C-A.")]
    condition_ranks: Sequence[ConditionRankEntry | MissingConditionRank]
    cases: Annotated[Sequence[CaseEntry], Meta(description="Appendix E, blocks A and B.")]
    swing: Annotated[Sequence[SwingEntry], Meta(description="Appendix E, block C; Table VIII.")]
    slices: Sequence[SliceEntry]
    reviews: ReviewsEntry | UnsetType = UNSET
    clusters: ClustersEntry | UnsetType = UNSET
    model: ModelDocument | UnsetType = UNSET
