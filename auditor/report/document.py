"""Hold what topics of a report share: the analysis of one rubric, and values that know their place in a document."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast
from urllib.parse import quote

from msgspec import Struct, structs
from typing_extensions import override

from auditor.counting.conditions import FACTORS, Levels, level_order, off_baseline, single_factor_condition
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Document, Missing
from auditor.documents.codec import child_pointer, field_names
from auditor.documents.conditions import RangeEntry, VarianceShareEntry
from auditor.documents.estimates import (
    BoundedEntry,
    By,
    ConditionEntry,
    EstimateEntry,
    FlaggedEntry,
    GroupEntry,
    MisreadingEntry,
)
from auditor.domain.readers import divergence_refusal
from auditor.metrics.estimate import BOUNDS_ONLY

#: A drawing shows at most so many deployments: more could not be distinguished, and would take minutes to draw.
MOST_DRAWN: Final = 40
NOT_THERE: Final = Missing(missing="this document does not say")
NOT_ASKED: Final = Missing(missing="not asked")
_Document = TypeVar("_Document", bound=Document)
_Entry = TypeVar("_Entry")
_Grouped = TypeVar("_Grouped", GroupEntry, ConditionEntry, RangeEntry, VarianceShareEntry)


class PlacedInt(int):
    """A whole number of a document with its JSON pointer."""

    pointer: str


class PlacedFloat(float):
    """A number of a document with its JSON pointer."""

    pointer: str


class PlacedText(str):
    """A text of a document with its JSON pointer."""

    __slots__ = ("pointer",)
    pointer: str


class PlacedTruth(int):
    """A truth value of a document with its JSON pointer. Python allows no subclass of ``bool``."""

    pointer: str

    @override
    def __str__(self) -> str:
        return str(bool(self))


_Placed = PlacedInt | PlacedFloat | PlacedText | PlacedTruth
_PLACED: Final[Mapping[type, type[_Placed]]] = {int: PlacedInt, float: PlacedFloat, str: PlacedText, bool: PlacedTruth}


def with_places(document: _Document, pointer: str = "") -> _Document:
    """Return a document whose numbers and texts know their JSON pointers, so that a page can name their places.

    Parameters
    ----------
    document
        Document as read from its file.
    pointer
        JSON pointer of the document itself.
    """
    return cast("_Document", _with_places(document, pointer))


def _with_places(value: object, pointer: str) -> object:
    if type(value) in _PLACED:
        placed = _PLACED[type(value)](value)  # type: ignore[arg-type, call-overload] # each class takes its own type
        placed.pointer = pointer
        return placed
    if isinstance(value, Struct):
        parts = {
            name: _with_places(getattr(value, name), child_pointer(pointer, key))
            for name, key in field_names(type(value))
        }
        return type(value)(**parts)
    if isinstance(value, Mapping):
        return {key: _with_places(each, child_pointer(pointer, key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_with_places(each, f"{pointer}/{index}") for index, each in enumerate(value))
    return value


def pointer_of(value: object) -> str:
    """Return the JSON pointer of a value or an entry as a URI has it (RFC 6901, section 6), so without spaces.

    Raises
    ------
    TypeError
        It comes from no document that ``with_places`` returned.

    Examples
    --------
    >>> pointer_of(with_places(BoundedEntry(value=0.2, low=0.1, high=0.3), "/rates/a b"))
    '/rates/a%20b'
    """
    if isinstance(value, _Placed):
        return quote(value.pointer, safe="~/")
    parts = structs.astuple(value) if isinstance(value, Struct) else value if isinstance(value, list | tuple) else ()
    for part in parts:
        if isinstance(part, _Placed):
            return quote(part.pointer.rpartition("/")[0], safe="~/")
    raise TypeError(f"{value!r} comes from no document")


def of_rubric(document: AnalysisDocument, rubric: str) -> AnalysisDocument:
    """Return the analysis with the entries of one rubric. Numbers of different rubrics must not be compared."""
    kept = {
        name: [entry for entry in entries if getattr(entry, "rubric", rubric) == rubric]
        for name, entries in structs.asdict(document).items()
        if isinstance(entries, list)
    }
    return structs.replace(document, **kept)


def known(entries: Iterable[object], kind: type[_Entry]) -> list[_Entry]:
    """Return the entries of a class, without those that only say why there is no result."""
    return [entry for entry in entries if isinstance(entry, kind)]


def reason(entries: Sequence[object]) -> str:
    """Return why there are no results: the reason of the first entry."""
    return next((str(entry.missing) for entry in entries if hasattr(entry, "missing")), NOT_THERE.missing)


def pooled_group(part: AnalysisDocument) -> GroupEntry:
    """Return the group of all rows."""
    return next(entry for entry in part.groups if not entry.by)


def readers_refusal(part: AnalysisDocument) -> str:
    """Return why there is no verdict on IR or DNI because of the judges; empty if there is one."""
    if not isinstance(pooled_group(part).cancellation_trap, Missing):
        return ""
    refused = (divergence_refusal(judges) for _, judges in sorted(part.panels.items()))
    return next((each.reason for each in refused if each is not None), "")


def misreading_of(entry: GroupEntry, measure: str) -> MisreadingEntry | None:
    """Return how large an error of the readers explains a measure; None where people's labels of both correct it."""
    misreading = entry.misreading[measure]
    corrected = isinstance(entry.metrics.get(f"{measure}_corrected"), EstimateEntry)
    return None if corrected or isinstance(misreading, Missing) else misreading


def deployment_names(part: AnalysisDocument) -> list[str]:
    """Name the deployments, sorted as the document has them."""
    return [str(entry.by["deployment"]) for entry in part.deployments]


def drawn(part: AnalysisDocument, entries: Iterable[_Grouped]) -> list[_Grouped]:
    """Return the entries to draw: those of the first ``MOST_DRAWN`` deployments, and those of no deployment."""
    left_out = set(deployment_names(part)[MOST_DRAWN:])
    return [entry for entry in entries if entry.by.get("deployment") not in left_out]


def condition_levels(by: By) -> Levels:
    """Read a condition's levels, in the order of the factors."""
    task, perspective, role, sentiment = (str(by[factor]) for factor in FACTORS)
    return task, perspective, role, sentiment


def conditions_of(part: AnalysisDocument) -> set[Levels]:
    """Return the conditions that were asked."""
    return {condition_levels(entry.by) for entry in part.conditions}


def single_factor_levels(part: AnalysisDocument, factor: str) -> list[str]:
    """List the levels of a factor that were asked with the other factors at their baseline."""
    place = FACTORS.index(factor)
    occurring = {
        levels[place] for levels in conditions_of(part) if levels == single_factor_condition(factor, levels[place])
    }
    return sorted(occurring, key=lambda level: level_order(factor, level))


def varied_levels(part: AnalysisDocument) -> dict[str, list[str]]:
    """List the levels of each factor that was varied at all."""
    by_factor = {factor: {levels[place] for levels in conditions_of(part)} for place, factor in enumerate(FACTORS)}
    return {
        factor: sorted(levels, key=lambda level: level_order(factor, level))
        for factor, levels in by_factor.items()
        if len(levels) > 1
    }


def crossed_entries(entries: Iterable[ConditionEntry]) -> Iterator[ConditionEntry]:
    """Yield the conditions that differ from the baseline in several factors."""
    return (entry for entry in entries if off_baseline(condition_levels(entry.by)) > 1)


def bounds_only(estimate: BoundedEntry) -> bool:
    """Return whether only the bounds of an estimate are reliable."""
    return isinstance(estimate, FlaggedEntry) and BOUNDS_ONLY in estimate.flags
