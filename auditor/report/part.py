"""What a document says of one rubric: rubrics are never compared."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from auditor.metrics.shares import Levels, off_baseline
from auditor.report.places import NOT_THERE, Place
from auditor.report.words import Entry, condition_levels


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """One section of the page: the template that writes it, and what that is given."""

    name: str
    title: str
    given: dict[str, Any]

    def of(self, rubric: str) -> Self:
        """Name the rubric in the title."""
        return replace(self, title=f"{self.title} ({rubric})")


@dataclass(frozen=True, slots=True)
class Part:
    """One rubric of a document."""

    document: Place
    rubric: str

    def entries(self, key: str) -> list[Place]:
        """List this rubric's entries under a key that have something to say."""
        return [
            entry
            for entry in self.document.at(key)
            if not entry.reason and entry.value.get("rubric", self.rubric) == self.rubric
        ]

    def values(self, key: str) -> list[Entry]:
        """List the same entries as they are."""
        return [entry.value for entry in self.entries(key)]

    def reason(self, key: str) -> str:
        """Say why there are no entries under a key; empty where there are."""
        if self.entries(key):
            return ""
        found = self.document.at(key)
        return found.reason or next((entry.reason for entry in found), NOT_THERE)

    @property
    def pooled(self) -> Place:
        """All rows of the rubric."""
        return next(entry for entry in self.entries("groups") if not entry.value["by"])

    @property
    def deployments(self) -> list[str]:
        """Name the deployments, sorted as the document has them."""
        return [name_of(entry) for entry in self.entries("deployments")]

    @property
    def conditions(self) -> list[Levels]:
        """List the conditions that were asked, each once."""
        return sorted({condition_levels(entry.value["by"]) for entry in self.entries("conditions")})

    @property
    def is_varied(self) -> bool:
        """Whether anything was asked under more than one condition."""
        return len(self.conditions) > 1

    @property
    def is_crossed(self) -> bool:
        """Whether some condition departs from the baseline in more than one factor."""
        return any(off_baseline(levels) > 1 for levels in self.conditions)


def name_of(entry: Place) -> str:
    """Name the deployment of an entry."""
    return str(entry.value["by"]["deployment"])


def chosen(entries: Iterable[Place], **fields: object) -> list[Place]:
    """Choose the entries whose fields have these values; one without the field is not chosen.

    Examples
    --------
    >>> entries = Place([{"over": "task", "min": 0.1}, {"over": "role"}])
    >>> [entry.path for entry in chosen(entries, over="task")]
    ['/0']
    """
    return [entry for entry in entries if all(entry.value.get(name, _NONE) == value for name, value in fields.items())]


#: Equal to no value of a document.
_NONE: Final = object()
