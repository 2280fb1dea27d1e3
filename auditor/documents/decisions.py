"""Define ``decisions.json``: rates of favourable decisions by group, and their ratios to the highest rate."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Interval, Missing, Share

#: Whether a ratio is under the threshold, by its interval.
Finding = Annotated[
    str,
    Meta(
        pattern="^(below|not_below|unclear)$",
        description="below: the whole interval is under the threshold; not_below: none of it is; unclear: a part is.",
    ),
]


class DecisionRuleEntry(Document):
    """The rules of the comparison."""

    name: str
    title: str
    source: str
    fields: Sequence[str]
    intersections: bool
    threshold: Share | None
    exclude_below: Share
    score: Literal["above_median"]
    categories: Mapping[str, Sequence[str]]


class DecisionRateEntry(Document):
    """The share of favourable decisions with its 95 % interval; with scores, of those over the median of all."""

    value: Share
    interval: Interval | Missing


class ImpactRatioEntry(Document):
    """The rate divided by the highest rate of the table. The intervals of a table hold together at 95 %."""

    value: Share
    interval: Interval
    under_threshold: bool | UnsetType = UNSET
    finding: Finding | UnsetType = UNSET


class DecisionGroupEntry(Document):
    """One group. ``excluded`` says why it has no ratio by rule."""

    values: Sequence[str]
    n: Count
    favourable: Count
    rate: DecisionRateEntry | Missing
    impact_ratio: ImpactRatioEntry | Missing
    excluded: str | UnsetType = UNSET


class DecisionTableEntry(Document):
    """The groups by one field, or by all fields together."""

    fields: Sequence[str]
    n: Annotated[Count, Meta(description="Decisions about people of a known category.")]
    n_unknown: Annotated[Count, Meta(description="Decisions without a value, or with one that is no category.")]
    highest: Annotated[Sequence[str] | Missing, Meta(description="The category with the highest rate.")]
    categories: Sequence[DecisionGroupEntry]


class DecisionsDocument(Document):
    """Decisions about people, compared between groups."""

    schema: Literal["biasmeter.decisions/1"]
    version: str
    rule: DecisionRuleEntry
    kind: Literal["decision", "score"]
    median: Annotated[float | UnsetType, Meta(description="Of all scores.")] = UNSET
    cluster: Annotated[str | None, Meta(description="The field whose values are not independent of each other.")]
    n: Count
    n_unread: Annotated[Count, Meta(description="Rows without a decision.")]
    tables: Sequence[DecisionTableEntry]
