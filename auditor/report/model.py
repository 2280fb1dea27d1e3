"""Show a regression: each level against its reference level in points, and the coefficients."""

from typing import Any, Final

from markupsafe import Markup
from msgspec import UNSET

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.estimates import BoundedEntry
from auditor.documents.model import CoefficientEntry, MarginalEntry, ModelDocument
from auditor.report.canvas import Colour, Look, Plot
from auditor.report.document import known
from auditor.report.drawing import change_scale, draw_interval, open_rows, write_beside
from auditor.report.tables import (
    SMALL_P,
    ReportTable,
    TableRow,
    bounded,
    count,
    decimal,
    no_value,
    number,
    probability,
    share,
    table,
    text_cell,
    three_decimals,
)
from auditor.report.templates import PageSection
from auditor.report.wording import DASH, points, points_text

#: A drawing of more differences than this cannot be read.
MOST_DRAWN: Final = 60
_ADJUSTED: Final = Look(colour=Colour.ACCENT, shape="circle", size=6.4)
_POOLED: Final = Look(colour=Colour.INK, shape="diamond", size=6, edge=1.2, is_hollow=True)
_LINE: Final = 22.0


def section(document: AnalysisDocument) -> PageSection | None:
    """Return the section on the model; None where none was wanted."""
    if document.model is UNSET:
        return None
    model = document.model
    values: dict[str, Any] = {
        "formula": text_cell(model.formula),
        "n": count(model.n),
        "n_clusters": count(model.clusters.n),
        "cluster": text_cell(model.clusters.field),
        "separated": bool(model.method.is_separated),
        "drawing": draw_model(model),
        "differences": _difference_table(model),
        "coefficients": _coefficient_table(model),
    }
    return PageSection(name="model", title="Several fields at once", values=values)


def difference_lines(model: ModelDocument) -> list[tuple[str, ...]]:
    """Return the differences as lines of text, the heads first."""
    lines: list[tuple[str, ...]] = [("level less reference", "difference [95 %, together]", "p", "pooled", "answers")]
    for entry in model.differences:
        name = f"{entry.term} {entry.level} - {entry.reference}"
        if isinstance(entry, MarginalEntry):
            p = f"< {SMALL_P}" if entry.p_adjusted < SMALL_P else f"{entry.p_adjusted:.3f}"
            values = (points_text(entry.value, entry.low, entry.high), p, points(entry.pooled), f"{entry.n:,}")
        else:
            values = (f"{DASH} {entry.missing}", "", "", "")
        lines.append((name, *values))
    return lines


def draw_model(model: ModelDocument) -> Markup | None:
    """Draw each level's difference from its reference level in points, and the pooled one that the mix moves."""
    entries = known(model.differences, MarginalEntry)[:MOST_DRAWN]
    if not entries:
        return None
    names = [f"{entry.term}: {entry.level}" for entry in entries]
    key = [(_ADJUSTED, "the same mix of all other fields"), (_POOLED, "pooled")]
    plot: Plot = open_rows("Difference from the reference level", names, _LINE, top=58, right=70, key=key)
    change_scale(plot, max(max(abs(entry.low), abs(entry.high), abs(entry.pooled)) for entry in entries))
    for y, entry in enumerate(entries):
        hover = f"{names[y]} less {entry.reference}: {points_text(entry.value, entry.low, entry.high)}"
        plot.mark(entry.pooled, y, _POOLED, f"{names[y]}: pooled {points(entry.pooled)}")
        draw_interval(plot, y, BoundedEntry(value=entry.value, low=entry.low, high=entry.high), _ADJUSTED)
        write_beside(plot, y, points(entry.value), hover=hover)
    return plot.svg("Differences from the reference levels with intervals that hold together for a term")


def _difference_table(model: ModelDocument) -> ReportTable | None:
    rows = []
    for entry in model.differences:
        name = f"{entry.term}: {entry.level} less {entry.reference}"
        cells = [no_value(entry.missing)] * 6 if not isinstance(entry, MarginalEntry) else [
            bounded(entry, points), probability(entry.p_adjusted), share(entry.rate), share(entry.reference_rate),
            number(entry.pooled, points), count(entry.n),
        ]  # fmt: skip
        rows.append(TableRow(name=name, cells=cells))
    heads = ["level", "difference", "p", "rate", "reference", "pooled difference", "answers"]
    return table("Differences in points, over the same mix of all other fields", heads, rows)


def _coefficient_table(model: ModelDocument) -> ReportTable | None:
    rows = []
    for entry in model.coefficients:
        cells = [no_value(entry.missing)] * 4 if not isinstance(entry, CoefficientEntry) else [
            bounded(entry, three_decimals), decimal(entry.se), decimal(entry.df, 1), probability(entry.p),
        ]  # fmt: skip
        rows.append(TableRow(name=f"{entry.term}: {entry.level}" if entry.level else entry.term, cells=cells))
    return table("Coefficients, log odds ratios", ["coefficient", "value", "standard error", "df", "p"], rows)
