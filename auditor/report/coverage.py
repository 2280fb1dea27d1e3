"""Show the basis of the numbers: the statements, and how many responses could be coded."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from auditor.documents.analysis import AnalysisDocument, PoolEntry
from auditor.documents.base import Missing
from auditor.documents.estimates import GroupEntry
from auditor.report.canvas import QUIET, Colour, Look
from auditor.report.document import NOT_THERE, deployment_names, drawn, pooled_group
from auditor.report.drawing import group_name, open_rows, rows_of, write_beside
from auditor.report.tables import ReportTable, TableCell, TableRow, count, estimate_cell, low_high, metric_head, table
from auditor.report.templates import PageSection
from auditor.report.wording import DASH, as_words, percent, points

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


def section(part: AnalysisDocument) -> PageSection:
    """Return the section on coverage."""
    given = {
        "bars": coverage_bars(drawn(part, part.deployments)),
        "reasons": _reason_table(part),
        "bounds": _bound_table([*part.deployments, pooled_group(part)]),
    }
    return PageSection(name="coverage", title="Coverage: how many responses could be coded", given=given)


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
    return PageSection(name="statements", title="Statements", given={"table": _table(part.pool[0])})


def _table(pool: PoolEntry) -> ReportTable | None:
    rows = [TableRow(name=as_words(one.category or DASH), cells=[count(one.n_statements)]) for one in pool.categories]
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
