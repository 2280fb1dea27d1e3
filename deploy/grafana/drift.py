"""Build the panels of drift: evidence, the alarms it raised, and the smallest change that it can detect."""

from grafana_foundation_sdk.builders.bargauge import Panel as BarGauge
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.models.common import LineStyle
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from deploy.grafana.links import findings_of, to_deployment
from deploy.grafana.panels import COUNT, NUMBER, SHARE, bars, estimates, table
from deploy.grafana.queries import ALARM_LINE, THIS, estimate, latest, over_time

_EVIDENCE = "biasmeter_drift_evidence"
_ALARM = "line of alarm"
_PROMISE = (
    "Log evidence of each detector since the reference. An alarm is raised where it reaches the line. "
    "You may look every day: if a deployment never changes, the chance of any page within the horizon "
    "is at most alpha. "
)


def evidence() -> Timeseries:
    """Draw a deployment's evidence by measure and detector, and the line."""
    description = _PROMISE + (
        "statements: the same statements against their reference. days: days against earlier days. anchor: "
        "the difference to a deployment that does not change. instrument: that deployment itself.\n\n"
        "The evidence is about whether something changed, not how much, why, or whether it is harmful. "
        "Evidence under the line does not prove that nothing changed: see the smallest change that would be"
        " detected."
    )
    series = estimate(_EVIDENCE, "metric, detector", THIS)
    shown = _against_the_line("Evidence of drift", description, series, "{{metric}} {{detector}}")
    return shown.links([findings_of("deployment")])


def of_fleet() -> Timeseries:
    """Draw the highest evidence of all deployments, corrected for their number."""
    description = _PROMISE + (
        "Highest evidence of all deployments, minus the logarithm of their number. At the line the promise "
        "holds for the whole fleet: the chance of any false alarm in it is at most alpha."
    )
    series = estimate(_EVIDENCE, "metric, detector", 'deployment=""')
    shown = _against_the_line("Evidence of drift, whole fleet", description, series, "{{metric}} {{detector}}")
    return shown.links([findings_of("")])


def levels() -> Table:
    """Show which measures of which deployments are at which level."""
    description = (
        "Alarms since the reference. page: the answers to the statements changed, and a second detector "
        "(days or anchor) confirms it. investigate: the answers changed, but nothing confirms it. "
        "instrument: only the days or the anchor changed, so judges, templates or the connection may have "
        "changed rather than this deployment.\n\n"
        "An alarm stays until a person accepts a new reference. An empty table means that no level was "
        "reached; it does not prove that nothing changed."
    )
    keys = ("deployment", "metric", "level")
    reached = f"{estimate('biasmeter_drift_alarm', ', '.join(keys))} == 1"
    shown = table("Drift: levels reached", description, keys, [("reached", reached, COUNT)], width=12).no_value("none")
    return shown.override_by_name("deployment", to_deployment()).links([findings_of("")])


def alarms() -> Timeseries:
    """Draw when levels were reached."""
    description = (
        "1 from the moment when a measure reached a level until a person accepts a new reference. Only the "
        "endorsement rate (full base) and IR can page; DNI is at most investigated. The finding has the "
        "change against the reference with its interval."
    )
    series = estimate("biasmeter_drift_alarm", "metric, level", THIS)
    shown = (
        estimates("Levels reached", description, [over_time("A", series, "{{metric}}: {{level}}")], unit=NUMBER)
        .min(0)
        .max(1)
    )
    return shown.links([findings_of("deployment")])


def smallest() -> BarGauge:
    """Show the smallest change that would be detected within seven passes."""
    description = (
        "The change of each measure, in points, that the detector of the statements is expected to detect "
        "within seven passes. Smaller changes may stay undetected: state this number together with every "
        "`no drift was found`. Confirmation by days takes longer."
    )
    series = estimate("biasmeter_minimal_detectable_shift", "metric", THIS)
    return bars("Smallest shift found within seven passes", description, SHARE, [latest("A", series, "{{metric}}")])


def _against_the_line(title: str, description: str, series: str, legend: str) -> Timeseries:
    line = over_time("B", ALARM_LINE, _ALARM)
    dashes = LineStyle(fill="dash", dash=[10, 10])
    return (
        estimates(title, description, [over_time("A", series, legend), line], unit=NUMBER)
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
