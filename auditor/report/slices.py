"""Show the same tables by category, region and other fields of the statements, and by the requested groups."""

from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from auditor.documents.analysis import AnalysisDocument, SliceEntry, SliceValue
from auditor.documents.base import Missing, Scalar
from auditor.documents.conditions import RangeEntry, VarianceShareEntry
from auditor.documents.estimates import EstimateEntry, GroupEntry
from auditor.report.canvas import Colour
from auditor.report.decomposition import decomposition_table
from auditor.report.document import PlacedTruth, known
from auditor.report.drawing import group_name, rate_text, scale_top
from auditor.report.heat_map import HeatCell, heat_map
from auditor.report.levels import level_table
from auditor.report.summary import HEADLINES
from auditor.report.tables import (
    SIZE_HEADS,
    ReportTable,
    TableRow,
    count,
    estimate_cells,
    metric_head,
    size_cells,
    table,
    text_cell,
)
from auditor.report.templates import PageSection
from auditor.report.variation import range_table, share_table
from auditor.report.wording import DASH, as_words, by_text, estimate_text, join_words, percent, yes_no

#: Values of a field that the page shows; all of them stand in analysis.json.
MAX_VALUES: Final = 40
#: Groups that the page shows; all of them stand in analysis.json.
MAX_GROUPS: Final = 100
_MEASURES: Final = ("ber_union_full", "ber_sel", "ber_elab", "ber_union", "ir", "dni", "ir_over_union")
#: A cell with a smaller share of responses that were read on both layers is hatched. This project chose the limit.
COVERED: Final = 0.5
_ALL: Final = "all deployments"
_METRIC: Final = "ber_union_full"


def section(part: AnalysisDocument) -> PageSection | None:
    """Return the section with every field that the analysis was grouped by; None if there is none."""
    if not part.slices:
        return None
    named = join_words([as_words(entry.field) for entry in part.slices])
    values = {"fields": [_field(entry) for entry in part.slices]}
    return PageSection(name="slices", title=f"By {named}", values=values)


def _field(entry: SliceEntry) -> dict[str, Any]:
    name, shown = as_words(entry.field), entry.values[:MAX_VALUES]
    return {
        "name": name,
        "cut": len(shown) < len(entry.values),
        "map": slice_map(entry.field, shown),
        "table": _table(shown, name),
        "each": [_value(value) for value in shown],
    }


def _table(values: Sequence[SliceValue], name: str) -> ReportTable | None:
    rows = [
        TableRow(
            name=value_text(value.value),
            cells=[
                count(value.n_statements),
                *size_cells(value.pooled),
                *estimate_cells(value.pooled.metrics, HEADLINES),
            ],
        )
        for value in values
    ]
    heads = [name, "statements", *SIZE_HEADS, *map(metric_head, HEADLINES)]
    return table(f"Headlines by {name}, all deployments together", heads, rows)


def _value(value: SliceValue) -> dict[str, Any]:
    return {
        "name": value_text(value.value),
        "tables": [
            decomposition_table(value.deployments, value.pooled),
            level_table(value.levels, "Rates by level, all deployments together"),
            share_table(known(value.eta_squared, VarianceShareEntry)),
            range_table(known(value.horizontal, RangeEntry)),
        ],
    }


def value_text(value: Scalar) -> str:
    """Write the value of a field."""
    if value is None:
        return DASH
    return yes_no(value) if isinstance(value, bool | PlacedTruth) else as_words(str(value))


def groups_section(part: AnalysisDocument) -> PageSection | None:
    """Return the section of the groups; None if they are the deployments, which are in the summary."""
    estimated = [
        entry
        for entry in part.groups
        if entry.by and any(isinstance(entry.metrics[name], EstimateEntry) for name in _MEASURES)
    ]
    if not estimated or part.by == ["deployment"]:
        return None
    rows = [
        TableRow(
            name=by_text(entry.by),
            cells=[*size_cells(entry), *estimate_cells(entry.metrics, _MEASURES), text_cell(entry.sign_flip, yes_no)],
        )
        for entry in estimated[:MAX_GROUPS]
    ]
    heads = ["group", *SIZE_HEADS, *map(metric_head, _MEASURES), "DNI changes sign"]
    values = {"table": table("Groups with an estimate", heads, rows), "by": part.by, "cut": len(estimated) > MAX_GROUPS}
    return PageSection(name="groups", title="Groups", values=values)


def slice_map(field: str, values: Sequence[SliceValue]) -> Markup | None:
    """Draw the union rate by value of a field and deployment."""
    if not values:
        return None
    groups = {}
    for value in values:
        name = DASH if value.value is None else str(value.value)
        groups[name, _ALL] = value.pooled
        groups |= {(name, group_name(group.by)): group for group in value.deployments}
    unions = known((group.metrics[_METRIC] for group in groups.values()), EstimateEntry)
    top = scale_top(union.high for union in unions)
    return heat_map(
        f"Union rate by {as_words(field)}, %",
        list(dict.fromkeys(name for name, _ in groups)),
        sorted({column for _, column in groups} - {_ALL}),
        lambda name, column: _cell(groups.get((name, column)), f"{name}, {column}", top),
        last=_ALL,
        lines=[f"hatched: under {percent(COVERED, 0)} of the responses were read on both layers"],
    )


def _cell(group: GroupEntry | None, name: str, top: float) -> HeatCell | None:
    if group is None:
        return None
    union, coverage = group.metrics[_METRIC], group.coverage.eligible
    if isinstance(union, Missing):
        return HeatCell(text=DASH, hover=f"{name}: {union.missing}")
    return HeatCell(
        text=rate_text(union),
        hover=f"{name}: {estimate_text(_METRIC, union)}, n = {group.n:,}, both layers {percent(coverage)}",
        colour=Colour.ACCENT,
        strength=union.value / top,
        hatched=coverage < COVERED,
    )
