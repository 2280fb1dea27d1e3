"""Rates by level of each prompt factor: a thin line a deployment, a thick one for their mean with its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from auditor.metrics.shares import FACTORS, own_condition
from auditor.report.figures.parts import (
    RATES,
    beside,
    bounds_only,
    ceiling,
    gutter,
    head,
    joined,
    known,
    legend,
    rate_scale,
    rate_text,
    rows,
    told,
)
from auditor.report.figures.theme import PANEL, ROW, SMALL, Colour, finish, series, sheet
from auditor.report.words import DASH, Entry, condition_levels, estimate_text, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNION: Final = "ber_union_full"
_MEAN: Final[dict[str, Any]] = {"color": Colour.INK, "linewidth": 2.2}
_DOT: Final[dict[str, Any]] = {"marker": "o", "markersize": 6.2, "markeredgewidth": 0}

#: Metrics by factor and level.
_Metrics = Mapping[tuple[str, str], Mapping[str, Entry]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Chart:
    """What all panels of a figure share."""

    order: Mapping[str, Sequence[str]]  #: the levels by factor
    means: _Metrics
    lines: Mapping[str, _Metrics]  #: by deployment
    top: float
    gutter: float


def factor_panels(conditions: Sequence[Entry], levels: Sequence[Entry]) -> Markup | None:
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
    return joined([*panels, _legend(chart)])


def family_panels(conditions: Sequence[Entry], levels: Sequence[Entry], factors: Sequence[Entry]) -> Markup | None:
    """Draw all four rates by level, in the order of ``factor_panels`` (BiAxisAudit Fig. 9).

    Parameters
    ----------
    conditions, levels, factors
        The document's entries of one rubric; ``factors`` gives each panel its share of variance and its range.
    """
    chart = _chart(conditions, levels, RATES)
    if not chart.order:
        return None
    stated = {(entry["factor"], entry["outcome"]): entry for entry in factors}
    panels = [
        _panel(
            chart, factor, metric, SMALL, f"{factor.capitalize()}, {name}", *_stated(stated.get((factor, metric), {}))
        )
        for metric, name in RATES.items()
        for factor in chart.order
    ]
    return joined([*panels, _legend(chart)])


def _chart(conditions: Sequence[Entry], levels: Sequence[Entry], metrics: Sequence[str] | Mapping[str, str]) -> _Chart:
    means = {(entry["factor"], entry["level"]): entry["metrics"] for entry in levels}
    lines: dict[str, dict[tuple[str, str], Mapping[str, Entry]]] = {}
    for entry in conditions:
        own = condition_levels(entry["by"])
        for place, factor in enumerate(FACTORS):
            if own == own_condition(factor, own[place]):
                lines.setdefault(str(entry["by"]["deployment"]), {})[factor, own[place]] = entry["metrics"]
    found = [metric for profile in (means, *lines.values()) for metric in profile.values()]
    drawn = [each[name] for each in found for name in metrics if name in each and _claimed(each[name])]
    top = ceiling(estimate["value"] for estimate in drawn)
    room = gutter(name for _, name in means)
    return _Chart(order=_order(means), means=means, lines=dict(sorted(lines.items())), top=top, gutter=room)


def _order(means: _Metrics) -> dict[str, list[str]]:
    """Order the levels of each factor that has several by their mean union rate, the highest first."""

    def height(place: tuple[str, str]) -> tuple[float, str]:
        union = means[place][UNION]
        return -union["value"] if known(union) else 1.0, place[1]

    order = {factor: [place[1] for place in sorted(means, key=height) if place[0] == factor] for factor in FACTORS}
    return {factor: names for factor, names in order.items() if len(names) > 1}


def _panel(chart: _Chart, factor: str, metric: str, width: float, title: str, *lines: str) -> Markup:
    names = chart.order[factor]
    top = 28.0 + 15 * len(lines)
    with sheet(width, top + ROW * len(names) + 24, left=chart.gutter, right=40, top=top, bottom=24) as axes:
        head(axes, title, *lines, aside="mean")
        rows(axes, names)
        rate_scale(axes, chart.top, wanted=4 if width == PANEL else 2)
        places = [(factor, name) for name in names]
        for index, (deployment, metrics) in enumerate(chart.lines.items()):
            _line(axes, deployment, [metrics.get(place, {}).get(metric, {}) for place in places], index)
        _mean(axes, [chart.means[place].get(metric, {}) for place in places], metric)
        return finish(axes, f"{title}: rate by level of {factor}, by deployment and on average")


def _line(axes: "Axes", deployment: str, estimates: Sequence[Entry], index: int) -> None:
    """Draw one deployment; a rate of which only bounds hold has no mark."""
    look = series(index)
    x = [estimate["value"] if known(estimate) and estimate else nan for estimate in estimates]
    (line,) = axes.plot(
        x,
        range(len(x)),
        color=look.colour,
        linestyle=look.dashes,
        linewidth=1,
        marker=look.marker,
        markersize=4,
        markeredgewidth=0,
        markevery=[place for place, estimate in enumerate(estimates) if _claimed(estimate)],
    )
    told(line, deployment)


def _mean(axes: "Axes", estimates: Sequence[Entry], metric: str) -> None:
    axes.plot([e["value"] if _claimed(e) else nan for e in estimates], range(len(estimates)), **_MEAN)
    for y, estimate in enumerate(estimates):
        if not known(estimate) or not estimate:
            beside(axes, y, DASH, color=Colour.SOFT)
            continue
        bar = axes.hlines(y, estimate["low"], estimate["high"], color=Colour.INK, linewidth=5, alpha=0.3)
        told(bar, f"mean {estimate_text(metric, estimate)}")
        if _claimed(estimate):
            axes.plot(estimate["value"], y, color=Colour.INK, **_DOT)
        beside(axes, y, rate_text(estimate))


def _claimed(estimate: Entry) -> bool:
    return bool(estimate) and known(estimate) and not bounds_only(estimate)


def _stated(entry: Entry) -> tuple[str, str]:
    """Write a panel's share of variance and range."""
    share, spread = entry.get("eta_squared", {}), entry.get("range", {})
    eta = f"{share['value']:.3f} [{share['low']:.3f}, {share['high']:.3f}]" if share and known(share) else DASH
    delta = DASH
    if spread and known(spread):
        delta = f"{points(spread['range'])[1:]} [{100 * spread['low']:.1f}, {100 * spread['high']:.1f}]"
    return f"η² {eta}", f"Δ {delta}"


def _legend(chart: _Chart) -> Markup:
    looks: list[tuple[dict[str, Any], str]] = [({**_MEAN, **_DOT}, "mean of the deployments, with its interval")]
    for index, deployment in enumerate(chart.lines):
        look = series(index)
        line = {"color": look.colour, "linestyle": look.dashes, "linewidth": 1, "marker": look.marker}
        looks.append(({**line, "markersize": 4, "markeredgewidth": 0}, deployment))
    return legend(looks)
