"""Show rates by the levels of one prompt factor: by deployment, pooled, and as their mean (Figures 1 and 9)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Final

from markupsafe import Markup
from msgspec import UNSET

from auditor.counting.conditions import BASELINE, FACTORS, single_factor_condition
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.conditions import FactorEntry, MitigationEntry, MitigationLevel, SelectionTestEntry
from auditor.documents.estimates import ConditionEntry, EstimateEntry, LevelEntry, Metrics
from auditor.report.canvas import PANEL, QUIET, ROW, SMALL, Colour, Look, Plot, line_look
from auditor.report.document import (
    NOT_ASKED,
    NOT_THERE,
    bounds_only,
    condition_levels,
    deployment_names,
    single_factor_levels,
)
from auditor.report.drawing import (
    RATES,
    draw_legend,
    gutter_width,
    join_panels,
    open_rows,
    rate_scale,
    rate_text,
    scale_top,
    write_beside,
)
from auditor.report.tables import (
    ReportTable,
    TableCell,
    TableRow,
    average,
    bounded,
    count,
    decimal,
    estimate_cell,
    estimate_cells,
    metric_head,
    no_value,
    probability,
    table,
    word_cell,
)
from auditor.report.wording import DASH, estimate_text, points

#: The paper's tables of each factor: all deployments together, and by deployment.
SOURCES: Final = {"task": ("", "Table IX"), "role": ("Table X", "Table XI"), "sentiment": ("Table XII", "Table XIII")}
LAYERS: Final = {"ber_sel_full": "Selection", "ber_elab_full": "Elaboration"}
UNION: Final = "ber_union_full"
_MEAN: Final = Look(colour=Colour.INK, shape="circle", size=6.2, width=2.2)
#: Metrics by factor and level.
_Rates = Mapping[tuple[str, str], Metrics]


def deployment_table(part: AnalysisDocument, factor: str, metric: str) -> ReportTable | None:
    """Make the table of one layer's rate by level and deployment (Tables IX, XI, XIII)."""
    by_condition = {(entry.by["deployment"], condition_levels(entry.by)): entry.metrics for entry in part.conditions}
    levels, names = single_factor_levels(part, factor), deployment_names(part)
    rates = [
        [_rate(by_condition.get((name, single_factor_condition(factor, each))), metric) for each in levels]
        for name in names
    ]
    # Free-response tasks have no selection: a column of nothing but dashes is none.
    kept = [index for index in range(len(levels)) if any(isinstance(line[index], EstimateEntry) for line in rates)]
    rows = [
        TableRow(name=name, cells=[_sized(line[index], metric) for index in kept])
        for name, line in zip(names, rates, strict=True)
    ]
    rows += _sums(part, factor, [levels[index] for index in kept], metric)
    heads = ["deployment", *(levels[index] for index in kept)]
    caption = f"{LAYERS[metric]} rate by {factor}: {_base(metric)}"
    return table(caption, heads, rows, source=SOURCES.get(factor, ("", ""))[1])


def _base(metric: str) -> str:
    return f"of all responses that have {'a selection' if metric == 'ber_sel_full' else 'an elaboration'}"


def _rate(metrics: Metrics | None, metric: str) -> EstimateEntry | Missing:
    return NOT_ASKED if metrics is None else metrics.get(metric, NOT_THERE)


def _sized(entry: EstimateEntry | Missing, metric: str) -> TableCell:
    return estimate_cell(entry, metric, sized=True)


_SUMS: Final[Sequence[tuple[str, str, Callable[[LevelEntry], Metrics], Callable[..., TableCell]]]] = (
    ("pooled by responses", "pooled", lambda level: level.pooled, _sized),
    ("mean of deployments", "mean", lambda level: level.metrics, average),
)


def _sums(part: AnalysisDocument, factor: str, levels: Sequence[str], metric: str) -> list[TableRow]:
    """Return the row of all responses together, and the row of unweighted means over deployments."""
    by_level = {entry.level: entry for entry in part.levels if entry.factor == factor}
    if not by_level:
        return []
    return [
        TableRow(name=name, kind=kind, cells=[write(_rate(of(by_level[level]), metric), metric) for level in levels])
        for name, kind, of, write in _SUMS
    ]


