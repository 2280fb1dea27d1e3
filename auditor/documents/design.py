"""Define the design of an audit: what was crossed, how many responses came, and how it compares with benchmarks."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from auditor.documents.base import Count, Document

#: How answers are given.
Format = Literal["closed", "open"]


class BenchmarkEntry(Document):
    """One line of Table I: a published benchmark as the paper describes it, or this audit."""

    name: str
    published: Annotated[bool, Meta(description="false: this audit.")]
    formats: Annotated[Sequence[Format], Meta(description="Whether answers are chosen, written freely, or both.")]
    units: Annotated[Count, Meta(description="What it has of ``unit``; units of different benchmarks are not alike.")]
    unit: str
    prompt_factors: Annotated[
        Sequence[str], Meta(description="What is varied about the prompt while the items stay; empty: nothing.")
    ]
    layered: Annotated[bool, Meta(description="Whether selection and elaboration are coded apart.")]


class DesignEntry(Document):
    """The way from the statements to the rates, with the numbers of each step."""

    rubric: str
    n_statements: Count
    n_categories: Annotated[Count, Meta(description="That rows name.")]
    levels: Annotated[
        Mapping[str, Sequence[str]],
        Meta(description="By factor: the levels that were asked, in the instrument's order."),
    ]
    n_conditions: Count
    n_deployments: Count
    n: Annotated[Count, Meta(description="Responses.")]
    n_fewest: Annotated[Count, Meta(description="Responses of the deployment that has fewest.")]
    n_most: Count
    n_selection: Annotated[Count, Meta(description="Responses with a selection.")]
    n_elaboration: Annotated[Count, Meta(description="Responses with an elaboration that judges labelled.")]
    n_eligible: Annotated[Count, Meta(description="Responses with both labels.")]
    judges: Annotated[Sequence[str], Meta(description="Of all panels.")]
    benchmarks: Annotated[Sequence[BenchmarkEntry], Meta(description="Published ones, and this audit last.")]
