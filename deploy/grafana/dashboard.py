"""Puts the dashboard together: what can be chosen at the top, and the rows below."""

import json
from collections.abc import Iterable

from grafana_foundation_sdk.builders.dashboard import Dashboard, DatasourceVariable, QueryVariable, Row
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from deploy.grafana import deployment, fleet, traffic
from deploy.grafana.panels import SOURCE, words

UID = "tiltmeter"

_ABOUT = """\
**Reading these numbers.** An estimate says how often the *answers of a deployment* to *this set of statements*, put in
*these ways* and read by *these judges*, endorse the statement. It says nothing of any one answer, of traffic that was
not audited, or of the cause of a change. Probes and client traffic are different instruments: choose one under
*Origin*, never compare them. **A gap is not zero**: below 15 statements an estimate is absent, and the auditor's own
page tells why. Intervals are 95 % for one look; looking daily for a line that leaves its band finds chance."""


def render() -> str:
    """Write the dashboard as Grafana reads it; the same text every time."""
    document = json.loads(json.dumps(_build(), cls=JSONEncoder))
    document["annotations"] = {"list": []}
    for number, panel in enumerate(document["panels"], start=1):
        panel["id"] = number
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _build() -> model.Dashboard:
    made = (
        Dashboard("Tiltmeter")
        .uid(UID)
        .description("Bias estimates of the deployments behind the gateway, and the gateway's own health.")
        .tags(["tiltmeter"])
        .timezone("utc")
        .time("now-7d", "now")
        .refresh("1m")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
    )
    for variable in _variables():
        made = made.with_variable(variable)
    made = made.with_panel(words(_ABOUT, height=4))
    made = _row(
        made,
        "Fleet: bias ($origin, $condition, $window)",
        [
            fleet.overview(),
            fleet.union_by_deployment(),
            fleet.reliability_by_deployment(),
            fleet.coverage(),
            fleet.eligible(),
        ],
    )
    made = _row(
        made,
        "One deployment: $deployment ($origin, $condition, $window)",
        [
            deployment.layers_over_time(),
            deployment.layers_now(),
            deployment.conditions(),
            deployment.tasks_over_time(),
            deployment.reliability(),
            deployment.prompt_range(),
            deployment.variance_share(),
            deployment.uncoded(),
        ],
    )
    made = _row(made, "Fleet: traffic", [*traffic.requests(), *traffic.times(), *traffic.usage()])
    made = _row(made, "The audit at work", [*traffic.copies(), *traffic.audit()])
    return made.build()


def _row(made: Dashboard, title: str, panels: Iterable[Builder[model.Panel]]) -> Dashboard:
    made = made.with_row(Row(title))
    for panel in panels:
        made = made.with_panel(panel)
    return made


def _variables() -> list[Builder[model.VariableModel]]:
    known = "tiltmeter_eligible_responses"
    return [
        DatasourceVariable("datasource").label("Prometheus").type("prometheus"),
        _choice("origin", "Origin", f"label_values({known}, origin)", "probe", "Whose requests: never mixed."),
        # Conditions of the grid are shown by the table of one deployment; here stand whole audits.
        _choice(
            "condition",
            "Condition",
            f'label_values({known}{{origin="$origin"}}, condition)',
            "all",
            "all = every probe; for client traffic the audit's name.",
        ).regex("/^[^=\\/]+$/"),
        _choice(
            "window",
            "Window",
            f'label_values({known}{{origin="$origin",condition="$condition"}}, window)',
            "7d",
            "Over how much time an estimate looks back.",
        ).sort(model.VariableSort.NATURAL_ASC),
        _choice(
            "fleet",
            "Fleet",
            f'label_values({known}{{origin="$origin"}}, deployment)',
            "$__all",
            "Deployments with a panel of their own in the fleet's row.",
        )
        .multi(True)
        .include_all(True)
        .current(model.VariableOption(text="All", value="$__all", selected=True)),
        _choice(
            "deployment",
            "One deployment",
            f'label_values({known}{{origin="$origin"}}, deployment)',
            "",
            "The deployment of the second row.",
        ),
    ]


def _choice(name: str, label: str, query: str, first: str, says: str) -> QueryVariable:
    made = (
        QueryVariable(name)
        .label(label)
        .description(says)
        .datasource(SOURCE)
        .query({"qryType": 1, "query": query, "refId": f"variable-{name}"})
        .definition(query)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
    )
    return made.current(model.VariableOption(text=first, value=first, selected=True)) if first else made