def test_table(part: AnalysisDocument, factor: str, mitigation: MitigationEntry | None) -> ReportTable | None:
    """Make the table of the selection rate by level, and its difference from the reference level (Tables X, XII)."""
    known = [
        (level, rate)
        for level in part.levels
        if level.factor == factor and isinstance(rate := level.pooled["ber_sel_full"], EstimateEntry)
    ]
    known.sort(key=lambda pair: pair[1].value)
    reference = BASELINE[FACTORS.index(factor)] if mitigation is None else mitigation.baseline
    tests = {} if mitigation is None else {level.level: level for level in mitigation.levels}
    rows = [_test(level, rate, tests.get(level.level), reference) for level, rate in known]
    heads = [factor, "responses", "mean of deployments", "pooled", f"change against {reference}"]
    heads += ["p", "Tukey's p", "Cohen's d", "Cohen's h"]
    caption = f"Selection rate by {factor}, lowest first"
    return table(caption, heads, rows, source=SOURCES.get(factor, ("", ""))[0])


def _test(level: LevelEntry, rate: EstimateEntry, test: MitigationLevel | None, reference: str) -> TableRow:
    cells = [
        count(level.n),
        average(level.metrics["ber_sel_full"], "ber_sel_full"),
        estimate_cell(rate, "ber_sel_full"),
    ]
    if level.level == reference:
        return TableRow(name=f"{level.level} (reference)", cells=[*cells, *[word_cell("")] * 5], kind="base")
    selection = NOT_ASKED if test is None else test.selection
    return TableRow(name=level.level, cells=[*cells, *_difference(selection)])


def _difference(test: SelectionTestEntry | Missing) -> list[TableCell]:
    if isinstance(test, Missing):
        return [no_value(test.missing)] * 5
    return [
        bounded(test, points),
        probability(test.p),
        probability(NOT_THERE if test.p_tukey is UNSET else test.p_tukey),
        decimal(test.cohen_d, 2),
        decimal(test.cohen_h, 2),
    ]


def level_table(levels: Sequence[LevelEntry], caption: str) -> ReportTable | None:
    """Make the table of the pooled rates of all levels of all factors."""
    names = ("ber_sel_full", "ber_elab_full", "ber_union_full", "ir", "dni")
    rows = [
        TableRow(
            name=f"{level.factor}: {level.level}",
            cells=[count(level.n), *estimate_cells(level.pooled, names, sized=True)],
        )
        for level in levels
    ]
    return table(caption, ["level", "responses", *map(metric_head, names)], rows)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Chart:
    """Data that all panels of a figure share."""

    order: Mapping[str, Sequence[str]]  #: the levels by factor
    means: _Rates
    lines: Mapping[str, _Rates]  #: by deployment
    top: float
    gutter: float


def factor_panels(conditions: Sequence[ConditionEntry], levels: Sequence[LevelEntry]) -> Markup | None:
    """Draw the union rate by level, a panel a prompt factor (BiAxisAudit Fig. 1).

    Parameters
    ----------
    conditions, levels
        The document's entries of one rubric.
    """
    chart = _chart(conditions, levels, [UNION])
    if not chart.order:
        return None
    panels = [_panel(chart, factor, UNION, PANEL, factor.capitalize()) for factor in chart.order]
    return join_panels([*panels, _legend(chart)])


def family_panels(
    conditions: Sequence[ConditionEntry], levels: Sequence[LevelEntry], factors: Sequence[FactorEntry]
) -> Markup | None:
    """Draw all four rates by level, in the order of ``factor_panels`` (BiAxisAudit Fig. 9).

    Parameters
    ----------
    conditions, levels, factors
        The document's entries of one rubric; ``factors`` gives each panel its share of variance and its range.
    """
    chart = _chart(conditions, levels, list(RATES))
    if not chart.order:
        return None
    stated = {(str(entry.factor), entry.outcome): entry for entry in factors}
    panels = [
        _panel(chart, factor, metric, SMALL, f"{factor.capitalize()}, {name}", *_stated(stated.get((factor, metric))))
        for metric, name in RATES.items()
        for factor in chart.order
    ]
    return join_panels([*panels, _legend(chart)])


