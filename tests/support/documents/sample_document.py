"""A small document with everything that documents are made of, and an example of it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Interval, Missing, Reason, Share, or_missing
from auditor.domain.estimate import Insufficient


class RateEntry(Document):
    """A rate with its interval."""

    value: Share
    interval: Interval | UnsetType = UNSET


class RowEntry(Document):
    """A row with a result."""

    name: str
    rates: Mapping[str, RateEntry | Missing]
    n: Count
    flags: Annotated[Sequence[str], Meta(description="What to mind.")]


class MissingRow(Document):
    """A row without a result."""

    name: str
    missing: Reason


class SampleDocument(Document):
    """A document of a test."""

    schema: Literal["sample/1"]
    rows: Annotated[Sequence[RowEntry | MissingRow], Meta(min_length=1)]
    from_: str | None = msgspec.field(name="from")


RATE = RateEntry(value=0.25, interval=(0.2, 1 / 3))
SAMPLE = SampleDocument(
    schema="sample/1",
    rows=[
        RowEntry(name="a", rates={"a/b~c": RATE, "none": or_missing(Insufficient(reason="12 rows"))}, n=3, flags=["x"]),
        MissingRow(name="b", missing="not asked"),
    ],
    from_=None,
)
