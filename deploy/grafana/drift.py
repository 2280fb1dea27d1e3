"""Drift: evidence against the line of alarm, what it has led to, and what silence does not rule out."""

from grafana_foundation_sdk.builders.bargauge import Panel as BarGauge
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.models.common import LineStyle
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from deploy.grafana.links import to_deployment
from deploy.grafana.panels import COUNT, NUMBER, SHARE, bars, estimates, table
from deploy.grafana.queries import ALARM_LINE, THIS, estimate, latest, over_time

_EVIDENCE = "tiltmeter_drift_evidence"
_ALARM = "line of alarm"
_PROMISE = (
    "Log evidence of each detector since the reference, on one scale: it speaks where it reaches the line. May be "
    "looked at every day: a deployment whose truth never changes pages within the horizon with a chance of alpha at "
    "most. "
)


def evidence() -> Timeseries:
    """Draw a deployment's evidence by measure and detector, and the line."""
    says = _PROMISE + (
        "statements: these statements against their reference; days: days against the days before; anchor: the "
        "difference to a deployment that stands still; instrument: that deployment itself.\n\n"
        "Evidence is of a change, not of its size, its cause, or of harm. Under the line is not proof of no change: "
        "see the smallest shift that would be told."
    )
    series = estimate(_EVIDENCE, "metric, detector", THIS)
    return _against_the_line("Evidence of drift", says, series, "{{metric}} {{detector}}")


def of_fleet() -> Timeseries:
    """Draw the highest evidence of all deployments, less what watching so many costs."""
    says = _PROMISE + (
        "Here: the highest of all deployments, less the logarithm of their number. Over the line, the same promise "
        "holds for the whole fleet together: one false alarm of any of them, with a chance of alpha at most."
    )
    series = estimate(_EVIDENCE, "metric, detector", 'deployment=""')
    return _against_the_line("Evidence of drift, whole fleet", says, series, "{{metric}} {{detector}}")


def levels() -> Table:
    """Show which measures of which deployments are at which level."""
    says = (
        "What the evidence has led to since the reference. page: the statements moved, and the days or the difference "
        "to the anchor confirm it. investigate: the statements moved, nothing confirms it. instrument: the days alone "
        "moved, or the anchor did: judges, templates or the way there changed, not this deployment alone.\n\n"
        "Stays until a person accepts a new reference. Empty: no level reached, which does not mean no change."
    )
    keys = ("deployment", "metric", "level")
    reached = f"{estimate('tiltmeter_drift_alarm', ', '.join(keys))} == 1"
    shown = table("Drift: levels reached", says, keys, [("reached", reached, COUNT)], width=12).no_value("none")
    return shown.override_by_name("deployment", to_deployment())


def alarms() -> Timeseries:
    """Draw when levels were reached."""
    says = (
        "1 from when a measure reached a level until a new reference is accepted. Only the rate of endorsement (full "
        "base) and IR page; DNI is investigated at most. The finding has the change against the reference, with its "
        "interval."
    )
    series = estimate("tiltmeter_drift_alarm", "metric, level", THIS)
    return (
        estimates("Levels reached", says, [over_time("A", series, "{{metric}}: {{level}}")], unit=NUMBER).min(0).max(1)
    )


def smallest() -> BarGauge:
    """Show the smallest shift that would be told within seven passes."""
    says = (
        "The change of each measure, in points, that the statements' detector is expected to tell within seven passes. "
        "Smaller changes may stay unseen: say this beside every `no drift was found`. Confirmation by days takes "
        "longer."
    )
    series = estimate("tiltmeter_minimal_detectable_shift", "metric", THIS)
    return bars("Smallest shift told in seven passes", says, SHARE, [latest("A", series, "{{metric}}")])


def _against_the_line(title: str, says: str, series: str, legend: str) -> Timeseries:
    line = over_time("B", ALARM_LINE, _ALARM)
    dashes = LineStyle(fill="dash", dash=[10, 10])
    return (
        estimates(title, says, [over_time("A", series, legend), line], unit=NUMBER)
        .decimals(2)
        .axis_soft_max(4)
        .override_by_name(
            _ALARM,
            [
                DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": "red"}),
                DynamicConfigValue(id_val="custom.lineStyle", value=dashes),
            ],
        )
    )
