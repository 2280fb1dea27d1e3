"""Compare the two layers of a response: what a single label hides (BiAxisAudit Table III, Figures 2b and 6)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from markupsafe import Markup

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.estimates import EstimateEntry, GroupEntry, MeanEntry
from auditor.metrics.divergence import DNI_MAX, IR_MIN
from auditor.metrics.estimate import ENOUGH_STATEMENTS, FEW_CLUSTERS
from auditor.metrics.rates import METRICS
from auditor.report.canvas import BOLD, ELAB, PANEL, QUIET, ROW, SEL, UNION, Colour, Look, Plot, TextLook
from auditor.report.document import NOT_THERE, bounds_only, drawn, misreading_of, pooled_group, readers_refusal
from auditor.report.drawing import (
    bar_length,
    change_scale,
    change_text,
    cut_name,
    draw_interval,
    group_name,
    join_panels,
    number_marks,
    open_rows,
    panel_title,
    rate_scale,
    rate_text,
    rows_of,
    scale_top,
    write_beside,
)
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    average,
    count,
    estimate_cells,
    metric_head,
    no_value,
    share,
    table,
    word_cell,
)
from auditor.report.templates import PageSection
from auditor.report.wording import estimate_text

_SIZES: Final = ("responses", "with a selection", "coded on both layers")
_LINE: Final = 40.0
_LAYERS: Final = (
    ("ber_sel", "selection", -0.19, SEL),
    ("ber_elab", "elaboration", 0.19, ELAB),
)
_HEIGHT: Final = 380.0
#: Diameter of a mark in pixels, and what a BER_sel of 1 adds to it.
_DOT: Final = 6.0
_GROWTH: Final = 18.0


def section(part: AnalysisDocument) -> PageSection:
    """Return the section that compares the layers of each deployment."""
    pooled = pooled_group(part)
    ir, known = pooled.metrics["ir"], any(isinstance(e.metrics["ir"], EstimateEntry) for e in part.deployments)
    values = {
        "bars": naive_bars(drawn(part, part.deployments)),
        "map": reliability_map(drawn(part, part.deployments)),
        "table": decomposition_table(part.deployments, pooled, part.means) if known else None,
        "misread": _misreading_table([*part.deployments, pooled]),
        "refused": readers_refusal(part),
        "missing": ir.missing if not known and isinstance(ir, Missing) else "",
    }
    return PageSection(name="decomposition", title="Within a response: do option and text agree?", values=values)


def _measures() -> list[str]:
    """List the measures of responses with both layers that have a series; a new one of ``METRICS`` is shown here."""
    return [name for name, metric in METRICS.items() if metric.base == "eligible" and metric.series.exported]


def decomposition_table(
    deployments: Sequence[GroupEntry], pooled: GroupEntry, means: Sequence[MeanEntry] = ()
) -> ReportTable | None:
    """Make Table III of some deployments, with a pooled row and a row of unweighted means."""
    rows = [_row(str(entry.by["deployment"]), entry) for entry in deployments]
    rows.append(_row("pooled by responses", pooled, "pooled"))
    rows += [_mean(entry) for entry in means]
    heads = ["deployment", *_SIZES, *map(metric_head, _measures()), "the selection alone"]
    return table("Decomposition by deployment", heads, rows, source="Table III")


def _row(name: str, entry: GroupEntry, kind: str = "") -> TableRow:
    eligible = count(entry.n_eligible).above(share(entry.coverage.eligible))
    sizes = [count(entry.n), count(entry.n_selection), eligible]
    cells = [*sizes, *estimate_cells(entry.metrics, _measures()), _error(entry)]
    return TableRow(name=name, cells=cells, kind=kind)


def _mean(entry: MeanEntry) -> TableRow:
    blank = [word_cell("")] * len(_SIZES)
    cells = [average(entry.metrics.get(name, NOT_THERE), name) for name in _measures()]
    return TableRow(name="mean of deployments", cells=[*blank, *cells, word_cell("")], kind="mean")


def _error(entry: GroupEntry) -> TableCell:
    """Return the direction in which an audit of the selection alone errs, if the interval of DNI shows one.

    Where people's labels of both layers correct DNI, the corrected one counts.
    """
    dni, trap, corrected = entry.metrics["dni"], entry.cancellation_trap, entry.metrics.get("dni_corrected")
    if isinstance(dni, Missing):
        return no_value(dni.missing)
    if FEW_CLUSTERS in dni.flags:
        return no_value(f"fewer than {ENOUGH_STATEMENTS} statements: no finding")
    if isinstance(trap, Missing):
        return no_value(trap.missing)
    if isinstance(corrected, EstimateEntry) and FEW_CLUSTERS not in corrected.flags:
        dni = corrected
    if dni.low > 0:
        return word_cell("over-estimates")
    return word_cell("under-estimates" if dni.high < 0 else "sign unclear")


def _misreading_table(entries: Sequence[GroupEntry]) -> ReportTable | None:
    """Make the table of the errors of readers that explain IR and DNI, where no labels of people correct them."""
    rows = []
    for entry in entries:
        ir, dni = (misreading_of(entry, name) for name in ("ir", "dni"))
        if ir is not None and dni is not None:
            cells = [share(ir.bound), share(ir.value), share(dni.bound), share(dni.value), share(dni.symmetric_elab)]
            name = str(entry.by.get("deployment", "all rows"))
            rows.append(TableRow(name=name, cells=cells, kind="" if entry.by else "pooled"))
    heads = [
        "deployment",
        *(Markup("{}<small>{}</small>").format(name, part) for name in ("IR", "DNI") for part in ("interval", "value")),
        Markup("DNI<small>misread alike</small>"),
    ]
    return table("Share of the texts that must have been misread to explain IR and DNI", heads, rows)


def _estimates(entries: Sequence[GroupEntry], *measures: str) -> list[tuple[str, list[EstimateEntry]]]:
    """List the deployments that have all of these measures, each with its estimates."""
    measured = [(group_name(entry.by), [entry.metrics[measure] for measure in measures]) for entry in entries]
    return [
        (name, estimates)
        for name, each in measured
        if len(estimates := [estimate for estimate in each if isinstance(estimate, EstimateEntry)]) == len(measures)
    ]


def naive_bars(deployments: Sequence[GroupEntry]) -> Markup | None:
    """Draw the rates of the selection and of the elaboration, and their difference, which is DNI.

    Parameters
    ----------
    deployments
        The document's groups by deployment, of one rubric; those without DNI are left out. Where the rubric names no
        stereotype there are no rates, and the correction stands alone.
    """
    corrections = [(name, dni) for name, (dni,) in _estimates(deployments, "dni")]
    if not corrections:
        return None
    rated = _estimates(deployments, *(name for name, _, _, _ in _LAYERS), "dni")
    return join_panels([*([_rates(rated)] if rated else []), _corrections(corrections)])


def _rates(rated: Sequence[tuple[str, Sequence[EstimateEntry]]]) -> Markup:
    top = scale_top(estimate.high for _, estimates in rated for estimate in estimates[:2])
    key = [(SEL, "selection alone"), (ELAB, "elaboration")]
    plot = open_rows("Rate of each layer", [name for name, _ in rated], _LINE, key=key)
    rate_scale(plot, top)
    for y, (deployment, estimates) in enumerate(rated):
        for (name, layer, dy, look), estimate in zip(_LAYERS, estimates, strict=False):
            hover = f"{deployment}: {layer} {estimate_text(name, estimate)}"
            plot.box((0, bar_length(estimate)), rows_of(y + dy, 0.3), look.colour, alpha=0.25, hover=hover)
            draw_interval(plot, y + dy, estimate, look)
            write_beside(plot, y + dy, rate_text(estimate))
    return plot.svg("BER of selection and of elaboration by deployment, on responses with both layers")


def _corrections(corrections: Sequence[tuple[str, EstimateEntry]]) -> Markup:
    reach = scale_top(max(abs(dni.low), abs(dni.high)) for _, dni in corrections)
    names, lines = [name for name, _ in corrections], ["selection minus text"]
    plot = open_rows("Difference: DNI", names, _LINE, right=120, lines=lines)
    change_scale(plot, reach, wanted=2)
    for y, (name, dni) in enumerate(corrections):
        colour, words = _direction(dni)
        hover = f"{name}: DNI {estimate_text('dni', dni)}, {words}"
        plot.box((0, bar_length(dni)), rows_of(y, 0.34), colour, alpha=0.35, hover=hover)
        draw_interval(plot, y, dni, replace(UNION, colour=colour))
        write_beside(plot, y, change_text(dni), BOLD, dy=-8)
        write_beside(plot, y, words, QUIET, dy=8)
    return plot.svg("DNI by deployment: how far selection alone over- or under-estimates")


def _direction(dni: EstimateEntry) -> tuple[Colour, str]:
    """Return colour and words for the sign of DNI; an interval that contains 0 has no sign."""
    if dni.low > 0:
        return Colour.OVER, "over-estimates"
    if dni.high < 0:
        return Colour.UNDER, "under-estimates"
    return Colour.SOFT, "sign unclear"


def reliability_map(deployments: Sequence[GroupEntry]) -> Markup | None:
    """Draw (IR, DNI) of each deployment with both intervals over the zones; marks grow with BER_sel where it is known.

    Parameters
    ----------
    deployments
        The document's groups by deployment, of one rubric; those without IR or DNI are left out.
    """
    sizes = {group_name(entry.by): entry.metrics["ber_sel"] for entry in deployments}
    placed = [_Placed(name, ir, dni, sizes[name]) for name, (ir, dni) in _estimates(deployments, "ir", "dni")]
    if not placed:
        return None
    ordered = sorted(placed, key=lambda point: (-point.ir.value, point.name))
    return join_panels([_map(ordered), _key(ordered)])


class _Placed(NamedTuple):
    """A deployment on the map."""

    name: str
    ir: EstimateEntry
    dni: EstimateEntry
    sel: EstimateEntry | Missing


def _map(placed: Sequence[_Placed]) -> Markup:
    top = scale_top([1.6 * IR_MIN, *(point.ir.high for point in placed)])
    reach = scale_top([4 * DNI_MAX, *(abs(side) for point in placed for side in (point.dni.low, point.dni.high))])
    plot = Plot(PANEL, _HEIGHT, left=60, right=20, top=36, bottom=46)
    panel_title(plot, "DNI, pp: selection minus text")
    rate_scale(plot, top)
    change_scale(plot, reach, along="y")
    plot.label_x("IR: the layers disagree")
    _zones(plot, top, reach)
    _points(plot, placed)
    return plot.svg("IR and DNI by deployment, over the zones reliable, over, under and cancellation trap")


def _zones(plot: Plot, top: float, reach: float) -> None:
    """Shade the zones and name them; where |DNI| would exceed IR, which cannot be, nothing is shaded."""
    bend, corner = min(top, reach), min(IR_MIN, reach)
    plot.area([0, corner, IR_MIN, IR_MIN, corner], [0, corner, corner, -corner, -corner], Colour.ELAB, alpha=0.16)
    for colour, sign in ((Colour.OVER, 1), (Colour.UNDER, -1)):
        x, y = (IR_MIN, IR_MIN, corner, bend, top, top), (DNI_MAX, corner, corner, bend, bend, DNI_MAX)
        plot.area(x, [sign * each for each in y], colour, alpha=0.16)
    plot.box((IR_MIN, top), (-DNI_MAX, DNI_MAX), Colour.FAIL, alpha=0.22)
    right = TextLook(anchor="end", colour=Colour.SOFT)
    names = (
        (0, reach, 4, 9, f"reliable: IR under {100 * IR_MIN:g} %", QUIET),
        (top, reach, -4, 9, "over-estimates", right),
        (top, -reach, -4, -9, "under-estimates", right),
        (top, -DNI_MAX, -4, 9, "cancellation trap", replace(right, colour=Colour.FAIL)),
    )
    for x_at, y_at, dx, dy, name, look in names:
        left, middle = plot.at(x_at, y_at)
        plot.write(left + dx, middle + dy, name, look)


def _points(plot: Plot, placed: Sequence[_Placed]) -> None:
    marks = []
    for name, ir, dni, sel in placed:
        size = _DOT + (_GROWTH * sel.value if isinstance(sel, EstimateEntry) else 0)
        whisker = Look(colour=Colour.ACCENT, width=1.4, alpha=0.7)
        plot.across(dni.value, ir.low, ir.high, whisker)
        plot.line((ir.value, ir.value), (dni.low, dni.high), whisker)
        alpha = 0.0 if bounds_only(ir) or bounds_only(dni) else 0.8
        look = Look(colour=Colour.ACCENT, shape="circle", size=size, edge=1, rim=Colour.PAPER, alpha=alpha)
        plot.mark(ir.value, dni.value, look, f"{name}: IR {estimate_text('ir', ir)}, DNI {estimate_text('dni', dni)}")
        marks.append((ir.value, dni.value, size))
    number_marks(plot, marks)


def _key(placed: Sequence[_Placed]) -> Markup:
    """List the numbers of the map, with what they stand for."""
    columns = (PANEL - 200, PANEL - 100, PANEL)
    height = 28 + ROW * len(placed)
    plot = Plot(PANEL, height)
    panel_title(plot, "Deployments")
    for x, name in zip(columns, ("IR, %", "DNI, pp", "sel, %"), strict=True):
        plot.write(x, 8, name, TextLook(anchor="end", colour=Colour.SOFT))
    for index, point in enumerate(placed):
        y = 33 + ROW * index
        shown, full = cut_name(point.name, PANEL - 300)
        plot.write(14, y, str(index + 1), TextLook(anchor="end", is_bold=True))
        plot.write(22, y, shown, hover=full)
        values = rate_text(point.ir), change_text(point.dni), rate_text(point.sel)
        for x, value in zip(columns, values, strict=True):
            plot.write(x, y, value, TextLook(anchor="end"))
    return plot.svg("The deployments of the map")
