"""Show the crossed design: whether the factors add up (BiAxisAudit Table IV, Figures 7 and 8)."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, Final

from markupsafe import Markup
from msgspec import UnsetType

from auditor.counting.conditions import BASELINE, FACTORS, level_order, off_baseline
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.conditions import InteractionEntry, MissingVarianceShare, VarianceShareEntry
from auditor.documents.contrasts import AdditivityContrast, AdditivityEntry, SignFlipEntry
from auditor.documents.estimates import By, ConditionEntry, EstimateEntry
from auditor.metrics.estimate import FEW_CLUSTERS
from auditor.report.canvas import SEL, Colour, Look
from auditor.report.document import (
    NOT_ASKED,
    NOT_THERE,
    bounds_only,
    condition_levels,
    crossed_entries,
    deployment_names,
    drawn,
    known,
)
from auditor.report.drawing import (
    bar_length,
    change_text,
    open_rows,
    rate_scale,
    rate_text,
    rows_of,
    scale_top,
    write_beside,
)
from auditor.report.heat_map import HeatCell, heat_map
from auditor.report.prompts import condition_table
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    bounded,
    count,
    decimal,
    estimate_cell,
    metric_head,
    no_value,
    number,
    share,
    table,
    three_decimals,
)
from auditor.report.templates import PageSection
from auditor.report.variation import effect_cell
from auditor.report.wording import (
    DASH,
    TIMES,
    as_words,
    by_text,
    condition_order,
    condition_text,
    estimate_text,
    percent,
    points,
)

_PAIRS: Final = tuple(f"{first}:{second}" for first, second in combinations(FACTORS, 2))
#: Rows a map can show and still be read.
_MOST: Final = 72
_ALL: Final = "all deployments"
_LINE: Final = 26.0
_SPREAD: Final = Look(colour=Colour.SOFT, shape="dash", size=10, edge=4, width=4, alpha=0.4)


def section(part: AnalysisDocument) -> PageSection | None:
    """Return the section on interactions; None if no condition differs from the baseline in several factors."""
    if not any(crossed_entries(part.conditions)):
        return None
    missing = known(part.eta_squared, MissingVarianceShare)
    added = known(part.additivity, AdditivityEntry)
    values = {
        "additivity": _additivity_table(added),
        "largest": _largest_departure(added),
        "flips": [_flip_words(entry) for entry in known(part.sign_flips, SignFlipEntry)],
        "effects": _effect_table(known(part.eta_squared, VarianceShareEntry)),
        "effects_missing": next((e.missing for e in missing if e.design == "factorial" and not e.by), ""),
        "interaction": _interaction_table(part.interaction),
        "panel": interaction_panel(part.interaction),
        "map": cell_map(drawn(part, part.conditions), part.cells),
        "cells": condition_table(_crossed(part.cells), "All deployments together", "Figure 8"),
        "dni": _dni_table(part),
    }
    return PageSection(name="crossed", title="Crossed design: do the factors add up?", values=values)


def _crossed(entries: Iterable[ConditionEntry]) -> list[ConditionEntry]:
    return sorted(crossed_entries(entries), key=lambda entry: condition_order(entry.by))


def _effect_table(entries: Iterable[VarianceShareEntry]) -> ReportTable | None:
    crossed = [entry for entry in entries if entry.design == "factorial" and set(entry.by) <= {"deployment"}]
    crossed.sort(key=lambda entry: not entry.by)
    pairs = (*FACTORS, *_PAIRS)
    named = [name for name in pairs if any(isinstance(entry.effects.get(name), float) for entry in crossed)]
    heads = ["deployment", "responses", *(name.replace(":", f" {TIMES} ") for name in named)]
    rows = [_effects(entry, named) for entry in crossed]
    return table("η² of the selection rate over the crossed levels", heads, rows, source="Table IV")


def _effects(entry: VarianceShareEntry, named: list[str]) -> TableRow:
    """Make the row of the effects of one group; the largest interaction is marked if it is more than noise."""
    values = {name: value for name, value in entry.effects.items() if isinstance(value, float)}
    shown = [name for name in values if ":" in name and _is_shown(entry, name)]
    largest = max(shown, key=lambda name: values[name], default=None)
    cells = [effect_cell(entry, name) for name in named]
    cells = [cell.marked("largest") if name == largest else cell for name, cell in zip(named, cells, strict=True)]
    imbalance = NOT_THERE if isinstance(entry.imbalance, UnsetType) else entry.imbalance
    size = count(entry.n).above(decimal(imbalance, 2), "imbalance {}")
    return TableRow(name=by_text(entry.by), cells=[size, *cells], kind="" if entry.by else "pooled plain")


def _is_shown(entry: VarianceShareEntry, name: str) -> bool:
    """Return whether an effect is more than noise: neither its interval begins at zero nor is it printed as zero."""
    low, _ = entry.intervals.get(name, (0.0, 0.0))
    return low > 0 and decimal(entry.effects[name]).text != three_decimals(0)


def _additivity_table(entries: Iterable[AdditivityEntry]) -> ReportTable | None:
    """Make the table of joint changes against the sum of single ones; a departure whose interval excludes 0 is bold."""
    rows = [
        TableRow(
            name=f"{_changes(contrast, entry)}, {by_text(entry.by)}",
            cells=[
                count(contrast.n),
                bounded(contrast.joint, points),
                bounded(contrast.additive, points),
                _departure(contrast),
            ],
            kind="" if entry.by else "pooled plain",
        )
        for entry in sorted(entries, key=lambda entry: not entry.by)
        for contrast in entry.contrasts
    ]
    heads = ["changes", "responses", "both together", "sum of the two", "together less the sum"]
    return table("Selection rate: two changes together, and their sum", heads, rows, source="section VI-B")


def _departure(contrast: AdditivityContrast) -> TableCell:
    cell = bounded(contrast.departure, points)
    return cell.marked("largest") if _departs(contrast) else cell


def _departs(contrast: AdditivityContrast) -> bool:
    """Return whether a finding is allowed: enough statements, and an interval without 0."""
    return FEW_CLUSTERS not in contrast.flags and not contrast.departure.low <= 0 <= contrast.departure.high


def _changes(contrast: AdditivityContrast, entry: AdditivityEntry) -> str:
    before = dict(zip(FACTORS, entry.reference, strict=True))
    changed = zip(contrast.factors, contrast.levels, strict=True)
    return " + ".join(f"{as_words(before[factor])} \N{RIGHTWARDS ARROW} {as_words(level)}" for factor, level in changed)


def _largest_departure(entries: Iterable[AdditivityEntry]) -> dict[str, Any] | None:
    """Return the largest departure of all deployments together; one whose interval excludes 0 where there is one."""
    pooled = [(each, entry) for entry in entries if not entry.by for each in entry.contrasts]
    if not pooled:
        return None
    contrast, entry = max(pooled, key=lambda pair: (_departs(pair[0]), abs(pair[0].departure.value)))
    return {
        "changes": _changes(contrast, entry),
        "joint": bounded(contrast.joint, points),
        "additive": bounded(contrast.additive, points),
        "departure": bounded(contrast.departure, points),
        "departs": _departs(contrast),
    }


def _flip_words(entry: SignFlipEntry) -> dict[str, Any]:
    """Return the numbers of the sentence on flips."""
    return {
        "name": "All deployments together" if not entry.by else by_text(entry.by),
        "opposite": count(entry.n_opposite),
        "conditions": count(entry.n_conditions),
        "flipped": count(entry.n_flipped),
        "tested": count(entry.n_tested),
        "lowest": number(entry.lowest, points),
        "highest": number(entry.highest, points),
    }


def _interaction_table(entries: Iterable[InteractionEntry]) -> ReportTable | None:
    """Make the table by task and sentiment: all responses together, and mean and spread of the deployments."""
    rows = [
        TableRow(
            name=f"{entry.task}, {entry.sentiment}",
            cells=[
                count(entry.n),
                count(entry.n_deployments),
                estimate_cell(entry.ber_sel_full, "ber_sel_full"),
                share(entry.mean),
                share(entry.sd),
            ],
        )
        for entry in entries
    ]
    heads = ["task, sentiment", "responses", "deployments", metric_head("ber_sel_full")]
    heads += ["mean of deployments", "SD of deployments"]
    return table("Selection rate by task and sentiment", heads, rows, source="Figure 7")


def _dni_table(part: AnalysisDocument) -> ReportTable | None:
    """Make the table of DNI by crossed condition and deployment; a sign other than at the baseline is marked."""
    entries = _crossed(part.conditions)
    by_cell = {(condition_text(entry.by), str(entry.by["deployment"])): entry for entry in entries}
    names = deployment_names(part)
    rows = [
        TableRow(name=condition, cells=[_dni(by_cell.get((condition, name))) for name in names])
        for condition in dict.fromkeys(condition for condition, _ in by_cell)
    ]
    return table("DNI by condition and deployment", ["condition", *names], rows, source="Figure 8")


def _dni(entry: ConditionEntry | None) -> TableCell:
    if entry is None:
        return no_value(NOT_ASKED.missing)
    cell = estimate_cell(entry.metrics["dni"], "dni", sized=True)
    return cell.marked("flipped") if _is_flipped(entry) else cell


def _is_flipped(entry: ConditionEntry) -> bool:
    return not isinstance(entry.sign_flip, Missing) and bool(entry.sign_flip)


def cell_map(conditions: Sequence[ConditionEntry], cells: Sequence[ConditionEntry]) -> Markup | None:
    """Draw DNI of each crossed cell by deployment; a corner marks another sign than at the baseline.

    Parameters
    ----------
    conditions, cells
        The document's entries of one rubric: by deployment, and of all deployments.
    """
    crossed = _crossed_names(entry.by for entry in (*conditions, *cells))
    if not crossed:
        return None
    by_cell = {(condition_text(entry.by), str(entry.by.get("deployment", _ALL))): entry for entry in conditions}
    by_cell |= {(condition_text(entry.by), _ALL): entry for entry in cells}
    dni = known((entry.metrics["dni"] for (name, _), entry in by_cell.items() if name in crossed), EstimateEntry)
    reach = max((abs(each.value) for each in dni), default=0.0) or 1.0
    return heat_map(
        "DNI by crossed condition, pp",
        crossed[:_MOST],
        sorted({str(entry.by["deployment"]) for entry in conditions}),
        lambda name, column: _cell(by_cell.get((name, column)), f"{name}, {column}", reach),
        last=_ALL if cells else "",
        lines=[
            "+ selection over-estimates, \N{MINUS SIGN} it under-estimates;",
            "\N{BLACK UPPER RIGHT TRIANGLE} another sign than at the baseline",
            *([f"the first {_MOST} of {len(crossed)} conditions; the table has all"] if len(crossed) > _MOST else []),
        ],
    )


def _crossed_names(places: Iterable[By]) -> list[str]:
    """Name the conditions of the crossed design: those whose levels all occur in a combination, and the baseline."""
    by_name = {condition_text(by): condition_levels(by) for by in places}
    combined = [levels for levels in by_name.values() if off_baseline(levels) > 1]
    if not combined:
        return []
    varied = [{base, *levels} for base, levels in zip(BASELINE, zip(*combined, strict=True), strict=True)]
    inside = {
        name: levels
        for name, levels in by_name.items()
        if all(level in level_set for level, level_set in zip(levels, varied, strict=True))
    }
    return sorted(inside, key=lambda name: list(map(level_order, FACTORS, inside[name])))


def _cell(entry: ConditionEntry | None, name: str, reach: float) -> HeatCell | None:
    if entry is None:
        return None
    dni = entry.metrics["dni"]
    if isinstance(dni, Missing):
        return HeatCell(text=DASH, hover=f"{name}: {dni.missing}")
    return HeatCell(
        text=change_text(dni),
        hover=f"{name}: DNI {estimate_text('dni', dni)}, n = {entry.n_eligible:,}",
        colour=Colour.OVER if dni.value > 0 else Colour.UNDER,
        strength=abs(bar_length(dni)) / reach,
        flipped=_is_flipped(entry),
    )


def interaction_panel(interaction: Sequence[InteractionEntry]) -> Markup | None:
    """Draw the selection rate by task and sentiment: pooled with its interval, and one SD over the deployments.

    Parameters
    ----------
    interaction
        The document's entries of one rubric; those without a rate are left out.
    """
    drawn = [(entry, rate) for entry in interaction if isinstance(rate := entry.ber_sel_full, EstimateEntry)]
    # By task and by sentiment, both in the instrument's order.
    drawn.sort(key=lambda pair: (level_order("task", pair[0].task), level_order("sentiment", pair[0].sentiment)))
    if not drawn:
        return None
    names = [f"{entry.task}, {entry.sentiment}" for entry, _ in drawn]
    top = scale_top(end for entry, rate in drawn for end in (rate.high, *(_band(entry) or ())))
    key = [(SEL, "pooled"), (_SPREAD, "mean of deployments \N{PLUS-MINUS SIGN} 1 SD")]
    plot = open_rows("Selection by task and sentiment", names, _LINE, key=key)
    rate_scale(plot, top)
    for y, (entry, rate) in enumerate(drawn):
        alpha = 0.14 if entry.sentiment == BASELINE[3] else 0.34
        band = _band(entry)
        spread = f", {percent(band[0])} to {percent(band[1])}" if band else ""
        pooled = f"{names[y]}: pooled {estimate_text('ber_sel_full', rate)}, n = {entry.n:,}"
        hover = f"{pooled}; {entry.n_deployments} deployments{spread}"
        plot.box((0, bar_length(rate)), rows_of(y, 0.66), Colour.SEL, alpha=alpha, hover=hover)
        if band:
            plot.across(y + 0.2, *band, _SPREAD)
        plot.across(y - 0.1, rate.low, rate.high, Look(colour=Colour.SEL, width=2))
        if not bounds_only(rate):
            plot.mark(rate.value, y - 0.1, SEL)
        write_beside(plot, y, rate_text(rate))
    return plot.svg("BER of the selection by task and sentiment, pooled, with the spread over deployments")


def _band(entry: InteractionEntry) -> tuple[float, float] | None:
    """Return the mean of the deployments minus and plus one SD, within [0, 1]; None for few deployments."""
    if isinstance(entry.mean, Missing) or isinstance(entry.sd, Missing):
        return None
    return max(0.0, entry.mean - entry.sd), min(1.0, entry.mean + entry.sd)
