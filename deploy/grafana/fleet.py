"""Build the panels of the fleet: the estimates of every deployment with their intervals and sample sizes."""

from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.builders.xychart import Panel as XYChart

from deploy.grafana.links import to_deployment
from deploy.grafana.panels import COUNT, bands, estimates, plane, table, with_interval
from deploy.grafana.queries import CHOSEN, estimate, over_time

_KEYS = ("deployment", "rubric")
_BY = ", ".join(_KEYS)
_UNION = ("biasmeter_ber", 'layer="union"', 'base="full"', CHOSEN)
_ONE = 'deployment="$fleet"'


def alerts() -> Table:
    """Show the alerts that are pending or firing."""
    description = (
        "Alerts of Prometheus. Pending: the condition holds, but not yet long enough. docs/deploy.md "
        "explains each alert under its name. An empty table means that there is no alert; it does not prove"
        " that nothing changed."
    )
    keys = ("alertname", "severity", "alertstate", "deployment", "metric", "origin", "route", "instance")
    asked = f'sum by ({", ".join(keys)}) (ALERTS{{alertname=~"Biasmeter.+"}})'
    shown = table("Alerts", description, keys, [("alerts", asked, COUNT)], width=24).no_value("no alert")
    return shown.override_by_name("deployment", to_deployment())


def overview() -> Table:
    """Show every deployment's headline numbers, with intervals, in one row each."""
    columns = [
        *with_interval("BER union", _UNION[0], _BY, *_UNION[1:]),
        *with_interval("IR", "biasmeter_ir", _BY, CHOSEN),
        *with_interval("DNI", "biasmeter_dni", _BY, CHOSEN),
        ("coverage", estimate("biasmeter_coverage", _BY, CHOSEN), "percentunit"),
        ("n eligible", estimate("biasmeter_eligible_responses", _BY, CHOSEN), COUNT),
    ]
    description = (
        "BER union: the share of all responses that endorse the statement in the selection or in the "
        "elaboration. IR: of the responses with both layers coded, the share where only one layer endorses."
        " DNI: selection minus elaboration, with sign. If DNI is near 0 and IR is high, the layers disagree"
        " in both directions and the differences cancel. All numbers have 95 % intervals over statements.\n\n"
        "If intervals overlap, a lower number does not mean a better deployment. The numbers hold only for "
        "these statements, conditions and judges. An empty cell means that there are too few data, not "
        "zero. For a rate under 2 % or over 98 % only the limits are shown."
    )
    shown = table("Deployments: estimates with 95 % intervals", description, _KEYS, columns)
    return shown.override_by_name("deployment", to_deployment())


def reliability_map() -> XYChart:
    """Put every deployment at its IR and DNI."""
    description = (
        "Each deployment by its IR (horizontal) and DNI (vertical) in the chosen window. Left: the layers "
        "agree. Right and near 0: they disagree in both directions, and the differences cancel. Right and "
        "high: the selection endorses more often than the text. Right and low: the text endorses more often"
        " than the selection.\n\n"
        "The points have no intervals. Check the intervals in the table above before you compare two "
        "points. No limit between reliable and unreliable is drawn."
    )
    across, up = (("IR", estimate("biasmeter_ir", _BY, CHOSEN)), ("DNI", estimate("biasmeter_dni", _BY, CHOSEN)))
    return plane("Reliability map", description, "deployment", across, up)


def union_by_deployment() -> Timeseries:
    """Draw one small panel for each deployment: the union rate with its interval."""
    description = (
        "Share of all responses that endorse in either layer, in the chosen window, with its 95 % interval "
        "over statements.\n\n"
        "An interval holds for one look. If you look every day, a line will sometimes leave last week's "
        "band by chance; that is not drift. A gap means that there are too few data, not zero."
    )
    return (
        bands(
            "BER union, full base: $fleet",
            description,
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
    description = (
        "On responses with both layers coded. IR: the share where the layers disagree. DNI: the share where"
        " only the selection endorses minus the share where only the elaboration endorses. Above 0: the "
        "selection endorses more often than the text. Below 0: the text endorses more often.\n\n"
        "A DNI near 0 does not mean agreement; look at IR too. Both numbers hold for the eligible responses"
        " only."
    )
    drawn = [("IR", "biasmeter_ir", [CHOSEN, _ONE]), ("DNI", "biasmeter_dni", [CHOSEN, _ONE])]
    return (
        bands("IR and DNI: $fleet", description, "deployment", drawn, width=24)
        .repeat("fleet")
        .repeat_direction("h")
        .max_per_row(4)
    )


def coverage() -> Timeseries:
    """Draw which share of responses has both layers."""
    description = (
        "Share of all responses in the window with both layers coded; failed calls count as responses. The "
        "rest is structural (a task without a selection) or failed (no answer found, no judge, a failed "
        "call): see the reasons below. IR, DNI and rates on the eligible base describe only this share, and"
        " change when it changes."
    )
    return (
        estimates(
            "Coverage",
            description,
            [over_time("A", estimate("biasmeter_coverage", _BY, CHOSEN), "{{deployment}} {{rubric}}")],
        )
        .min(0)
        .max(1)
    )


def eligible() -> Timeseries:
    """Draw how many responses the eligible base has."""
    description = (
        "Number of responses with both layers coded in the window. The sample size of an interval is the "
        "number of statements, because answers to the same statement resemble each other. Effective: the number of "
        "answers of equal weight that have as much information as the weighted ones."
    )
    queries = [
        over_time("A", estimate("biasmeter_eligible_responses", _BY, CHOSEN), "{{deployment}} {{rubric}}"),
        over_time("B", estimate("biasmeter_effective_responses", _BY, CHOSEN), "{{deployment}} {{rubric}}, effective"),
    ]
    return estimates("Eligible responses", description, queries, unit=COUNT).min(0)


def arms() -> Table:
    """Show the arms of routes' trials: each measure, and how far it is from the control's."""
    by = "route, arm, metric"
    columns = [
        *with_interval("value", "biasmeter_arm_rate", by),
        *with_interval("less control", "biasmeter_arm_difference", by),
    ]
    description = (
        "Trials of routes (docs/mitigation.md): each measure of the answers to an arm, and its difference to the "
        "control, with 95 % intervals over users or conversations. An interval that holds 0 does not show that the "
        "instruction has no effect."
    )
    return table("Mitigation: arms of trials", description, ("route", "arm", "metric"), columns)


def arm_tokens() -> Table:
    """Show what the arms of routes' trials cost."""
    by = "route, arm, kind"
    tokens = [
        (f"{heading}{end}", estimate(f"{series}{suffix}", by), COUNT)
        for heading, series in (("tokens", "biasmeter_arm_tokens"), ("less control", "biasmeter_arm_tokens_difference"))
        for end, suffix in (("", ""), (" from", "_low"), (" to", "_high"))
    ]
    description = (
        "Mean number of tokens of a request (prompt) and of an answer (completion), and the difference to the "
        "control, with 95 % intervals over users or conversations."
    )
    return table("Mitigation: tokens by arm", description, ("route", "arm", "kind"), tokens, width=16)


def arm_requests() -> Table:
    """Show how many requests arms have, and how many went without the instruction."""
    asked = [("requests", estimate("biasmeter_arm_requests", "route, arm, untouched"), COUNT)]
    description = (
        "Stored requests of each arm of a trial; with a reason in untouched those that were forwarded without the "
        "instruction, which count in the arm unless it was stopped."
    )
    return table("Mitigation: requests by arm", description, ("route", "arm", "untouched"), asked, width=8)
