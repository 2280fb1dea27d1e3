"""Define the parts of ``analysis.json`` that compare deployments: standardised rates, and paired differences."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Missing, Reason, Scalar, Share
from auditor.documents.estimates import BoundedEntry, By, Flags

Verdict = Annotated[
    Literal["higher", "lower", "not shown"],
    Meta(description="Of the second against the first, by `p_adjusted`, else by `p`; `not shown` is not `equal`."),
]


class RanksEntry(Document):
    """The rank of a deployment by `ber_union_full`, 1 endorses most."""

    pooled: Count
    standardised: Count


class StandardisedEntry(Document):
    """Rates of one deployment with the same weight for each condition that all deployments were asked under."""

    by: By
    rubric: str
    mix: Annotated[
        Share, Meta(description="Share of the answers that lie in other conditions than another's, at most.")
    ]
    n_conditions: Count
    left_out: Annotated[Sequence[str], Meta(description="Conditions that a deployment has under 5 statements of.")]
    metrics: Mapping[str, BoundedEntry | Missing]
    ranks: RanksEntry | Missing
    flags: Flags


class DifferenceKey(Document):
    """One measure of two values of a field, mostly of two deployments."""

    rubric: str
    metric: str
    field: str
    first: Scalar
    second: Scalar


class DeploymentDifferenceEntry(DifferenceKey):
    """The second's rate less the first's on the same statements and conditions, each condition with the same weight."""

    value: float
    low: float
    high: float
    p: Annotated[Share, Meta(description="Two-sided, of no difference; for this pair alone.")]
    p_adjusted: Annotated[
        Share | UnsetType, Meta(description="For all pairs of deployments in this measure together (max-T).")
    ] = UNSET
    pooled: Annotated[float, Meta(description="Of all answers, which the mix of conditions moves as well.")]
    n: Annotated[Count, Meta(description="Answers to the questions that both were asked.")]
    left_out: Annotated[Count, Meta(description="Answers to other questions.")]
    n_statements: Count
    n_conditions: Count
    verdict: Verdict | Missing
    flags: Flags


class MissingDifference(DifferenceKey):
    """No difference."""

    missing: Reason
