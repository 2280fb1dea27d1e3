"""The fleet: every deployment's estimates beside each other, with their intervals and what they rest on."""

from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.builders.xychart import Panel as XYChart

from deploy.grafana.links import to_deployment
from deploy.grafana.panels import COUNT, bands, estimates, plane, table, with_interval
from deploy.grafana.queries import CHOSEN, estimate, over_time

_KEYS = ("deployment", "rubric")
_BY = ", ".join(_KEYS)
_UNION = ("tiltmeter_ber", 'layer="union"', 'base="full"', CHOSEN)
_ONE = 'deployment="$fleet"'


def alerts() -> Table:
    """Show the alerts that are pending or firing."""
    says = (
        "What Prometheus alerts: pending is seen and not yet long enough. What each means and what to do is in "
        "docs/deploy.md under the alert's name. Empty: no alert, which is not proof that nothing changed."
    )
    keys = ("alertname", "severity", "alertstate", "deployment", "metric", "origin", "route", "instance")
    asked = f'sum by ({", ".join(keys)}) (ALERTS{{alertname=~"Tiltmeter.+"}})'
    shown = table("Alerts", says, keys, [("alerts", asked, COUNT)], width=24).no_value("no alert")
    return shown.override_by_name("deployment", to_deployment())


def overview() -> Table:
    """Show every deployment's headline numbers, with intervals, in one row each."""
    columns = [
        *with_interval("BER union", _UNION[0], _BY, *_UNION[1:]),
        *with_interval("IR", "tiltmeter_ir", _BY, CHOSEN),
        *with_interval("DNI", "tiltmeter_dni", _BY, CHOSEN),
        ("coverage", estimate("tiltmeter_coverage", _BY, CHOSEN), "percentunit"),
        ("n eligible", estimate("tiltmeter_eligible_responses", _BY, CHOSEN), COUNT),
    ]
    says = (
        "BER union: of all responses that came, the share that endorses the statement in its selection or in its "
        "elaboration. IR: of the responses with both layers coded, the share where one layer endorses and the other "
        "does not. DNI: selection minus elaboration, signed; near 0 with a high IR, the layers disagree in both "
        "directions and cancel. All with 95 % intervals over statements.\n\n"
        "Not said: that a deployment with a lower number is better where the intervals overlap, or that a number "
        "holds for other statements, other ways to ask or other judges. An empty cell is insufficient, not zero; a "
        "rate under 2 % or over 98 % has its limits only."
    )
    shown = table("Deployments: estimates with 95 % intervals", says, _KEYS, columns)
    return shown.override_by_name("deployment", to_deployment())


def reliability_map() -> XYChart:
    """Put every deployment at its IR and DNI."""
    says = (
        "Every deployment at its IR (across) and DNI (up), in the chosen window. Left: the layers agree on endorsing. "
        "Right and near 0: they disagree in both directions and cancel, which one number of either layer hides. Right "
        "and high: the selection endorses more than the text; right and low, the text more than the selection.\n\n"
        "Points have no intervals here: read those in the table above before telling two points apart. Where the line "
        "between reliable and not lies is for the reader to say; none is drawn."
    )
    across, up = (("IR", estimate("tiltmeter_ir", _BY, CHOSEN)), ("DNI", estimate("tiltmeter_dni", _BY, CHOSEN)))
    return plane("Reliability map", says, "deployment", across, up)


def union_by_deployment() -> Timeseries:
    """Draw one small panel for each deployment: the union rate with its interval."""
    says = (
        "Share of all responses that came and endorse in either layer, in the chosen window, with its 95 % interval "
        "over statements (panel: what these judges read in answers to these statements).\n\n"
        "Intervals hold for one look. A line that leaves the band of last week has not thereby drifted: "
        "who looks every day will see that by chance. A gap is insufficient data, not zero."
    )
    return (
        bands(
            "BER union, full base: $fleet",
            says,
            "deployment",
            [("BER union", _UNION[0], [*_UNION[1:], _ONE])],
            width=24,
        )
        .repeat("fleet")
        .repeat_direction("h")
        .max_per_row(4)
        .min(0)
        .axis_soft_max(0.1)
    )


def reliability_by_deployment() -> Timeseries:
    """Draw one small panel for each deployment: IR and DNI with their intervals."""
    says = (
        "On responses with both layers coded. IR: the layers disagree on endorsing. DNI: endorsed by the selection "
        "alone minus by the elaboration alone, in share of responses; above 0 the text softens what was chosen, below "
        "0 the text endorses what the choice rejects.\n\n"
        "DNI near 0 is not agreement: read it with IR. Both speak for the eligible responses only."
    )
    drawn = [("IR", "tiltmeter_ir", [CHOSEN, _ONE]), ("DNI", "tiltmeter_dni", [CHOSEN, _ONE])]
    return (
        bands("IR and DNI: $fleet", says, "deployment", drawn, width=24)
        .repeat("fleet")
        .repeat_direction("h")
        .max_per_row(4)
    )


def coverage() -> Timeseries:
    """Draw which share of responses has both layers."""
    says = (
        "Responses with both layers coded, as a share of all responses of the window, failed calls included. What is "
        "missing is either structural (a task without a selection) or failed (no answer found, no judge, a failed "
        "call): see the reasons below. IR, DNI and the eligible base speak for this share only, and move when it moves."
    )
    return (
        estimates(
            "Coverage", says, [over_time("A", estimate("tiltmeter_coverage", _BY, CHOSEN), "{{deployment}} {{rubric}}")]
        )
        .min(0)
        .max(1)
    )


def eligible() -> Timeseries:
    """Draw how many responses the eligible base has."""
    says = (
        "Responses with both layers coded in the window. It is not the sample size of an interval: that is the number "
        "of statements, since answers to one statement resemble each other."
    )
    series = estimate("tiltmeter_eligible_responses", _BY, CHOSEN)
    return estimates("Eligible responses", says, [over_time("A", series, "{{deployment}} {{rubric}}")], unit=COUNT).min(
        0
    )
