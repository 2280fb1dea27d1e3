"""Define estimates and groups of rows, as the analysis and the comparison of formats write them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Interval, Missing, Scalar, Share
from auditor.domain.condition import Factor
from auditor.domain.estimate import Base, Corrected, Estimate, Insufficient, IntervalMethod

#: Flags that say how far a number can be trusted.
Flags = Sequence[str]
#: Of responses with different weights.
EffectiveNumber = Annotated[
    float,
    Meta(
        ge=0,
        description="Where responses were captured with different probabilities: the effective number of responses "
        "(Kish).",
    ),
]


class BoundedEntry(Document):
    """A value with an interval that holds together with the others of its table."""

    value: float
    low: float
    high: float


class FlaggedEntry(BoundedEntry):
    """A value with an interval, and with flags."""

    flags: Flags


class EstimateEntry(FlaggedEntry):
    """A share in [0, 1], or for dni a difference in [-1, 1]; 95 % interval, clustered by statement."""

    base: Base
    method: IntervalMethod
    n: Count
    n_statements: Count
    n_effective: EffectiveNumber | UnsetType = UNSET
    effective_statements: (
        Annotated[float, Meta(ge=0, description="The same for statements, or for who asked.")] | UnsetType
    ) = UNSET
    n_labelled: Annotated[Count, Meta(description="Of a corrected rate: rows with a person's label.")] | UnsetType = (
        UNSET
    )
    n_labelled_statements: Count | UnsetType = UNSET
    power: Annotated[Share, Meta(description="How far the coder was followed.")] | UnsetType = UNSET


#: Estimates by measure.
Metrics = Annotated[
    Mapping[str, EstimateEntry | Missing],
    Meta(
        description="By measure: ber_sel, ber_elab, ber_cor, ber_union, oed, ued, ir, dni, ir_over_union on the "
        "eligible base; ber_sel_full, ber_elab_full, ber_union_full on the full base; with people's "
        "labels also ..._corrected: those of the elaboration, and with labels of both layers ber_cor, ber_union, oed, "
        "ued, ir, dni, ir_over_union."
    ),
]
#: What the rows of an entry have in common.
By = Annotated[
    Mapping[str, Scalar], Meta(description="What the entry's rows have in common, by field; empty: all rows.")
]


def estimate_entry(estimate: Estimate | Insufficient) -> EstimateEntry | Missing:
    """Return the entry of an estimate."""
    if isinstance(estimate, Insufficient):
        return Missing(missing=estimate.reason)
    corrected = estimate if isinstance(estimate, Corrected) else None
    return EstimateEntry(
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        base=estimate.base,
        method=estimate.method,
        n=estimate.n,
        n_statements=estimate.n_statements,
        flags=estimate.flags,
        n_effective=UNSET if estimate.n_effective is None else estimate.n_effective,
        effective_statements=UNSET if estimate.effective_statements is None else estimate.effective_statements,
        n_labelled=corrected.n_labelled if corrected else UNSET,
        n_labelled_statements=corrected.n_labelled_statements if corrected else UNSET,
        power=corrected.power if corrected else UNSET,
    )


class CoverageEntry(Document):
    """Shares of all rows: both layers coded; a layer absent by design; a layer failed. They sum to 1."""

    eligible: Share
    structural: Share
    failed: Share


class CountsEntry(Document):
    """Eligible rows: both layers endorse, the selection alone, the elaboration alone, neither."""

    n11: Count
    n10: Count
    n01: Count
    n00: Count


class AbstainEntry(Document):
    """Rows without a label, by layer and reason."""

    sel: Mapping[str, Count]
    elab: Mapping[str, Count]


class FoldEntry(Document):
    """The inconsistency rate with QE as endorsement, and as no endorsement."""

    ir: float
    ir_folded: float
    robust: bool


class MisreadingEntry(Document):
    """How many responses must have been misread to explain a measure, if the layers of every response truly agree.

    Shares of the eligible responses. No error of the readers that is smaller explains the measure.
    """

    value: Annotated[Share, Meta(description="Responses with one misread layer that suffice for the value.")]
    bound: Annotated[
        Share, Meta(description="The same for the bound of the interval that is next to 0; 0 if the interval holds 0.")
    ]
    symmetric_elab: Annotated[
        Share | Missing,
        Meta(
            description="Share of texts misread that gives the value, if endorsing and other texts are misread alike."
        ),
    ]
    symmetric_sel: Annotated[Share | Missing, Meta(description="The same for selections.")]


class RowsEntry(Document):
    """What is estimated of any rows."""

    by: By
    rubric: str
    n: Count
    n_eligible: Count
    n_statements: Count
    n_effective: EffectiveNumber | UnsetType = UNSET
    coverage: CoverageEntry
    metrics: Metrics
    sign_flip: bool | Missing
    flags: Flags


class GroupEntry(RowsEntry):
    """All that is estimated of one group of rows."""

    n_selection: Count
    n_elaboration: Count
    joint: Annotated[Mapping[str, Count], Meta(description="Rows by pair of labels: selection|elaboration.")]
    counts: CountsEntry
    abstain: AbstainEntry
    bounds: Annotated[
        Mapping[str, Interval],
        Meta(description="Each measure with every failed row read as no endorsement, and as endorsement."),
    ]
    cancellation_trap: Literal["excluded", "possible", "confirmed"] | Missing
    qe_fold: FoldEntry | Missing
    misreading: Annotated[
        Mapping[str, MisreadingEntry | Missing],
        Meta(description="Of ir and dni: how large an error of the readers would explain them."),
    ]


class ConditionEntry(RowsEntry):
    """A group of rows that were asked under one condition."""


class LevelEntry(Document):
    """One level of a factor, the other factors at their baseline."""

    rubric: str
    factor: Factor
    level: str
    n_deployments: Count
    n: Count
    coverage: CoverageEntry
    metrics: Annotated[Metrics, Meta(description="The mean of the deployments.")]
    pooled: Annotated[Metrics, Meta(description="All responses together.")]


class MeanEntry(Document):
    """Measures in which every deployment counts alike; pooled values are those of the group with an empty by."""

    rubric: str
    n_deployments: Count
    metrics: Metrics
