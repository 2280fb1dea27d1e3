"""Define what sums up the crossed design and the categories: additivity, flips of DNI, dominance of one factor."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from auditor.documents.base import Count, Document, Missing, Reason
from auditor.documents.estimates import BoundedEntry, By, Flags
from auditor.domain.condition import Factor


class AdditivityContrast(Document):
    """Two factors changed together, against the sum of what each changes alone; the other factors at their baseline.

    Changes of the rate against the reference, in [-2, 2]. The intervals of ``joint`` hold together for all contrasts
    of the entry; so do those of ``additive`` and of ``departure``.
    """

    factors: Annotated[Sequence[Factor], Meta(description="Two.")]
    levels: Annotated[Sequence[str], Meta(description="Of these factors.")]
    joint: Annotated[BoundedEntry, Meta(description="Change of the rate where both are changed.")]
    additive: Annotated[BoundedEntry, Meta(description="Sum of the changes where one is changed and the other not.")]
    departure: Annotated[BoundedEntry, Meta(description="joint - additive; 0 where the two changes add up.")]
    n: Annotated[Count, Meta(description="Responses of the four conditions.")]
    n_statements: Annotated[Count, Meta(description="Of the condition that has fewest.")]
    flags: Flags


class AdditivityEntry(Document):
    """Whether the changes of two factors add up, for each pair of levels that was asked in all four combinations."""

    rubric: str
    by: By
    outcome: str
    reference: Annotated[
        Sequence[str],
        Meta(description="The condition (task, perspective, role, sentiment) that changes are counted from."),
    ]
    contrasts: Sequence[AdditivityContrast]


class MissingAdditivity(Document):
    """Why nothing can be said on whether changes add up."""

    rubric: str
    by: By
    outcome: str
    missing: Reason


class SignFlipEntry(Document):
    """In how many conditions DNI has another sign than at the baseline condition."""

    rubric: str
    by: By
    n_conditions: Annotated[
        Count,
        Meta(description="With the baseline: of the crossed design where there is one, else all that were asked."),
    ]
    n_compared: Annotated[Count, Meta(description="Of these, those with a DNI, without the baseline.")]
    n_opposite: Annotated[
        Count, Meta(description="Of those compared: the value has the opposite sign, as the paper counts.")
    ]
    n_tested: Annotated[Count, Meta(description="Of those compared: with enough statements for a verdict.")]
    n_flipped: Annotated[
        Count, Meta(description="Of those tested: the sign is opposite, and no interval of the two contains 0.")
    ]
    baseline: Annotated[BoundedEntry, Meta(description="DNI at the baseline.")]
    lowest: Annotated[float, Meta(description="The lowest DNI of all conditions.")]
    highest: float


class MissingSignFlip(Document):
    """Why flips of DNI cannot be counted."""

    rubric: str
    by: By
    missing: Reason


class CategoryDominance(Document):
    """The share of variance of one factor in one category, beside the largest share of another factor."""

    category: str
    share: BoundedEntry
    next_factor: Factor
    next_share: BoundedEntry
    ratio: Annotated[float | Missing, Meta(description="share / next_share; missing where the latter is 0.")]
    exceeds: Annotated[bool, Meta(description="Whether share > times x next_share, by the values.")]
    supported: Annotated[bool, Meta(description="Whether the low end of share > times x the high end of next_share.")]
    flags: Flags


class DominanceEntry(Document):
    """In how many categories one factor explains several times as much variance as any other factor."""

    rubric: str
    outcome: str
    factor: Factor
    times: Annotated[float, Meta(description="How many times as much.")]
    n_categories: Annotated[Count, Meta(description="With shares of this factor and of another one.")]
    n_largest: Annotated[Count, Meta(description="Categories in which the factor has the largest share.")]
    n_exceeding: Count
    n_supported: Count
    categories: Sequence[CategoryDominance]
    left_out: Annotated[Sequence[str], Meta(description="Categories without these shares.")]


class MissingDominance(Document):
    """Why no factor can be compared with the others by category."""

    rubric: str
    outcome: str
    missing: Reason
