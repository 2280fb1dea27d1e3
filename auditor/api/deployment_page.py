"""Serve ``/deployments/{name}``: one deployment's rates by layer, condition and category, its days, drift and peers."""

from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from auditor.api.addresses import deployment_address
from auditor.api.cells import find_row, share_cell_of
from auditor.api.context import CLOCK, CONFIG
from auditor.api.deployment_facts import ORIGINS, read_facts
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
from auditor.api.deployments import deployment_json
from auditor.api.estimates import estimate_json
from auditor.api.overview import window_names
from auditor.api.pages import render_page
from auditor.api.signals import drift_state
from auditor.domain.estimate import Insufficient
from auditor.estimation.days import DayEstimate
from auditor.estimation.snapshots import CATEGORY
from auditor.findings import finding_json, reference_json
from auditor.report.wording import glossary_terms


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/deployments/{name}", _page), web.get("/api/deployments/{name}", _json)]


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


async def _json(request: web.Request) -> web.Response:
    facts = await read_facts(request)
    references = [reference_json(one, in_force=place == 0) for place, one in enumerate(facts.references)]
    return web.json_response(
        {
            **deployment_json(facts.overview, facts.signals),
            "as_of": facts.as_of.isoformat() if facts.as_of else None,
            "origin": facts.choice.origin,
            "window": facts.choice.window,
            "estimates": [estimate_json(row) for row in facts.rows],
            "labels": [{"sel": sel, "elab": elab, "n": n} for (sel, elab), n in sorted(facts.labels.items())],
            "days": [_day_json(one) for one in facts.days],
            "references": references,
            "findings": [finding_json(one) for one in facts.findings],
        }
    )


def _day_json(one: DayEstimate) -> dict[str, Any]:
    if isinstance(one.found, Insufficient):
        return {"day": one.day.isoformat(), "missing": one.found.reason}
    names = ("value", "low", "high", "n", "n_statements", "method")
    return {"day": one.day.isoformat(), **{name: getattr(one.found, name) for name in names}}
