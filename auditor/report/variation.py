"""Show how much the prompt moves the union rate: its range over levels, and the share of variance of each factor."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from markupsafe import Markup

from auditor.counting.conditions import BASELINE, FACTORS
from auditor.documents.base import Missing
from auditor.documents.conditions import RangeEntry, VarianceShareEntry
from auditor.documents.estimates import ConditionEntry, EstimateEntry
from auditor.report.canvas import BOLD, PLAIN, QUIET, ROW, SMALL, Colour, Look, Plot, line_look
from auditor.report.document import NOT_ASKED, NOT_THERE, bounds_only, condition_levels
from auditor.report.drawing import (
    RATES,
    group_name,
    gutter_width,
    join_panels,
    open_rows,
    rate_scale,
    rows_of,
    scale_top,
    write_beside,
)
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    bounded,
    count,
    decimal,
    low_high,
    no_value,
    share,
    table,
    text_cell,
    three_decimals,
    unsigned_points,
)
from auditor.report.wording import DASH, estimate_text, percent

_ALL: Final = "all rows"
#: Effects with a panel each: the factors alone, and the deployment; interactions have their table.
_EFFECTS: Final = (*FACTORS, "deployment")
_LINE: Final = 36.0
#: The tasks' marks need more room than a bar.
_METRIC: Final = "ber_union_full"


def range_table(entries: Sequence[RangeEntry]) -> ReportTable | None:
    """Make the table of the range of the union rate over each factor, by deployment (BiAxisAudit Figure 5)."""
    ranges = sorted((e for e in entries if e.metric == _METRIC), key=lambda entry: "deployment" not in entry.by)
    factors = [factor for factor in FACTORS if any(entry.over == factor for entry in ranges)]
    groups: dict[str, dict[str, RangeEntry]] = {}
    for entry in ranges:
        groups.setdefault(str(entry.by.get("deployment", _ALL)), {})[entry.over] = entry
    rows = [
        TableRow(
            name=name,
            cells=[
                *_ends(by_factor.get("task")),
                *(bounded(by_factor.get(each, NOT_ASKED), unsigned_points) for each in factors),
            ],
            kind="pooled" if name == _ALL else "",
        )
        for name, by_factor in groups.items()
    ]
    heads = ["deployment", "statements", "lowest task", "highest task", *(f"range over {factor}" for factor in factors)]
    return table("Range of the union rate over the levels of a factor", heads, rows, source="Figure 5")


def _ends(entry: RangeEntry | None) -> list[TableCell]:
    """Print how many statements a range rests on, and its ends, over the level where each is."""
    if entry is None:
        return [no_value(NOT_ASKED.missing)] * 3
    ends = ((entry.min, entry.min_at), (entry.max, entry.max_at))
    return [count(entry.n_statements), *(share(value).above(text_cell(at)) for value, at in ends)]


def share_table(entries: Sequence[VarianceShareEntry], of: str = "deployment") -> ReportTable | None:
    """Make the table of each factor's share of the union rate's variance, with a row per value of the field ``of``."""
    shares = sorted(by_responses(entries), key=lambda entry: of not in entry.by)
    alike = [e for e in entries if (e.design, e.weights) == ("oat", "equal") and of not in e.by]
    factors = [name for name in FACTORS if any(isinstance(e.effects.get(name), float) for e in (*shares, *alike))]
    rows = [_effects(str(entry.by.get(of, _ALL)), entry, factors) for entry in shares]
    rows += [_effects("all rows, equal weight for each condition", entry, factors, "mean") for entry in alike]
    heads = [of, "responses", *(f"η² {factor}" for factor in factors)]
    caption = "Share of the variance of the union rate that a factor explains"
    return table(caption, heads, rows if factors else [], source="section V-B")


def by_responses(entries: Sequence[VarianceShareEntry]) -> list[VarianceShareEntry]:
    """Choose the shares over the one-at-a-time grid in which every response counts alike."""
    return [entry for entry in entries if (entry.design, entry.weights) == ("oat", "responses")]


def _effects(name: str, entry: VarianceShareEntry, factors: Sequence[str], kind: str = "") -> TableRow:
    cells = [count(entry.n), *(effect_cell(entry, factor) for factor in factors)]
    return TableRow(name=name, cells=cells, kind=kind or ("pooled" if name == _ALL else ""))


def effect_cell(entry: VarianceShareEntry, name: str) -> TableCell:
    """Print one effect with its interval."""
    interval = low_high(entry.intervals.get(name, NOT_THERE), three_decimals)
    return decimal(entry.effects.get(name, NOT_THERE)).above(interval)


def share_bars(eta_squared: Sequence[VarianceShareEntry]) -> Markup | None:
    """Draw eta squared with its intervals, a panel an effect and a line a deployment.

    Parameters
    ----------
    eta_squared
        The document's rows of one rubric and one design or, after them, those of the deployment's share.
    """
    panels = []
    for effect in _EFFECTS:
        entries = [entry for entry in eta_squared if effect in entry.effects]
        if ends := [max(_bounds(e, effect)) for e in entries if isinstance(e.effects[effect], float)]:
            panels.append((effect, entries, max(ends)))
    top = max(0.02, *(end for _, _, end in panels), 0.0)
    return join_panels(_share_panel(effect, entries, top) for effect, entries, _ in panels) if panels else None


def _share_panel(effect: str, entries: Sequence[VarianceShareEntry], top: float) -> Markup:
    # Rows of the deployment's share have the name of their outcome.
    names = [RATES.get(e.outcome, e.outcome) if effect == "deployment" else group_name(e.by) for e in entries]
    pooled = [place for place, entry in enumerate(entries) if not entry.by]
    left, title = gutter_width(names, 160), effect.capitalize()
    plot = open_rows(title, names, ROW, width=SMALL, left=left, top=34, bottom=4, aside="η²", bold=pooled)
    plot.set_x(0, top)
    plot.rule_x(0)
    for y, entry in enumerate(entries):
        value = entry.effects[effect]
        if not isinstance(value, float):
            write_beside(plot, y, DASH, QUIET)
            continue
        low, high = _bounds(entry, effect)
        hover = f"{names[y]}: {value:.3f}" + (f" [{low:.3f}, {high:.3f}]" if low < high else "")
        plot.box((0, value), rows_of(y, 0.55), Colour.ACCENT, alpha=0.4, hover=hover)
        plot.across(y, low, high, Look(colour=Colour.ACCENT, width=1.8))
        write_beside(plot, y, f"{value:.3f}", BOLD if y in pooled else PLAIN)
    return plot.svg(f"Share of variance that {effect} explains, by deployment")


def _bounds(entry: VarianceShareEntry, effect: str) -> tuple[float, float]:
    """Return the interval of a known effect, or its value twice if there is none."""
    value = entry.effects[effect]
    assert isinstance(value, float)
    return entry.intervals.get(effect, (value, value))


def swing_bars(horizontal: Sequence[RangeEntry], conditions: Sequence[ConditionEntry]) -> Markup | None:
    """Draw the smallest and largest union rate over the tasks, a line a deployment, and each task's rate.

    Parameters
    ----------
    horizontal, conditions
        The document's entries of one rubric.
    """
    ranges = [entry for entry in horizontal if (entry.over, entry.metric) == ("task", _METRIC)]
    if not ranges:
        return None
    rates: dict[str, dict[str, EstimateEntry | Missing]] = {}
    for entry in conditions:
        if condition_levels(entry.by)[1:] == BASELINE[1:]:
            rates.setdefault(str(entry.by["deployment"]), {})[str(entry.by["task"])] = entry.metrics[_METRIC]
    return _swing_panel(sorted(ranges, key=lambda entry: not entry.by), rates)


def _swing_panel(ranges: Sequence[RangeEntry], rates: Mapping[str, Mapping[str, EstimateEntry | Missing]]) -> Markup:
    names = [group_name(entry.by) for entry in ranges]
    tasks = sorted({task for by_task in rates.values() for task in by_task})
    looks = {task: _look(index) for index, task in enumerate(tasks)}
    key, left = [(look, task) for task, look in looks.items()], gutter_width(names)
    plot = open_rows("Union rate over the tasks", names, _LINE, left=left, right=104, key=key)
    rate_scale(plot, scale_top(entry.max for entry in ranges))
    for y, entry in enumerate(ranges):
        _bar(plot, y, entry)
        for task, estimate in rates.get(names[y], {}).items():
            _dot(plot, y, task, estimate, looks[task])
    return plot.svg("Smallest and largest union rate over the tasks, by deployment")


def _bar(plot: Plot, y: int, entry: RangeEntry) -> None:
    low, high = entry.min, entry.max
    hover = f"{group_name(entry.by)}: {percent(low)} at {entry.min_at} to {percent(high)} at {entry.max_at}"
    plot.box((low, high), rows_of(y, 0.34), Colour.ACCENT, alpha=0.22, hover=hover)
    for end in (low, high):
        plot.line((end, end), rows_of(y, 0.34), Look(colour=Colour.ACCENT, width=1.6))
    write_beside(plot, y, f"{100 * entry.range:.1f} pp", BOLD, dy=-8)
    write_beside(plot, y, f"[{100 * entry.low:.1f}, {100 * entry.high:.1f}]", QUIET, dy=8)


def _dot(plot: Plot, y: int, task: str, estimate: EstimateEntry | Missing, look: Look) -> None:
    if isinstance(estimate, EstimateEntry) and not bounds_only(estimate):
        plot.mark(estimate.value, y, look, f"{task}: {estimate_text(_METRIC, estimate)}")


def _look(index: int) -> Look:
    """Return the mark of a task."""
    return replace(line_look(index), size=6.6, edge=0.8, rim=Colour.PAPER)
