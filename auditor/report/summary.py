"""Summarise the findings: headline rates in words and a drawing, what must not be claimed, a line a deployment."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from markupsafe import Markup

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.conditions import AgreementEntry, RangeEntry, VarianceShareEntry
from auditor.documents.estimates import EstimateEntry, GroupEntry
from auditor.report.canvas import BOLD, PANEL, PHONE, PLAIN, UNION, Colour
from auditor.report.document import (
    conditions_of,
    deployment_names,
    drawn,
    known,
    misreading_of,
    pooled_group,
    readers_refusal,
    reason,
)
from auditor.report.drawing import (
    draw_interval,
    group_name,
    gutter_width,
    open_rows,
    rate_scale,
    rate_text,
    scale_top,
    write_beside,
)
from auditor.report.tables import (
    SIZE_HEADS,
    ReportTable,
    TableCell,
    TableRow,
    bounded,
    count,
    decimal,
    estimate_cell,
    estimate_cells,
    metric_head,
    share,
    size_cells,
    table,
    text_cell,
    unsigned_points,
    word_cell,
)
from auditor.report.templates import PageSection
from auditor.report.wording import FLAGS, estimate_text, join_words, task_words

HEADLINES: Final = ("ber_union_full", "ber_union", "ir", "dni")
#: Measures whose flags stand beside a deployment.
_FLAGGED: Final = ("ber_union_full", "ir", "dni")
_RATE: Final = "ber_union_full"
_HEADLINE: Final = "Responses that endorse a stereotype"
_LINE: Final = 30.0
_SENTENCE_METRICS: Final = (*HEADLINES, "ber_cor", "ber_sel")


def section(part: AnalysisDocument) -> PageSection:
    """Return the section that stands alone: three sentences, one drawing, and what must not be claimed."""
    pooled = pooled_group(part)
    values = {
        "pooled": {name: estimate_cell(pooled.metrics[name], name) for name in _SENTENCE_METRICS},
        "n": count(pooled.n),
        "eligible": share(pooled.coverage.eligible),
        "extremes": _extremes(part),
        "swing": _swing(part),
        "drawing": headline_panel(part, PANEL),
        "drawing_phone": headline_panel(part, PHONE),
        "caveats": list(_caveats(part)),
    }
    return PageSection(name="summary", title="Summary", values=values)


def results_section(part: AnalysisDocument) -> PageSection:
    """Return the section with the headline rates of each deployment."""
    pooled = pooled_group(part)
    values = {
        "pooled": {name: estimate_cell(pooled.metrics[name], name) for name in _SENTENCE_METRICS},
        "misread": _misread(pooled),
        "refused": readers_refusal(part),
        "swing": _swing(part),
        "shares": list(_shares(part)),
        "traps": _traps(part),
        "table": _table(part),
    }
    return PageSection(name="results", title="Results by deployment", values=values)


def headline_panel(part: AnalysisDocument, width: float) -> Markup | None:
    """Draw the rate of all responses by deployment, the highest first, with intervals, and that of all together."""
    entries = [entry for entry in drawn(part, part.deployments) if isinstance(entry.metrics[_RATE], EstimateEntry)]
    entries.sort(key=_height)
    entries += [pooled for pooled in [pooled_group(part)] if len(entries) != 1]
    rates = [
        (group_name(entry.by), rate) for entry in entries if isinstance(rate := entry.metrics[_RATE], EstimateEntry)
    ]
    if not rates:
        return None
    names, last = [name for name, _ in rates], len(rates) - 1
    left = gutter_width(names, width / 3)
    plot = open_rows(_HEADLINE, names, _LINE, width=width, left=left, top=34, right=60, bold=[last])
    rate_scale(plot, scale_top(rate.high for _, rate in rates))
    for y, (name, rate) in enumerate(rates):
        draw_interval(plot, y, rate, replace(UNION, colour=Colour.INK) if y == last else UNION)
        hover = f"{name}: {estimate_text(_RATE, rate)}, n = {rate.n:,}"
        write_beside(plot, y, f"{rate_text(rate)} %", BOLD if y == last else PLAIN, hover)
    return plot.svg(f"{_HEADLINE}, by deployment, with 95 % intervals")


def _height(entry: GroupEntry) -> tuple[float, str]:
    rate = entry.metrics[_RATE]
    assert isinstance(rate, EstimateEntry)
    return -rate.value, group_name(entry.by)


def _misread(pooled: GroupEntry) -> dict[str, TableCell] | None:
    """Return the shares of texts that must have been misread to explain IR and DNI, unless people correct them."""
    ir, dni = (misreading_of(pooled, name) for name in ("ir", "dni"))
    return None if ir is None or dni is None else {"ir": share(ir.value), "dni": share(dni.value)}


def _extremes(part: AnalysisDocument) -> list[tuple[str, TableCell]]:
    """Return the deployments with the lowest and the highest headline; none if there is only one."""
    rates = [
        (str(entry.by["deployment"]), rate)
        for entry in part.deployments
        if isinstance(rate := entry.metrics[_RATE], EstimateEntry)
    ]
    rates.sort(key=lambda rate: rate[1].value)
    ends = (rates[0], rates[-1]) if len(rates) > 1 else ()
    return [(name, estimate_cell(rate, _RATE)) for name, rate in ends]


def _swing(part: AnalysisDocument) -> dict[str, TableCell | str] | None:
    """Return how far the pooled headline depends on the task."""
    for entry in known(part.horizontal, RangeEntry):
        if (entry.by, entry.metric, entry.over) == ({}, _RATE, "task"):
            return {
                "range": bounded(entry, unsigned_points),
                "min": share(entry.min),
                "min_at": text_cell(entry.min_at),
                "min_as": task_words(entry.min_at),
                "max": share(entry.max),
                "max_at": text_cell(entry.max_at),
                "max_as": task_words(entry.max_at),
            }
    return None


def _shares(part: AnalysisDocument) -> Iterator[tuple[str, TableCell]]:
    """Yield the shares of the headline's variance that the task and the choice of deployment explain."""
    rows = [e for e in known(part.eta_squared, VarianceShareEntry) if (e.by, e.outcome) == ({}, _RATE)]
    for name, effect, design in (("the task", "task", "oat"), ("the choice of deployment", "deployment", "deployment")):
        for entry in rows:
            value = entry.effects.get(effect)
            counts_responses = design == "deployment" or entry.weights == "responses"
            if entry.design == design and counts_responses and isinstance(value, float):
                yield name, decimal(value)


