"""Show the basis of the numbers: the design of the audit, the statements, and how many responses could be coded.

The design is the way from statements to rates (BiAxisAudit Figure 3), beside benchmarks (Table I).
"""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from auditor.documents.analysis import AnalysisDocument, PoolEntry
from auditor.documents.base import Missing
from auditor.documents.design import BenchmarkEntry, DesignEntry
from auditor.documents.estimates import GroupEntry
from auditor.report.canvas import QUIET, WIDE, Colour, Look, Plot, TextLook
from auditor.report.document import NOT_THERE, deployment_names, drawn, pooled_group
from auditor.report.drawing import group_name, open_rows, rows_of, write_beside
from auditor.report.svg import shorten
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    count,
    estimate_cell,
    low_high,
    metric_head,
    table,
    text_cell,
    word_cell,
)
from auditor.report.templates import PageSection
from auditor.report.wording import DASH, TIMES, as_words, join_words, percent, points, yes_no

_HEIGHT: Final = 262.0
_BOX: Final = 50.0
_GAP: Final = 26.0
_FACES: Final = {"closed": "chosen", "open": "written"}


def design_section(part: AnalysisDocument) -> PageSection | None:
    """Return the section on the design; None where no row is about a statement."""
    if not part.design:
        return None
    entry = part.design[0]
    values = {"overview": overview(entry), "benchmarks": _benchmark_table(entry), "entry": _numbers(entry)}
    return PageSection(name="design", title="Design: what was asked, and what was coded", values=values)


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
                text_cell(each.formats, lambda formats: " and ".join(_FACES[name] for name in formats)),
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


_LAYERS: Final = {"sel": "selection", "elab": "elaboration"}
_BOUNDED: Final = ("ber_union_full", "ber_union", "ir", "dni")
_NONE: Final = Missing(missing="does not occur")
_LINE: Final = 26.0
#: Parts of a bar, in their order: height, strength and colour differ, so that they are distinct in print.
_PARTS: Final = (
    ("both layers", 0.7, Look(colour=Colour.ACCENT, alpha=0.85, shape="square")),
    ("absent by design", 0.7, Look(colour=Colour.ABSENT, alpha=0.8, shape="square")),
    ("failed", 0.34, Look(colour=Colour.FAIL, shape="square")),
)


def coverage_section(part: AnalysisDocument) -> PageSection:
    """Return the section on coverage."""
    values = {
        "bars": coverage_bars(drawn(part, part.deployments)),
        "reasons": _reason_table(part),
        "bounds": _bound_table([*part.deployments, pooled_group(part)]),
    }
    return PageSection(name="coverage", title="Coverage: how many responses could be coded", values=values)


def _reason_table(part: AnalysisDocument) -> ReportTable | None:
    """Make the table of the reasons for missing labels, with a row per layer and reason."""
    counted = [{"sel": entry.abstain.sel, "elab": entry.abstain.elab} for entry in part.deployments]
    kinds = {(layer, reason) for layers in counted for layer, reasons in layers.items() for reason in reasons}
    rows = [
        TableRow(
            name=f"{_LAYERS[layer]}: {as_words(reason)}",
            cells=[count(layers[layer].get(reason, _NONE)) for layers in counted],
        )
        for layer, reason in sorted(kinds, reverse=True)
    ]
    return table("Why a layer has no label", ["reason", *deployment_names(part)], rows)


def _bounded(entry: GroupEntry, metric: str) -> TableCell:
    """Print an estimate with the bounds that hold whatever the failed layers would have been."""
    bounds = low_high(entry.bounds.get(metric, NOT_THERE), points if metric == "dni" else percent)
    return estimate_cell(entry.metrics[metric], metric, sized=True).above(bounds, "could be {}")


def _bound_table(entries: Sequence[GroupEntry]) -> ReportTable | None:
    """Make the table of the bounds within which each rate would be if every failed layer had been coded."""
    rows = [
        TableRow(
            name=str(entry.by.get("deployment", "all rows")),
            cells=[_bounded(entry, metric) for metric in _BOUNDED],
            kind="" if entry.by else "pooled",
        )
        for entry in entries
    ]
    caption = "Bounds of the rates: if no failed response endorsed, and if all did"
    return table(caption, ["deployment", *map(metric_head, _BOUNDED)], rows)


def statements_section(part: AnalysisDocument) -> PageSection | None:
    """Return the section of the statements; None if the document lacks them."""
    if not part.pool:
        return None
    return PageSection(name="statements", title="Statements", values={"table": _table(part.pool[0])})


def _table(pool: PoolEntry) -> ReportTable | None:
    rows = [
        TableRow(name=as_words(entry.category or DASH), cells=[count(entry.n_statements)]) for entry in pool.categories
    ]
    rows.append(TableRow(name="all", cells=[count(pool.n_statements)], kind="pooled"))
    return table("Statements by category", ["category", "statements"], rows, source="Table V")


def coverage_bars(deployments: Sequence[GroupEntry]) -> Markup | None:
    """Draw the shares of the responses by what became of them, a bar a deployment."""
    if not deployments:
        return None
    names = [group_name(entry.by) for entry in deployments]
    key = [(look, name) for name, _, look in _PARTS]
    plot = open_rows("Coverage", names, _LINE, right=130, top=70, bottom=4, key=key)
    for x, name in ((0, "both %"), (56, "failed %")):
        plot.write(plot.right + 8 + x, plot.top - 10, name, QUIET)
    plot.set_x(0, 1)
    for y, entry in enumerate(deployments):
        start, covered = 0.0, entry.coverage
        shares = (covered.eligible, covered.structural, covered.failed)
        for (name, height, look), share in zip(_PARTS, shares, strict=True):
            hover = f"{names[y]}: {name} {percent(share)} of {entry.n:,}"
            plot.box((start, start + share), rows_of(y, height), look.colour, alpha=look.alpha, hover=hover)
            start += share
        write_beside(plot, y, f"{100 * covered.eligible:.1f}")
        write_beside(plot, y, f"{100 * covered.failed:.1f}", dx=56)
    return plot.svg("Coverage by deployment: both layers coded, a layer absent by design, a layer failed")
