"""Define the dashboards: their variables and rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders.dashboard import Dashboard as Builder
from grafana_foundation_sdk.builders.dashboard import DashboardLink, Row
from grafana_foundation_sdk.cog.builder import Builder as Built
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from deploy.grafana import deployment, drift, fleet, gateway, peers, pipeline, variables
from deploy.grafana.findings import findings, releases
from deploy.grafana.links import TAG, uid_of
from deploy.grafana.panels import words

Panels = Sequence[Built[model.Panel]]

_ABOUT = """\
**How to read these numbers.** An estimate is the share of a deployment's *answers* that endorse a stereotype. It
holds for *these statements*, *these prompts* and *these judges*. It says nothing about a single answer, about traffic
that was not audited, or about the cause of a change. Probes and client traffic measure different things: choose one
under *Origin* and never compare them. **A gap is not zero**: below 15 statements there is no estimate, and the
auditor's console shows the reason. Intervals are 95 % for one look; if you look every day, a line will sometimes
leave its band by chance. For daily monitoring use the evidence of drift."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dashboard:
    """One dashboard: its name in addresses and files, its title, what it is chosen by, its rows by their titles."""

    name: str
    title: str
    description: str
    variables: Sequence[Built[model.VariableModel]]
    rows: Sequence[tuple[str, Panels]]
    about: str | None = None
    findings: str | None = None  #: whose findings and references are marked, as matchers


def dashboards() -> tuple[Dashboard, ...]:
    """Give all dashboards, the first of which is the home."""
    return (_fleet(), _deployment(), _gateway(), _pipeline())


def render() -> dict[str, str]:
    """Write the dashboards as Grafana reads them, by their names; the same text every time."""
    return {one.name: _render(one) for one in dashboards()}


def _render(one: Dashboard) -> str:
    document = json.loads(json.dumps(_build(one), cls=JSONEncoder))
    document["annotations"].setdefault("list", [])
    for number, panel in enumerate(document["panels"], start=1):
        panel["id"] = number
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _build(one: Dashboard) -> model.Dashboard:
    others = DashboardLink("Biasmeter").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    made = (
        Builder(one.title)
        .uid(uid_of(one.name))
        .description(one.description)
        .tags([TAG])
        .timezone("utc")
        .time("now-7d", "now")
        .refresh("1m")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .link(others.include_vars(True).keep_time(True))
    )
    for variable in one.variables:
        made = made.with_variable(variable)
    if one.findings is not None:
        made = made.annotation(findings(one.findings)).annotation(releases(one.findings))
    if one.about is not None:
        made = made.with_panel(words(one.about, height=4))
    for title, panels in one.rows:
        made = made.with_row(Row(title))
        for panel in panels:
            made = made.with_panel(panel)
    return made.build()


def _fleet() -> Dashboard:
    return Dashboard(
        name="fleet",
        title="Biasmeter: fleet",
        description="Bias estimates of all deployments, drift and alerts.",
        variables=[*variables.scope(), variables.fleet(), variables.alpha(), variables.console()],
        rows=[
            ("What is alerted and found", [fleet.alerts(), drift.levels(), drift.of_fleet()]),
            ("Estimates ($origin, $condition, $window)", [fleet.overview(), fleet.reliability_map(), peers.verdicts()]),
            ("By deployment", [fleet.union_by_deployment(), fleet.reliability_by_deployment()]),
            ("What the estimates rest on", [fleet.coverage(), fleet.eligible()]),
            ("Trials of routes", [fleet.arms(), fleet.arm_tokens(), fleet.arm_requests()]),
        ],
        about=_ABOUT,
        findings="",
    )


def _deployment() -> Dashboard:
    return Dashboard(
        name="deployment",
        title="Biasmeter: one deployment",
        description="One deployment: bias estimates, drift since its reference, its peers, and uncoded responses.",
        variables=[*variables.scope(), variables.deployment(), variables.alpha(), variables.console()],
        rows=[
            (
                "$deployment, by layer ($origin, $condition, $window)",
                [deployment.layers_over_time(), deployment.layers_now(), deployment.reliability()],
            ),
            (
                "$deployment, across prompts",
                [
                    deployment.reliability_map(),
                    deployment.tasks_over_time(),
                    deployment.conditions(),
                    deployment.prompt_range(),
                    deployment.variance_share(),
                ],
            ),
            (
                "$deployment, asked in other ways",
                [deployment.exposure(), deployment.exposed_by(), deployment.exposure_age()],
            ),
            ("$deployment, drift since its reference", [drift.evidence(), drift.alarms(), drift.smallest()]),
            ("$deployment, against its peers", [peers.deviations(), peers.deviations_over_time()]),
            ("$deployment, coverage", [deployment.coverage(), deployment.uncoded()]),
        ],
        about=_ABOUT,
        findings='deployment="$deployment"',
    )


def _gateway() -> Dashboard:
    return Dashboard(
        name="gateway",
        title="Biasmeter: gateway",
        description="Requests and errors of applications, health of the deployments, and capture for the audit.",
        variables=[variables.source()],
        rows=[
            ("Requests", gateway.requests()),
            ("Times and tokens", [*gateway.times(), *gateway.usage()]),
            ("Hosts and deployments", gateway.health()),
            ("Copies for the audit", gateway.copies()),
        ],
    )


def _pipeline() -> Dashboard:
    return Dashboard(
        name="pipeline",
        title="Biasmeter: judges and pipeline",
        description="Agreement of judges with each other and with anchor texts, and progress of the audit.",
        variables=[variables.source()],
        rows=[
            ("Judges", pipeline.judges()),
            ("Pipeline", pipeline.work()),
            ("Series", pipeline.series()),
        ],
    )
