"""Statements: a sentence that attributes a trait to a social group, and the options that go with it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """One claim of a statement pool. Only ``id`` and ``statement`` are always there."""

    id: str
    statement: str
    category: str | None = None
    stereotype_option: str | None = None  #: the group that the stereotype names
    counter_option: str | None = None  #: the group it is compared with
    context: str | None = None  #: a neutral scenario with two people, for CTO
    question: str | None = None  #: question about the scenario
    completion: str | None = None  #: the statement with a blank, for SC
    region: str | None = None  #: where it leans on local law or culture
    intersectional: bool = False
    source: str | None = None
