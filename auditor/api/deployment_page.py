"""Serve ``/deployments/{name}``: one deployment's rates by layer, condition and category, its days, drift and peers."""

from typing import Final
from urllib.parse import urlencode

from aiohttp import web
from msgspec.structs import asdict

from auditor.api.addresses import deployment_address
from auditor.api.cells import find_row, share_cell_of
from auditor.api.context import CLOCK, CONFIG
from auditor.api.deployment_facts import FILTERS, ORIGINS, read_facts
from auditor.api.deployment_tables import (
    condition_lines,
    condition_parts,
    course_chart,
    finding_line,
    joint_lines,
    layer_lines,
    peer_lines,
    uncoded_lines,
)
from auditor.api.deployments import deployment_entry
from auditor.api.estimates import estimate_json
from auditor.api.operations import get
from auditor.api.overview import window_names
from auditor.api.pages import render_page
from auditor.api.signals import drift_state
from auditor.documents.deployments import DayRateEntry, DeploymentBody, LabelPairEntry, MissingDayRate
from auditor.domain.estimate import Insufficient
from auditor.estimation.days import DayEstimate
from auditor.estimation.snapshots import CATEGORY
from auditor.findings import finding_entry, reference_entry
from auditor.report.wording import glossary_terms


def routes() -> list[web.RouteDef]:
    """List the routes of the pages."""
    return [web.get("/deployments/{name}", _page)]


async def _page(request: web.Request) -> web.Response:
    facts = await read_facts(request)
    config, choice, name = request.app[CONFIG](), facts.choice, facts.overview.name
    query = {"origin": choice.origin, "window": choice.window, "audit": choice.audit}
    pooled = choice.pooled(facts.rows)
    layers = layer_lines(pooled)
    return render_page(
        request,
        "deployment.html.j2",
        name=name,
        declared=facts.overview.deployment,
        overview=facts.overview,
        part=next((part for part in facts.overview.parts if part.origin == choice.origin), None),
        as_of=facts.as_of,
        now=request.app[CLOCK](),
        choice=choice,
        choices={"origin": ORIGINS, "window": window_names(config), "audit": facts.audits},
        others=[one.name for one in config.deployments if one.name != name],
        address=deployment_address(name),
        coverage=share_cell_of(find_row(pooled, "coverage", None, None)),
        layers=layers,
        warnings=list(dict.fromkeys(warning for line in layers for warning in line["cell"].warnings)),
        joint=joint_lines(facts, find_row(pooled, "coverage", None, None)),
        conditions=condition_parts(facts),
        categories=condition_lines(facts, lambda row: row.condition.startswith(f"{CATEGORY}=")),
        course=course_chart(facts),
        drift=drift_state(facts.signals),
        findings=[finding_line(one) for one in facts.findings],
        references=facts.references,
        peers=list(peer_lines(facts.signals)),
        uncoded=list(uncoded_lines(facts.longest)),
        terms=glossary_terms("eligible", "coverage", "BER_union", "OED, UED", "IR", "DNI", "reference", "baseline"),
        json=f"/api{deployment_address(name)}?" + urlencode({key: value for key, value in query.items() if value}),
    )


@get(
    "/api/deployments/{name}",
    "One deployment: its estimates, labels, days, references and findings",
    filters=dict.fromkeys(FILTERS, str),
)
async def _show(request: web.Request) -> DeploymentBody:
    facts = await read_facts(request)
    head = asdict(deployment_entry(facts.overview, facts.signals))
    references = [reference_entry(one, in_force=place == 0) for place, one in enumerate(facts.references)]
    return DeploymentBody(
        **{**head, "estimates": [estimate_json(row) for row in facts.rows]},
        as_of=facts.as_of.isoformat() if facts.as_of else None,
        origin=facts.choice.origin,
        window=facts.choice.window,
        labels=[LabelPairEntry(sel=sel, elab=elab, n=n) for (sel, elab), n in sorted(facts.labels.items())],
        days=[_day_entry(one) for one in facts.days],
        references=references,
        findings=[finding_entry(one) for one in facts.findings],
    )


def _day_entry(estimate: DayEstimate) -> DayRateEntry | MissingDayRate:
    day, rate = estimate.day.isoformat(), estimate.found
    if isinstance(rate, Insufficient):
        return MissingDayRate(day=day, missing=rate.reason)
    return DayRateEntry(
        day=day,
        value=rate.value,
        low=rate.low,
        high=rate.high,
        n=rate.n,
        n_statements=rate.n_statements,
        method=rate.method,
    )


OPERATIONS: Final = (_show,)
