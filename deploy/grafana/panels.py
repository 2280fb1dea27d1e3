"""Build the kinds of panel that the dashboards use. Each panel explains what its number means and what it does not."""

from collections.abc import Sequence
from string import ascii_uppercase

from grafana_foundation_sdk.builders.bargauge import Panel as BarGauge
from grafana_foundation_sdk.builders.common import ReduceDataOptions, VizLegendOptions, VizTooltipOptions
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.text import Panel as Text
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.builders.xychart import (
    MatcherConfig,
    XychartFieldConfigPointSize,
    XychartXYSeriesConfigFrame,
    XychartXYSeriesConfigX,
    XychartXYSeriesConfigY,
    XYSeriesConfig,
)
from grafana_foundation_sdk.builders.xychart import Panel as XYChart
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    DataSourceRef,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    TooltipDisplayMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, DynamicConfigValue
from grafana_foundation_sdk.models.text import TextMode
from grafana_foundation_sdk.models.xychart import SeriesMapping

from deploy.grafana.queries import BOUNDS, estimate, now, over_time

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
SHARE = "percentunit"
COUNT = "short"
NUMBER = "none"

#: Shown where Prometheus has no series, because an estimate without data is absent.
INSUFFICIENT = "Insufficient data (not zero). The auditor's console shows the reason."
_CELL = "insufficient"

#: A column of a table: its heading, the query, and its unit.
Column = tuple[str, str, str]


def words(markdown: str, *, height: int) -> Text:
    """Say something across the dashboard's width."""
    return Text().mode(TextMode.MARKDOWN).content(markdown).span(24).height(height).transparent(True)


def lines(title: str, description: str, unit: str, targets: Sequence[Dataquery], *, width: int = 12) -> Timeseries:
    """Draw lines over time, with a gap if a series is absent."""
    panel = (
        Timeseries()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .span(width)
        .height(8)
        .line_width(1)
        .fill_opacity(0)
        .span_nulls(False)
        .show_points(VisibilityMode.AUTO)
        .legend(
            VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs([])
        )
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    )
    for target in targets:
        panel = panel.with_target(target)
    return panel


def estimates(
    title: str, description: str, targets: Sequence[Dataquery], *, unit: str = SHARE, width: int = 12
) -> Timeseries:
    """Draw estimates over time: as ``lines``, with an explanation where there are none."""
    return lines(title, description, unit, targets, width=width).no_value(INSUFFICIENT)


def bands(
    title: str, description: str, by: str, drawn: Sequence[tuple[str, str, Sequence[str]]], *, width: int
) -> Timeseries:
    """Draw estimates with their intervals as bands; ``drawn`` is (name, series, matchers), one line each."""
    targets: list[Dataquery] = []
    for name, series, matchers in drawn:
        for suffix, bound in (("", ""), ("_low", " lower limit"), ("_high", " upper limit")):
            ref = ascii_uppercase[len(targets)]
            targets.append(over_time(ref, estimate(series + suffix, by, *matchers), name + bound))
    panel = estimates(title, description, targets, width=width).line_width(2)
    for name, _, _ in drawn:
        thin = [
            DynamicConfigValue(id_val="custom.lineWidth", value=0),
            DynamicConfigValue(id_val="custom.hideFrom", value={"legend": True, "tooltip": False, "viz": False}),
        ]
        below = DynamicConfigValue(id_val="custom.fillBelowTo", value=f"{name} lower limit")
        shaded = DynamicConfigValue(id_val="custom.fillOpacity", value=20)
        panel = panel.override_by_name(f"{name} lower limit", thin)
        panel = panel.override_by_name(f"{name} upper limit", [*thin, below, shaded])
    return panel


def table(title: str, description: str, keys: Sequence[str], columns: Sequence[Column], *, width: int = 24) -> Table:
    """Show the latest values: one row for each combination of the labels ``keys``."""
    panel = (
        Table().title(title).description(description).datasource(SOURCE).span(width).height(9).unit(SHARE).decimals(1)
    )
    renamed, order = {}, {key: place for place, key in enumerate(keys)}
    for place, (heading, expression, unit) in enumerate(columns):
        ref = ascii_uppercase[place]
        field = f"Value #{ref}"
        panel = panel.with_target(now(ref, expression))
        renamed[field] = heading
        order[field] = len(keys) + place
        if unit != SHARE:
            decimals = DynamicConfigValue(id_val="decimals", value=0 if unit == COUNT else 2)
            panel = panel.override_by_name(heading, [DynamicConfigValue(id_val="unit", value=unit), decimals])
    organised = {"excludeByName": {"Time": True}, "indexByName": order, "renameByName": renamed}
    return (
        panel.no_value(_CELL)
        .with_transformation(DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(DataTransformerConfig(id_val="organize", options=organised))
    )


def plane(
    title: str, description: str, key: str, across: tuple[str, str], up: tuple[str, str], *, width: int = 12
) -> XYChart:
    """Put a point for each value of the label ``key``; ``across`` and ``up`` are a heading and a query each."""
    panel = (
        XYChart().title(title).description(description).datasource(SOURCE).span(width).height(9).unit(SHARE).decimals(1)
    )
    for ref, (_, expression) in zip("AB", (across, up), strict=True):
        panel = panel.with_target(now(ref, expression))
    organised = {"excludeByName": {"Time": True}, "renameByName": {"Value #A": across[0], "Value #B": up[0]}}
    whole = (
        XYSeriesConfig()
        .frame(XychartXYSeriesConfigFrame().matcher(MatcherConfig().id("byIndex").options(0)))
        .x(XychartXYSeriesConfigX().matcher(MatcherConfig().id("byName").options(across[0])))
        .y(XychartXYSeriesConfigY().matcher(MatcherConfig().id("byName").options(up[0])))
    )
    return (
        panel.no_value(INSUFFICIENT)
        .with_transformation(DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(DataTransformerConfig(id_val="organize", options=organised))
        .mapping(SeriesMapping.MANUAL)
        .series([whole])
        .point_size(XychartFieldConfigPointSize().fixed(8))
        .legend(VizLegendOptions().show_legend(False).calcs([]))
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.SINGLE))
        .override_by_name(across[0], [DynamicConfigValue(id_val="custom.axisLabel", value=across[0])])
        .override_by_name(up[0], [DynamicConfigValue(id_val="custom.axisLabel", value=up[0])])
        .override_by_name(key, [DynamicConfigValue(id_val="unit", value="string")])
    )


def with_interval(heading: str, series: str, by: str, *matchers: str) -> list[Column]:
    """Give the three columns of an estimate: value, lower and upper limit."""
    headings = (heading, "from", "to")
    return [
        (f"{heading} {name}" if name != heading else heading, estimate(series + suffix, by, *matchers), SHARE)
        for name, suffix in zip(headings, ("", *BOUNDS), strict=True)
    ]


def bars(title: str, description: str, unit: str, targets: Sequence[Dataquery], *, width: int = 12) -> BarGauge:
    """Show the latest values as horizontal bars, one for each series."""
    panel = (
        BarGauge()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .min(0)
        .span(width)
        .height(9)
        .orientation(VizOrientation.HORIZONTAL)
        .display_mode(BarGaugeDisplayMode.BASIC)
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value(INSUFFICIENT)
    )
    for target in targets:
        panel = panel.with_target(target)
    return panel