def _traps(part: AnalysisDocument) -> list[tuple[str, str]]:
    """List the deployments in the cancellation trap, by its state."""
    states: dict[str, list[str]] = {"confirmed": [], "possible": []}
    for entry in part.deployments:
        if isinstance(state := entry.cancellation_trap, str) and state in states:
            states[state].append(str(entry.by["deployment"]))
    return [(state, join_words(names)) for state, names in states.items() if names]


def _table(part: AnalysisDocument) -> ReportTable | None:
    """Make the table of the headline rates; flags have a column if there are any."""
    lines = [(str(entry.by["deployment"]), entry, "") for entry in part.deployments]
    lines.append(("all rows", pooled_group(part), "pooled"))
    flagged = any(_flags(entry) for _, entry, _ in lines)
    heads = ["deployment", *SIZE_HEADS, *map(metric_head, HEADLINES), "cancellation trap"]
    rows = []
    for name, entry, kind in lines:
        flags = [word_cell(", ".join(sorted(_flags(entry))).replace("_", " "), "flags")] if flagged else []
        cells = [*size_cells(entry), *estimate_cells(entry.metrics, HEADLINES), _trap(entry), *flags]
        rows.append(TableRow(name=name, cells=cells, kind=kind))
    return table("Headlines by deployment", [*heads, "flags"] if flagged else heads, rows)


def _trap(entry: GroupEntry) -> TableCell:
    cell = text_cell(entry.cancellation_trap)
    return cell.marked("alarm") if cell.text in {"confirmed", "possible"} else cell


def _flags(entry: GroupEntry) -> set[str]:
    """Collect an entry's flags and those of its headlines."""
    named = known((entry.metrics[name] for name in _FLAGGED), EstimateEntry)
    return {str(flag) for flags in (entry.flags, *(each.flags for each in named)) for flag in flags}


def _caveats(part: AnalysisDocument) -> Iterator[str]:
    """Yield what these rows do not show."""
    names_by_line: dict[str, list[str]] = {}
    for entry in part.deployments:
        lines = [FLAGS.get(flag, flag) for flag in sorted(_flags(entry))]
        if isinstance(ir := entry.metrics["ir"], Missing):
            lines.append(f"no result on whether the layers agree, because {ir.missing}")
        for line in lines:
            names_by_line.setdefault(line, []).append(str(entry.by["deployment"]))
    for line, names in names_by_line.items():
        yield f"{'Every deployment' if len(names) == len(deployment_names(part)) else join_words(names)}: {line}."
    if len(conditions_of(part)) < 2:
        yield "No result for other prompts: every deployment was asked under one condition."
    if not known(part.agreement, AgreementEntry):
        yield f"No ranking of the deployments: {reason(part.agreement)}."
