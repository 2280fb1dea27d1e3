"""Serve ``/audits``: the pages and forms of audits. Each prints the command that does the same."""

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode

from aiohttp import web
from msgspec.structs import asdict

from auditor.api.addresses import plan_answers_of
from auditor.api.audits import (
    MOST_COUNTED,
    compare_audits,
    read_audit,
    read_audits,
    resume_audit,
    start_audit,
    stop_audit,
)
from auditor.api.cells import plan_cells_of
from auditor.api.context import CONFIG
from auditor.api.pages import render_page
from auditor.api.plans import PLAN_FILTERS, estimate_choice, read_choice
from auditor.api.requests import known_filters
from auditor.api.session import person_of, read_form, require_role
from auditor.config import Config
from auditor.documents.audits import AuditPairEntry, MissingPlanDifference, PlanHeadlinesEntry
from auditor.domain.keys import KeyRole
from auditor.instrument.designs import FACTORS, Design
from auditor.probes.choice import command
from auditor.report.wording import points_text


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [
        web.get("/audits", _list_page),
        web.get("/audits/plan", _plan_page),
        web.post("/audits", _start_by_form),
        web.get("/audits/{id}", _plan_status_page),
        web.post("/audits/{id}/stop", _stop_by_form),
        web.post("/audits/{id}/resume", _resume_by_form),
        web.get("/audits/{id}/beside/{other}", _compare_page),
    ]


async def _list_page(request: web.Request) -> web.Response:
    known_filters(request, ())
    config = request.app[CONFIG]()
    return render_page(
        request,
        "audits.html.j2",
        audits=await read_audits(request),
        probes=[
            {
                "plan": probe.plan,
                "deployments": ", ".join(config.probed(probe)),
                "every": probe.every,
                "budget": probe.budget,
            }
            for probe in config.probes
        ],
        **_form_fields(config, {}),
    )


def _form_fields(config: Config, filled: Mapping[str, str]) -> dict[str, Any]:
    return {
        "designs": list(Design),
        "names": [deployment.name for deployment in config.deployments],
        "chosen": filled.get("deployment", "").split(","),
        "filled": filled,
        "factors": {factor: list(levels) for factor, levels in FACTORS.items()},
    }


async def _plan_page(request: web.Request) -> web.Response:
    # A form sends a field for each checked deployment; elsewhere the names are in one field.
    names = ",".join(request.query.getall("deployment", []))
    once = request.clone(rel_url=request.rel_url.update_query({"deployment": names})) if names else request
    filters = known_filters(once, PLAN_FILTERS)
    config, choice = request.app[CONFIG](), read_choice(filters)
    estimated = await estimate_choice(request, choice)
    usd = estimated.total.usd
    if usd and choice.budget_usd is None:
        filters = {**filters, "budget_usd": f"{2 * usd:.2f}"}
    return render_page(
        request,
        "audit_plan.html.j2",
        **asdict(estimated),
        plan_command=command("plan", choice, config.file_argument),
        fields={name: value for name, value in filters.items() if value},
        json="/api/audits/plan?" + urlencode(filters),
        may_start=person_of(request).role.includes(KeyRole.ADMIN),
        **_form_fields(config, filters),
    )


async def _start_by_form(request: web.Request) -> web.Response:
    require_role(request, KeyRole.ADMIN)
    fields = await read_form(request, PLAN_FILTERS)
    raise web.HTTPSeeOther(_address(await start_audit(request, read_choice(fields))))


async def _stop_by_form(request: web.Request) -> web.Response:
    require_role(request, KeyRole.ADMIN)
    await read_form(request, ())
    raise web.HTTPSeeOther(_address(await stop_audit(request)))


async def _resume_by_form(request: web.Request) -> web.Response:
    require_role(request, KeyRole.ADMIN)
    await read_form(request, ())
    raise web.HTTPSeeOther(_address(await resume_audit(request)))


def _address(plan_id: str) -> str:
    return f"/audits/{quote(plan_id, safe='')}"


async def _plan_status_page(request: web.Request) -> web.Response:
    audit = await read_audit(request)
    plan = audit.plan
    others = [other.plan for other in await read_audits(request) if other.plan != plan]
    is_open = audit.run is not None and audit.run.state in {"asked", "running", "stopping"}
    return render_page(
        request,
        "audit.html.j2",
        **asdict(audit),
        open=is_open,
        # What takes minutes to count is not counted again by itself.
        refreshed=is_open and "count" not in request.query,
        most_counted=MOST_COUNTED,
        others=others,
        answers={name: plan_answers_of(plan, name) for name in audit.estimates},
        cells={name: plan_cells_of(plan, name, entry) for name, entry in audit.estimates.items()},
        may_change=person_of(request).role.includes(KeyRole.ADMIN),
    )


async def _compare_page(request: web.Request) -> web.Response:
    known_filters(request, ())
    compared = await compare_audits(request)
    return render_page(
        request,
        "audit_comparison.html.j2",
        plan=compared.plan,
        other=compared.other,
        pairs=[_pair(compared.plan, compared.other, pair) for pair in compared.pairs],
    )


def _pair(plan: str, other: str, pair: AuditPairEntry) -> dict[str, Any]:
    """Return both sides of a comparison, and their difference or why there is none."""
    sides = [
        _side("A", plan, pair.deployment, pair.estimates),
        _side("B", other, pair.other_deployment, pair.other_estimates),
    ]
    title = " and ".join(dict.fromkeys((pair.deployment, pair.other_deployment)))
    change = pair.ber_union_full_difference
    if isinstance(change, MissingPlanDifference):
        return {"title": title, "sides": sides, "missing": change.missing}
    return {
        "title": title,
        "sides": sides,
        "missing": "",
        "difference": points_text(change.value, change.low, change.high),
        "holds_0": change.low <= 0 <= change.high,
        "n_statements": change.n_statements,
        "method": change.method,
    }


def _side(
    letter: Literal["A", "B"], plan: str, deployment: str, estimates: PlanHeadlinesEntry | None
) -> dict[str, Any]:
    return {
        "letter": letter,
        "estimates": estimates,
        "cells": None if estimates is None else plan_cells_of(plan, deployment, estimates),
        "answers": plan_answers_of(plan, deployment),
    }
