"""Show in which direction answers take a side, against the controls, and the response styles."""

from typing import Final

from markupsafe import Markup
from msgspec import UNSET, UnsetType

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.direction import ContrastEntry, DirectionEntry, ResponseStyleEntry
from auditor.report.document import NOT_ASKED
from auditor.report.tables import ReportTable, TableCell, TableRow, bounded, count, table, word_cell
from auditor.report.templates import PageSection
from auditor.report.wording import MINUS, as_words, by_text, direction_text, flagged_styles, points

_LAYERS: Final = {"sel": "selection", "elab": "elaboration", "union": "union"}
_STYLES: Final = ("acquiescence", "first_option", "high_rating")


def section(part: AnalysisDocument) -> PageSection | None:
    """Return the section on direction and response styles; None if the document has none."""
    if not part.direction:
        return None
    styles = _style_table(part)
    measured = styles is not None and any(not cell.reason for row in styles.rows for cell in row.cells[:-1])
    values = {
        "directions": _direction_table(part),
        "styles": styles if measured else None,
        "unmeasured": "" if measured or styles is None else "; ".join(styles.reasons),
    }
    return PageSection(name="direction", title="Direction of answers, and response styles", values=values)


def _direction_table(part: AnalysisDocument) -> ReportTable | None:
    entries = [entry for entry in part.direction if len(entry.by) == 1]
    controls = [
        (name, head)
        for name, head in (
            ("counter", "counter group"),
            ("controlled", "controlled"),
            ("disambiguated", "scene gives the answer"),
        )
        if any(getattr(entry, name) is not UNSET for entry in entries)
    ]
    rows = [
        TableRow(
            name=f"{by_text(entry.by)}: {_LAYERS[entry.layer]}",
            cells=[
                _answers(entry),
                *(_score(each) for each in (entry.score, entry.net, *(getattr(entry, name) for name, _ in controls))),
            ],
        )
        for entry in entries
    ]
    heads = [
        "deployment and layer",
        "answers with a side",
        Markup("score<small>(E {0} D) / (E + D)</small>").format(MINUS),
        Markup("net<small>(E {0} D) / all</small>").format(MINUS),
        *(head for _, head in controls),
    ]
    return table("Direction of answers, from -1 to 1", heads, rows)


def _answers(entry: DirectionEntry) -> TableCell:
    return count(entry.score if isinstance(entry.score, Missing) else entry.score.n)


def _score(entry: ContrastEntry | Missing | UnsetType) -> TableCell:
    return bounded(NOT_ASKED if isinstance(entry, UnsetType) else entry, direction_text)


def _style_table(part: AnalysisDocument) -> ReportTable | None:
    by_name: dict[str, dict[str, ResponseStyleEntry]] = {}
    for entry in part.response_styles:
        if "task" not in entry.by:
            by_name.setdefault(by_text(entry.by), {})[entry.style] = entry
    rows = [
        TableRow(
            name=name,
            cells=[
                *(bounded(styles[style].effect, points) for style in _STYLES),
                word_cell(flagged_styles(styles.values())),
            ],
        )
        for name, styles in by_name.items()
    ]
    heads = ["deployment", *(as_words(style) for style in _STYLES), "flagged"]
    return table("Response styles: answers chosen for their form", heads, rows)
