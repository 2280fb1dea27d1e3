"""Show how far the union rate depends on the templates drawn: variance components, contrasts, rates by template."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from markupsafe import Markup

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.generalizability import (
    ComponentEntry,
    ConditionTemplates,
    GeneralizabilityEntry,
    TemplateContrast,
)
from auditor.report.canvas import QUIET, UNION, Colour, Look, Plot
from auditor.report.document import deployment_names, known, reason
from auditor.report.drawing import (
    group_name,
    gutter_width,
    join_panels,
    open_rows,
    rate_scale,
    scale_top,
    write_beside,
)
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    bounded,
    count,
    low_high,
    no_value,
    number,
    table,
    text_cell,
    unsigned_points,
)
from auditor.report.templates import PageSection
from auditor.report.wording import TIMES, condition_order, condition_text, percent, points

_UNION: Final = "ber_union_full"
_LINE: Final = 24.0
#: Dots of templates lie around the middle of their condition's row, by at most this share of a row.
_SPREAD: Final = 0.34
#: Conditions in a drawing, in the instrument's order.
_MOST: Final = 24
_MOST_TABLED: Final = 40
#: Components in the order of the table; other interactions follow.
_COLUMNS: Final = ("template", "statement", "statement:condition", "deployment", "residual")


def section(part: AnalysisDocument) -> PageSection | None:
    """Return the section on templates; None where rows state none."""
    of_union = [entry for entry in part.generalizability if entry.outcome == _UNION]
    entries = known(of_union, GeneralizabilityEntry)
    if not entries:
        why = reason(of_union) if of_union else ""
        if "one template" not in why:
            return None
        return PageSection(name="generalizability", title=_TITLE, values={"missing": why})
    left_out = set(deployment_names(part)[_MOST_TABLED:])
    shown = [entry for entry in entries if entry.by.get("deployment") not in left_out]
    pooled = next((entry for entry in entries if not entry.by), None)
    conditions = [] if pooled is None else [each for each in pooled.conditions if each.templates]
    values: dict[str, Any] = {
        "missing": "",
        "components": component_table(shown),
        "contrasts": None if pooled is None else contrast_table(pooled.contrasts),
        "dots": template_dots(conditions),
        "cut": len(conditions) > _MOST,
        "borrowed": pooled is not None and "one_template" in pooled.flags,
    }
    return PageSection(name="generalizability", title=_TITLE, values=values)


_TITLE: Final = "Across templates: how far the wording matters"


def component_table(entries: Sequence[GeneralizabilityEntry]) -> ReportTable | None:
    """Make the table of variance components, a row for all rows and one for each deployment."""
    names = sorted({name for entry in entries for name in entry.components}, key=_column_order)
    rows = [
        TableRow(
            name=group_name(entry.by),
            cells=[
                count(entry.n_statements),
                count(entry.n_templates),
                bounded(entry.template_logit_sd, "{:.2f}".format),
                *(_component(entry.components.get(name)) for name in names),
            ],
            kind="" if entry.by else "pooled",
        )
        for entry in entries
    ]
    heads = ["deployment", "statements", "templates", "template, logit scale"]
    heads += [name.replace(":", f" {TIMES} ") for name in names]
    return table("How much the union rate differs: standard deviations", heads, rows)


def _column_order(name: str) -> tuple[int, str]:
    return _COLUMNS.index(name) if name in _COLUMNS else len(_COLUMNS), name


def _component(entry: ComponentEntry | None) -> TableCell:
    if entry is None:
        return no_value("not separated by this design")
    cell = number(entry.sd, unsigned_points)
    if isinstance(entry.sd_interval, tuple):
        cell = cell.above(low_high(entry.sd_interval, unsigned_points))
    return cell


def contrast_table(entries: Sequence[TemplateContrast]) -> ReportTable | None:
    """Make the table of the levels against their baseline, over all templates and for those asked."""
    absent = Missing(missing="not given")
    rows = [
        TableRow(
            name=f"{entry.factor}: {entry.level}",
            cells=[
                text_cell(entry.baseline),
                count(entry.n_templates),
                count(entry.n_templates_baseline),
                bounded(entry, points),
                low_high(entry.fixed if isinstance(entry.fixed, tuple) else absent, points),
            ],
        )
        for entry in entries
    ]
    heads = ["level", "against", "templates", "templates of the baseline", "difference", "these templates alone"]
    return table("Union rate against the baseline, over all templates and statements", heads, rows)


def template_dots(conditions: Sequence[ConditionTemplates]) -> Markup | None:
    """Draw the rate of each template with its interval, a row a condition."""
    ordered = sorted(conditions, key=lambda each: condition_order(each.condition))[:_MOST]
    if not ordered:
        return None
    names = [condition_text(each.condition) for each in ordered]
    top = scale_top(rate.high for each in ordered for rate in each.templates)
    left = gutter_width(names, 220)
    plot = open_rows("Union rate by template", names, _LINE, left=left, right=70, aside="SD")
    rate_scale(plot, top)
    for y, each in enumerate(ordered):
        _row(plot, y, names[y], each)
    return join_panels([plot.svg("Union rate of each template, by condition")])


def _row(plot: Plot, y: int, name: str, entry: ConditionTemplates) -> None:
    many = len(entry.templates)
    for place, rate in enumerate(entry.templates):
        at = y + (_SPREAD * (2 * place / (many - 1) - 1) if many > 1 else 0)
        plot.across(at, rate.low, rate.high, Look(colour=Colour.SOFT, width=0.7, alpha=0.5))
        interval = f"[{percent(rate.low)}, {percent(rate.high)}]"
        hover = f"{name}, {rate.template}: {percent(rate.value)} {interval}, n = {rate.n:,}"
        plot.mark(rate.value, at, replace(UNION, size=2.8), hover)
    text = "one" if isinstance(entry.sd, Missing) else f"{100 * entry.sd:.1f} pp"
    write_beside(plot, y, text, QUIET)