def _chart(conditions: Sequence[ConditionEntry], levels: Sequence[LevelEntry], metrics: Sequence[str]) -> _Chart:
    means: _Rates = {(str(entry.factor), entry.level): entry.metrics for entry in levels}
    lines: dict[str, dict[tuple[str, str], Metrics]] = {}
    for entry in conditions:
        condition = condition_levels(entry.by)
        for place, factor in enumerate(FACTORS):
            if condition == single_factor_condition(factor, condition[place]):
                lines.setdefault(str(entry.by["deployment"]), {})[factor, condition[place]] = entry.metrics
    measured = [metric for rates in (means, *lines.values()) for metric in rates.values()]
    drawn = [value for each in measured for name in metrics if (value := _claimed(_rate(each, name))) is not None]
    room = gutter_width(name for _, name in means)
    return _Chart(
        order=_order(means), means=means, lines=dict(sorted(lines.items())), top=scale_top(drawn), gutter=room
    )


def _order(means: _Rates) -> dict[str, list[str]]:
    """Order the levels of each factor that has several by their mean union rate, the highest first."""

    def height(place: tuple[str, str]) -> tuple[float, str]:
        union = means[place][UNION]
        return -union.value if isinstance(union, EstimateEntry) else 1.0, place[1]

    order = {factor: [place[1] for place in sorted(means, key=height) if place[0] == factor] for factor in FACTORS}
    return {factor: names for factor, names in order.items() if len(names) > 1}


def _panel(chart: _Chart, factor: str, metric: str, width: float, title: str, *lines: str) -> Markup:
    names, top = chart.order[factor], 34.0 + 17 * len(lines)
    plot = open_rows(title, names, ROW, width=width, left=chart.gutter, right=46, top=top, lines=lines, aside="mean")
    rate_scale(plot, chart.top, wanted=4 if width == PANEL else 2)
    places = [(factor, name) for name in names]
    for index, (deployment, metrics) in enumerate(chart.lines.items()):
        _line(plot, deployment, [_rate(metrics.get(place), metric) for place in places], index)
    _mean(plot, [_rate(chart.means[place], metric) for place in places], metric)
    return plot.svg(f"{title}: rate by level of {factor}, by deployment and on average")


def _line(plot: Plot, deployment: str, estimates: Sequence[EstimateEntry | Missing], index: int) -> None:
    """Draw one deployment; a rate with reliable bounds only has no mark."""
    look = line_look(index)
    values = [nan if isinstance(estimate, Missing) else estimate.value for estimate in estimates]
    plot.line(values, range(len(estimates)), look, deployment)
    for y, estimate in enumerate(estimates):
        value = _claimed(estimate)
        if value is not None:
            plot.mark(value, y, look, deployment)


def _mean(plot: Plot, estimates: Sequence[EstimateEntry | Missing], metric: str) -> None:
    values = [nan if (value := _claimed(estimate)) is None else value for estimate in estimates]
    plot.line(values, range(len(estimates)), _MEAN)
    for y, estimate in enumerate(estimates):
        if isinstance(estimate, Missing):
            write_beside(plot, y, DASH, QUIET)
            continue
        bar = Look(colour=Colour.INK, width=5, alpha=0.3)
        plot.across(y, estimate.low, estimate.high, bar, f"mean {estimate_text(metric, estimate)}")
        if not bounds_only(estimate):
            plot.mark(estimate.value, y, _MEAN)
        write_beside(plot, y, rate_text(estimate))


def _claimed(estimate: EstimateEntry | Missing) -> float | None:
    """Return the value of an estimate, if more than its bounds is reliable."""
    return None if isinstance(estimate, Missing) or bounds_only(estimate) else estimate.value


def _stated(entry: FactorEntry | None) -> tuple[str, str]:
    """Write a panel's share of variance and range."""
    eta = delta = DASH
    if entry is not None and not isinstance(share := entry.eta_squared, Missing):
        eta = f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"
    if entry is not None and not isinstance(spread := entry.range, Missing):
        delta = f"{points(spread.range)[1:]} [{100 * spread.low:.1f}, {100 * spread.high:.1f}]"
    return f"η² {eta}", f"Δ {delta}"


def _legend(chart: _Chart) -> Markup:
    looks = [(line_look(index), deployment) for index, deployment in enumerate(chart.lines)]
    return draw_legend([(_MEAN, "mean of the deployments, with its interval"), *looks])
