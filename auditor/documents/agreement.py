"""Define how far judges, panels and people agree on labels."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Interval, Missing, Reason, Share
from auditor.documents.estimates import BoundedEntry

#: Who labelled the same layer as a person.
OtherKind = Literal["rule", "panel", "judge", "reviewer"]


class _JudgeMeanKey(Document):
    """One judge among the others."""

    judge: str
    layer: str
    deployment: Annotated[str | None, Meta(description="null: all deployments.")]
    n: Count


class _KappaKey(_JudgeMeanKey):
    """Two judges that labelled the same layer of the same rows."""

    other: str


class KappaEntry(_KappaKey):
    """Cohen's kappa of two judges."""

    value: float


class MissingKappa(_KappaKey):
    """Two judges whose agreement cannot be had."""

    missing: Reason


class JudgeMeanEntry(_JudgeMeanKey):
    """A judge's mean kappa with the others."""

    value: float


class MissingJudgeMean(_JudgeMeanKey):
    """A judge without a mean kappa."""

    missing: Reason


class PanelEntry(Document):
    """How many independent judges a panel is worth."""

    layer: str
    deployment: Annotated[str | None, Meta(description="null: all deployments.")]
    n_judges: Count
    rho: Annotated[float, Meta(description="The mean kappa of its pairs.")]
    n_eff: float


class MissingPanel(Document):
    """A panel whose worth cannot be had."""

    layer: str
    deployment: Annotated[str | None, Meta(description="null: all deployments.")]
    n_judges: Count | UnsetType = UNSET
    missing: Reason


class PanelSwapEntry(Document):
    """What changes where one judge is left out."""

    rubric: str
    without: str
    metric: str
    rates: Annotated[Mapping[str, Interval], Meta(description="With the whole panel, and without the judge.")]
    rho: float | Missing
    rank_shift: float
    change: float
    deployment: str
    same_ranking: bool
    left_out: Sequence[str]


class PanelSubstitutionEntry(PanelSwapEntry):
    """What changes where another judge takes the seat of one, in panels of one judge fewer than the rows have.

    ``rates`` are with ``without`` in the seat, and with ``by``.
    """

    by: Annotated[str, Meta(description="The judge who takes the seat.")]
    seats: Annotated[Count, Meta(description="Judges of each of the two panels.")]


class MissingPanelSwap(Document):
    """A judge who cannot be left out."""

    rubric: str
    without: str | UnsetType = UNSET
    metric: str | UnsetType = UNSET
    missing: Reason


class ReviewKappaKey(Document):
    """A person and who else labelled the same layer of the same rows."""

    reviewer: str
    other: str
    kind: Annotated[OtherKind, Meta(description="What other is.")]
    layer: str
    deployment: Annotated[str | None, Meta(description="null: all deployments.")]
    n: Count
    n_statements: Count


class ReviewKappaEntry(ReviewKappaKey):
    """How far a person's labels agree with another's."""

    value: float
    low: float
    high: float


class MissingReviewKappa(ReviewKappaKey):
    """An agreement with a person that cannot be had."""

    missing: Reason


class AlphaKey(Document):
    """Labels of one layer by people who saw the same of each answer."""

    layer: str
    view: Annotated[str, Meta(description="split: the part that the layer's coder reads; whole: the whole answer.")]
    raters: Sequence[str]
    n: Annotated[Count, Meta(description="Rows with two labels or more.")]
    n_labels: Count
    n_statements: Count


class AlphaEntry(AlphaKey):
    """Krippendorff's alpha for nominal labels, with a 95 % interval from a bootstrap over statements."""

    value: float
    low: float
    high: float


class MissingAlpha(AlphaKey):
    """An alpha that cannot be had."""

    missing: Reason


class ViewKey(Document):
    """Rows of one layer with a label of both views."""

    layer: str
    n: Count
    n_statements: Count


class ViewComparisonEntry(ViewKey):
    """Whether people label the split text as they label the whole answer."""

    same: Annotated[Share, Meta(description="Rows with the same label in both views.")]
    kappa: Annotated[BoundedEntry | Missing, Meta(description="Cohen's kappa of the two views.")]
    split: Annotated[Share, Meta(description="Rate of endorsement by the labels of the split text.")]
    whole: Annotated[Share, Meta(description="The same by the labels of the whole answers.")]
    shift: Annotated[BoundedEntry, Meta(description="whole - split, with a 95 % interval.")]


class MissingViewComparison(ViewKey):
    """Views that cannot be compared."""

    missing: Reason
