"""Show the design of an audit: the way from statements to rates (BiAxisAudit Figure 3), beside benchmarks (Table I)."""

from typing import Final

from markupsafe import Markup

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.design import BenchmarkEntry, DesignEntry
from auditor.report.canvas import WIDE, Colour, Look, Plot, TextLook
from auditor.report.svg import shorten
from auditor.report.tables import ReportTable, TableCell, TableRow, count, table, text_cell, word_cell
from auditor.report.templates import PageSection
from auditor.report.wording import TIMES, as_words, join_words, yes_no

_HEIGHT: Final = 262.0
_BOX: Final = 50.0
_GAP: Final = 26.0
_FACES: Final = {"closed": "chosen", "open": "written"}


def section(part: AnalysisDocument) -> PageSection | None:
    """Return the section on the design; None where no row is about a statement."""
    if not part.design:
        return None
    entry = part.design[0]
    given = {"overview": overview(entry), "benchmarks": _benchmark_table(entry), "entry": _numbers(entry)}
    return PageSection(name="design", title="Design: what was asked, and what was coded", given=given)


def _numbers(entry: DesignEntry) -> dict[str, object]:
    """Return the numbers of the sentence."""
    names = ("n_statements", "n_categories", "n_conditions", "n_deployments", "n", "n_fewest", "n_most")
    return {
        **{name: count(getattr(entry, name)) for name in names},
        "varied": join_words([factor for factor, levels in entry.levels.items() if len(levels) > 1]),
        "even": entry.n_fewest == entry.n_most,
    }


def _benchmark_table(entry: DesignEntry) -> ReportTable | None:
    rows = [
        TableRow(
            name=each.name,
            cells=[
                text_cell(each.formats, lambda formats: " and ".join(_FACES[one] for one in formats)),
                count(each.units).above(text_cell(each.unit)),
                _factors(each),
                text_cell(each.layered, yes_no),
            ],
            kind="" if each.published else "pooled",
        )
        for each in entry.benchmarks
    ]
    heads = ["benchmark", "answers are", "units", "varied about the prompt", "layers coded apart"]
    return table("This audit beside benchmarks of social bias", heads, rows, source="Table I")


def _factors(entry: BenchmarkEntry) -> TableCell:
    return text_cell(entry.prompt_factors, join_words) if entry.prompt_factors else word_cell("nothing")


def overview(entry: DesignEntry) -> Markup:
    """Draw the way from statements, prompts and deployments over the two coded layers to the rates."""
    varied = sum(len(levels) > 1 for levels in entry.levels.values())
    even = entry.n_fewest == entry.n_most
    responses = f"{entry.n_most:,}" if even else f"{entry.n_fewest:,} to {entry.n_most:,}"
    third, half = (WIDE - 2 * _GAP) / 3, (WIDE - _GAP) / 2
    plot = Plot(WIDE, _HEIGHT)
    first = (
        (f"Statements: {entry.n_statements:,}", f"in categories: {entry.n_categories:,}"),
        (f"Conditions: {entry.n_conditions:,}", f"factors varied: {varied}"),
        (f"Deployments: {entry.n_deployments:,}", f"responses of each: {responses}"),
    )
    for place, (head, line) in enumerate(first):
        left = place * (third + _GAP)
        _box(plot, left, 4, third, head, line, Colour.SOFT)
        if place:
            plot.write(left - _GAP / 2, 4 + _BOX / 2, TIMES, TextLook(anchor="middle", size=15))
    _box(plot, (WIDE - third) / 2, 74, third, f"Responses: {entry.n:,}", "each with up to two layers", Colour.ACCENT)
    layers = (
        (f"Selection: {entry.n_selection:,}", "read by rules", Colour.SEL),
        (
            f"Elaboration: {entry.n_elaboration:,}",
            f"read without the marker, judges: {len(entry.judges)}",
            Colour.ELAB,
        ),
    )
    for place, (head, line, colour) in enumerate(layers):
        _box(plot, place * (half + _GAP), 144, half, head, line, colour)
    _box(plot, (WIDE - half) / 2, 210, half, f"Both layers: {entry.n_eligible:,}", "BER, IR and DNI", Colour.ACCENT)
    middle, quarter = WIDE / 2, half / 2
    for x in (third / 2, middle, WIDE - third / 2):
        _arrow(plot, x, 54, middle, 74)
    for x in (quarter, WIDE - quarter):
        _arrow(plot, middle, 124, x, 144)
        _arrow(plot, x, 194, middle, 210)
    return plot.svg("From statements, conditions and deployments over two coded layers to the rates")


def _box(plot: Plot, left: float, top: float, width: float, head: str, line: str, colour: Colour) -> None:
    middle, room = left + width / 2, width - 8
    plot.box((left, left + width), (top, top + _BOX), colour, alpha=0.14)
    plot.write(middle, top + 17, shorten(as_words(head), room), TextLook(anchor="middle", is_bold=True))
    plot.write(middle, top + 36, shorten(as_words(line), room), TextLook(anchor="middle", colour=Colour.SOFT))


def _arrow(plot: Plot, x: float, y: float, to_x: float, to_y: float) -> None:
    plot.line((x, to_x), (y, to_y), Look(colour=Colour.SOFT, width=1))
