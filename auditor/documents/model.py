"""Define ``model.json``: a logistic regression of coded rows, its coefficients and what they mean in points."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from auditor.documents.base import Count, Document, Reason, Share
from auditor.documents.estimates import Flags


class ModelMethodEntry(Document):
    """How the model was fitted."""

    model: Literal["binomial GLM, logit link"]
    covariance: Literal["CR2"]
    intervals: Annotated[
        Literal["t; differences of one term hold together (max-T)"], Meta(description="Nominal level 95 %.")
    ]
    is_separated: Annotated[
        bool, Meta(description="A coefficient is infinite: a little was added to every condition to find the others.")
    ]


class ModelClustersEntry(Document):
    """What the errors are clustered by."""

    field: str
    n: Count


class CoefficientKey(Document):
    """The place of a coefficient: a term and its levels."""

    term: str
    level: str


class CoefficientEntry(CoefficientKey):
    """A log odds ratio against the reference levels; of the intercept the log odds there."""

    value: float
    se: float
    df: float
    low: float
    high: float
    p: Share


class MissingCoefficient(CoefficientKey):
    """No coefficient."""

    missing: Reason


class MarginalKey(Document):
    """A level of a field against the field's reference level."""

    term: str
    level: str
    reference: str


class MarginalEntry(MarginalKey):
    """The difference of two rates, both over the same mix of all other fields: that of all answers."""

    value: Annotated[float, Meta(description="In shares: .05 is 5 points.")]
    low: float
    high: float
    p: Annotated[Share, Meta(description="For this difference alone.")]
    p_adjusted: Annotated[Share, Meta(description="For all differences of the term together.")]
    rate: Share
    reference_rate: Share
    pooled: Annotated[float, Meta(description="Difference of the pooled rates, which the mix moves as well.")]
    n: Annotated[Count, Meta(description="Answers with the level.")]
    support: Annotated[Share, Meta(description="Share of the mix for which both rates are known.")]


class MissingMarginal(MarginalKey):
    """No difference."""

    missing: Reason


class ModelDocument(Document):
    """What `biasmeter analyze --model` and `biasmeter.regress` estimate."""

    schema: Literal["biasmeter.model/1"]
    version: str
    formula: Annotated[str, Meta(description="As it was fitted, with the parts of interactions.")]
    metric: Annotated[str, Meta(description="The measure that is explained.")]
    rubric: Literal["statement"]
    seed: Count
    n: Annotated[Count, Meta(description="Answers.")]
    n_events: Annotated[Count, Meta(description="Answers that endorse.")]
    n_cells: Annotated[Count, Meta(description="Different combinations of the levels.")]
    clusters: ModelClustersEntry
    method: ModelMethodEntry
    coefficients: Sequence[CoefficientEntry | MissingCoefficient]
    differences: Sequence[MarginalEntry | MissingMarginal]
    flags: Flags
