"""Show how far the rates depend on the prompt (BiAxisAudit Figures 1, 5 and 9)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from markupsafe import Markup

from auditor.counting.conditions import FACTORS, off_baseline
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.conditions import FactorEntry, LevelRange, RangeEntry, VarianceShareEntry
from auditor.documents.contrasts import DominanceEntry
from auditor.documents.estimates import ConditionEntry, EstimateEntry
from auditor.report.canvas import ELAB, SEL, UNION, Look, Plot
from auditor.report.document import bounds_only, condition_levels, conditions_of, deployment_names, drawn, known
from auditor.report.drawing import (
    draw_interval,
    gutter_width,
    join_panels,
    open_rows,
    rate_scale,
    rate_text,
    scale_top,
    write_beside,
    write_reason,
)
from auditor.report.levels import factor_panels, family_panels
from auditor.report.tables import (
    SIZE_HEADS,
    ReportTable,
    TableCell,
    TableRow,
    bounded,
    count,
    estimate_cell,
    estimate_cells,
    metric_head,
    no_value,
    number,
    short_name,
    size_cells,
    table,
    text_cell,
    three_decimals,
    unsigned_points,
)
from auditor.report.templates import PageSection
from auditor.report.variation import by_responses, effect_cell, range_table, share_bars, share_table, swing_bars
from auditor.report.wording import as_words, condition_order, condition_text, estimate_text, yes_no

CONDITION_MEASURES: Final = ("ber_sel_full", "ber_elab_full", "ber_union_full", "ber_cor", "ir", "dni")
_UNION: Final = "ber_union_full"
_OUTCOMES: Final = ("ber_sel_full", "ber_elab_full", "ber_cor", "ber_union_full")
_LINE: Final = 20.0
#: Conditions a panel can show and still be read.
MOST: Final = 60
_LAYERS: Final = (("ber_sel_full", "selection", SEL), ("ber_elab_full", "elaboration", ELAB))


def section(part: AnalysisDocument) -> PageSection | None:
    """Return the section on the effect of the prompt; None if there is only one condition."""
    if len(conditions_of(part)) < 2:
        return None
    horizontal, shares = known(part.horizontal, RangeEntry), known(part.eta_squared, VarianceShareEntry)
    by_deployment = [entry for entry in shares if set(entry.by) <= {"deployment"}]
    by_category = [entry for entry in shares if set(entry.by) == {"category"}]
    by_choice = [entry for entry in shares if entry.design == "deployment" and not entry.by]
    grid, conditions = _grid(part.conditions), drawn(part, part.conditions)
    values = {
        "levels": factor_panels(conditions, part.levels),
        "swings": swing_bars(drawn(part, horizontal), conditions),
        "ranges": range_table(horizontal),
        "families": family_panels(conditions, part.levels, part.factors),
        "factors": [_factor_table(part.factors, caption, write) for caption, write in _FACTOR_TABLES],
        "share_bars": share_bars(drawn(part, by_responses(by_deployment))),
        "shares": share_table(by_deployment),
        "category_shares": share_table(by_category, "category"),
        "dominance": next(map(_dominance_words, known(part.dominance, DominanceEntry)), None),
        "deployment_shares": [(short_name(entry.outcome), effect_cell(entry, "deployment")) for entry in by_choice],
        "table": condition_table(_grid(part.cells), "Rates by condition, all deployments together"),
        "panels": condition_panels(drawn(part, grid)),
        "cut": len({condition_levels(entry.by) for entry in grid}) > MOST,
        "by_deployment": _by_deployment(part),
    }
    return PageSection(name="prompts", title="Across prompts: how the prompt changes the rates", values=values)


def _dominance_words(entry: DominanceEntry) -> dict[str, Any]:
    """Return the numbers of the sentence on categories, and the categories in which the factor does not dominate."""
    others = [each for each in entry.categories if not each.exceeds]
    return {
        "factor": entry.factor,
        "largest": count(entry.n_largest),
        "exceeding": count(entry.n_exceeding),
        "supported": count(entry.n_supported),
        "categories": count(entry.n_categories),
        "times": number(entry.times, "{:g}".format),
        "others": [
            (
                as_words(each.category),
                number(each.share.value, three_decimals),
                each.next_factor,
                number(each.next_share.value, three_decimals),
            )
            for each in others
        ],
    }


def _factor_table(
    entries: Sequence[FactorEntry], caption: str, write: Callable[[FactorEntry], TableCell]
) -> ReportTable | None:
    """Make a table by factor and rate."""
    cells = {(entry.factor, entry.outcome): write(entry) for entry in entries}
    outcomes = [outcome for outcome in _OUTCOMES if any(key[1] == outcome for key in cells)]
    absent = no_value("not asked")
    rows = [
        TableRow(name=factor, cells=[cells.get((factor, outcome), absent) for outcome in outcomes])
        for factor in FACTORS
        if any(not cell.reason for (name, _), cell in cells.items() if name == factor)
    ]
    return table(caption, ["factor", *map(metric_head, outcomes)], rows if cells else [], source="Figure 9")


def _share_cell(entry: FactorEntry) -> TableCell:
    """Print a share of variance with its interval, and how many responses it rests on."""
    return bounded(entry.eta_squared, three_decimals).above(count(entry.n), "n = {}")


def _range_cell(entry: FactorEntry) -> TableCell:
    """Print a range with its interval, and between which levels it is."""
    cell = bounded(entry.range, unsigned_points)
    if not isinstance(spread := entry.range, LevelRange):
        return cell
    return cell.above(text_cell(spread.min_at), "from {}").above(text_cell(spread.max_at), "to {}")


_FACTOR_TABLES: Final = (
    ("Share of the variance (η²) that a factor explains, by rate", _share_cell),
    ("Range over the levels of a factor, by rate", _range_cell),
)


def _grid(cells: Iterable[ConditionEntry]) -> list[ConditionEntry]:
    """Keep the conditions that depart from the baseline in one factor at most."""
    kept = [cell for cell in cells if off_baseline(condition_levels(cell.by)) <= 1]
    return sorted(kept, key=lambda cell: condition_order(cell.by))


def condition_table(cells: Iterable[ConditionEntry], caption: str, source: str = "") -> ReportTable | None:
    """Make the table of the pooled rates of some conditions."""
    rows = [
        TableRow(
            name=condition_text(cell.by),
            cells=[
                *size_cells(cell),
                *estimate_cells(cell.metrics, CONDITION_MEASURES),
                text_cell(cell.sign_flip, yes_no),
            ],
        )
        for cell in cells
    ]
    heads = ["condition", *SIZE_HEADS, *map(metric_head, CONDITION_MEASURES), "DNI changes sign"]
    return table(caption, heads, rows, source=source)


def _by_deployment(part: AnalysisDocument) -> ReportTable | None:
    """Make the table of the union rate by condition and deployment."""
    entries, names = _grid(part.conditions), deployment_names(part)
    rates = {(condition_text(entry.by), str(entry.by["deployment"])): entry.metrics[_UNION] for entry in entries}
    absent = Missing(missing="not asked")
    rows = [
        TableRow(
            name=condition,
            cells=[estimate_cell(rates.get((condition, name), absent), _UNION, sized=True) for name in names],
        )
        for condition in dict.fromkeys(condition for condition, _ in rates)
    ]
    return table("Union rate by condition and deployment", ["condition", *names], rows)


def condition_panels(conditions: Sequence[ConditionEntry]) -> Markup | None:
    """Draw the union rate by condition with intervals, a panel a deployment; both layers as small marks.

    Parameters
    ----------
    conditions
        The document's entries of one rubric.
    """
    by_deployment: dict[str, dict[str, ConditionEntry]] = {}
    ordered = sorted(conditions, key=lambda entry: condition_order(entry.by))
    for entry in ordered:
        by_deployment.setdefault(str(entry.by["deployment"]), {})[condition_text(entry.by)] = entry
    names = list(dict.fromkeys(condition_text(entry.by) for entry in ordered))[:MOST]
    top = scale_top(union.high for union in known((entry.metrics[_UNION] for entry in conditions), EstimateEntry))
    panels = [_panel(name, names, entries, top) for name, entries in sorted(by_deployment.items())]
    return join_panels(panels) if panels else None


def _panel(deployment: str, names: Sequence[str], entries: Mapping[str, ConditionEntry], top: float) -> Markup:
    key = [(UNION, "either layer"), *((_hollow(look), name) for _, name, look in _LAYERS)]
    plot = open_rows(deployment, names, _LINE, left=gutter_width(names, 220), right=56, key=key)
    rate_scale(plot, top)
    for y, name in enumerate(names):
        if name in entries:
            _row(plot, y, name, entries[name])
    return plot.svg(f"{deployment}: rates by condition, of the selection, of the elaboration and of either")


def _row(plot: Plot, y: int, name: str, entry: ConditionEntry) -> None:
    union = entry.metrics[_UNION]
    for metric, layer, look in _LAYERS:
        estimate = entry.metrics[metric]
        if isinstance(estimate, EstimateEntry) and not bounds_only(estimate):
            plot.mark(estimate.value, y, _hollow(look), f"{name}: {layer} {estimate_text(metric, estimate)}")
    if isinstance(union, Missing):
        write_reason(plot, y, name, union)
        return
    draw_interval(plot, y, union, UNION)
    write_beside(plot, y, rate_text(union), hover=f"{name}: {estimate_text(_UNION, union)}, n = {entry.n:,}")


def _hollow(look: Look) -> Look:
    return replace(look, edge=1.2, is_hollow=True)
