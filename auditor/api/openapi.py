"""Describe the API as an OpenAPI document, served at ``/api/openapi.json``.

The operations here are also what the auditor checks addresses against: a filter that an operation does not name is 400.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from aiohttp import web

from auditor.api.audits import COUNT_ALL, PLAN_FIELDS
from auditor.api.json_schemas import (
    COMPONENTS,
    COUNT,
    DAY,
    ID,
    TEXT,
    WHEN,
    YES_NO,
    Schema,
    array,
    component,
    nullable,
    record,
)
from auditor.api.keys import KEY_FIELDS
from auditor.api.requests import known_filters
from auditor.api.review_pages import FILTERS as REVIEW_FILTERS
from auditor.domain.exchange import Origin
from auditor.domain.keys import KeyRole
from auditor.instrument.designs import Design
from auditor.store import answers, estimates, exchanges, findings


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One method of one path."""

    summary: str
    answer: Schema
    status: int = 200
    filters: Mapping[str, Schema] = field(default_factory=dict)
    body: Schema | None = None
    role: KeyRole = KeyRole.VIEWER


def _texts(*names: str) -> dict[str, Schema]:
    return dict.fromkeys(names, TEXT)


def _pages(most: int) -> dict[str, Schema]:
    return {"limit": {"type": "integer", "minimum": 1, "maximum": most}, "after": ID}


def _fields(required: Mapping[str, Schema], **optional: Schema) -> Schema:
    found = record(optional, **required)
    return {**found, "additionalProperties": False}


_PLAN: Final[Mapping[str, Schema]] = {
    **_texts(*PLAN_FIELDS),
    "design": {"enum": list(Design)},
    "draws": {"type": "integer", "minimum": 1, "maximum": 1000},
    "templates": {"type": "integer", "minimum": 1, "maximum": 1000},
    "share": {"type": "number", "minimum": 0.001, "maximum": 1},
    "orders": {"enum": ["both", "one"]},
    **{key: {"type": "integer", "minimum": 0} for key in ("number", "seed", "budget_calls")},
    "budget_usd": {"type": "number", "minimum": 0},
}
_KEY: Final[Mapping[str, Schema]] = {
    **_texts(*KEY_FIELDS),
    "role": {"enum": list(KeyRole)},
    "first": YES_NO,
    **{key: {"type": "integer", "minimum": 1} for key in ("rpm", "tpm")},
    "budget": {"type": "number", "minimum": 0.01},
}
_PLANNED: Final = record(plan=TEXT)

#: Every operation by method and path, in the order of the document.
OPERATIONS: Final[Mapping[tuple[str, str], Operation]] = {
    ("GET", "/api/openapi.json"): Operation(summary="This document", answer={"type": "object"}),
    ("GET", "/api/start"): Operation(
        summary="The steps to the first estimate", answer=record(steps=array(component("Step")))
    ),
    ("GET", "/api/deployments"): Operation(
        summary="Each deployment: progress, headline estimates, what is missing and why",
        filters=_texts("window"),
        answer=record(as_of=nullable(WHEN), window=TEXT, deployments=array(component("Deployment"))),
    ),
    ("GET", "/api/deployments/{name}"): Operation(
        summary="One deployment: its estimates, labels, days, references and findings",
        filters=_texts("origin", "window", "audit"),
        answer=component("Deployment"),
    ),
    ("GET", "/api/deployments/{name}/beside/{other}"): Operation(
        summary="Two deployments on the questions that both were asked",
        answer=record(first=TEXT, second=TEXT, measures={"type": "object"}, statements=array({"type": "object"})),
    ),
    ("GET", "/api/estimates"): Operation(
        summary="The rows of the newest snapshot",
        filters=_texts(*estimates.FILTERS),
        answer=record(as_of=nullable(WHEN), estimates=array(component("Estimate"))),
    ),
    ("POST", "/api/estimates"): Operation(
        summary="Ask for new estimates now", status=202, answer=record(asked=YES_NO), role=KeyRole.REVIEWER
    ),
    ("GET", "/api/answers"): Operation(
        summary="The answers that a number counts, the newest first",
        filters={
            **_texts(*answers.FILTERS, "plan", "condition", "cell", "reason", "from", "to", "as_of", "q"),
            **_pages(200),
        },
        answer=record(total=COUNT, answers=array(component("Answer")), next=nullable(ID)),
    ),
    ("GET", "/api/answers/{id}"): Operation(
        summary="One answer with its codings, votes, copies and estimates",
        answer=record(id=ID, statement=nullable(TEXT), response=nullable(TEXT), codings=array(component("Answer"))),
    ),
    ("GET", "/api/exchanges"): Operation(
        summary="Stored exchanges, the newest first",
        filters={**_texts(*exchanges.FILTERS), "origin": {"enum": list(Origin)}, **_pages(exchanges.MAX_PAGE)},
        answer=record(exchanges=array(component("ExchangeSummary")), next=nullable(ID)),
    ),
    ("GET", "/api/exchanges/{id}"): Operation(
        summary="One exchange: facts, content where it was captured, codings with votes, people's labels",
        answer=component("Exchange"),
    ),
    ("GET", "/api/reviews"): Operation(
        summary="People's labels of one exchange",
        filters={"exchange": ID},
        answer=record(reviews=array(component("Label"))),
    ),
    ("POST", "/api/reviews"): Operation(
        summary="Store a person's label; 200 where it was given before",
        status=201,
        body=_fields(
            {"exchange": ID, "layer": {"enum": ["sel", "elab"]}, "label": TEXT},
            reviewer=TEXT,
            note=TEXT,
            rubric=TEXT,
            view={"enum": ["split", "whole"]},
        ),
        answer=component("Label"),
        role=KeyRole.REVIEWER,
    ),
    ("GET", "/api/review"): Operation(
        summary="Samples that people label", answer=record(draws=array({"type": "object"}))
    ),
    ("GET", "/api/review/{draw}"): Operation(
        summary="One sample: progress, agreement, estimates",
        filters=_texts(*REVIEW_FILTERS),
        answer={"type": "object"},
    ),
    ("GET", "/api/findings"): Operation(
        summary="Findings of the monitoring",
        filters=_texts(*findings.FILTERS),
        answer=record(findings=array(component("Finding"))),
    ),
    ("GET", "/api/findings/{id}"): Operation(summary="One finding with its events", answer=component("Finding")),
    ("POST", "/api/findings/{id}"): Operation(
        summary="Act on a finding: acknowledge it, or accept a new reference",
        body=record({"by": TEXT, "note": TEXT, "since": DAY, "release": TEXT}, action=TEXT),
        answer=component("Finding"),
        role=KeyRole.REVIEWER,
    ),
    ("GET", "/api/actions"): Operation(
        summary="What findings have done to routes", answer=record(actions=array(component("Action")))
    ),
    ("GET", "/api/references"): Operation(
        summary="What deployments are compared with",
        filters=_texts("deployment"),
        answer=record(references=array(component("Reference"))),
    ),
    ("POST", "/api/references"): Operation(
        summary="Accept a deployment's behaviour from a day on as its reference",
        status=201,
        body=_fields({"deployment": TEXT}, by=TEXT, note=TEXT, since=DAY, release=TEXT),
        answer=component("Reference"),
        role=KeyRole.REVIEWER,
    ),
    ("GET", "/api/audits"): Operation(
        summary="All audits with their progress", answer=record(audits=array(component("Audit")))
    ),
    ("GET", "/api/audits/plan"): Operation(
        summary="Estimate a plan: calls, tokens, cost, detectable shift; sends nothing",
        filters=_PLAN,
        answer=record(plan=TEXT, deployments=array({"type": "object"}), total={"type": "object"}, command=TEXT),
    ),
    ("POST", "/api/audits"): Operation(
        summary="Start an audit",
        status=202,
        body={
            **_fields({}, **{**_PLAN, "deployment": {"anyOf": [TEXT, array(TEXT)]}}),
        },
        answer=_PLANNED,
        role=KeyRole.ADMIN,
    ),
    ("GET", "/api/audits/{id}"): Operation(
        summary="One audit: progress, cost, budget, and estimates of its answers alone; of a large one with count=all",
        filters={"count": {"enum": [COUNT_ALL]}},
        answer=record(
            plan=TEXT,
            planned=COUNT,
            is_counted=YES_NO,
            deployments=array({"type": "object"}),
            estimates={"type": "object"},
        ),
    ),
    ("POST", "/api/audits/{id}/stop"): Operation(
        summary="Stop an audit after the calls under way", status=202, answer=_PLANNED, role=KeyRole.ADMIN
    ),
    ("POST", "/api/audits/{id}/resume"): Operation(
        summary="Send the calls without an answer", status=202, answer=_PLANNED, role=KeyRole.ADMIN
    ),
    ("GET", "/api/audits/{id}/beside/{other}"): Operation(
        summary="Two audits compared on the statements that both asked",
        answer=record(plan=TEXT, other=TEXT, pairs=array({"type": "object"})),
    ),
    ("GET", "/api/replays"): Operation(
        summary="Replays with their progress and commands, and those that were planned or started here",
        answer=record(replays=array(component("Replay")), runs=array({"type": "object"})),
    ),
    ("POST", "/api/replays"): Operation(
        summary="Estimate a replay, or start it with send",
        status=202,
        body=_fields(
            {"select": TEXT},
            **dict.fromkeys(("formats", "swap", "to", "name"), TEXT),
            budget_calls=COUNT,
            budget_usd={"type": "number", "minimum": 0},
            send=YES_NO,
        ),
        answer=record(run=TEXT),
        role=KeyRole.ADMIN,
    ),
    ("POST", "/api/replays/{id}/stop"): Operation(
        summary="Stop a replay after the calls under way", status=202, answer=record(run=TEXT), role=KeyRole.ADMIN
    ),
    ("GET", "/api/keys"): Operation(
        summary="Client keys with limits and spending", answer=record(keys=array(component("Key"))), role=KeyRole.ADMIN
    ),
    ("POST", "/api/keys"): Operation(
        summary="Make a key; the secret is in this answer only",
        status=201,
        body=_fields({"name": TEXT}, **{name: one for name, one in _KEY.items() if name != "name"}),
        answer=record(id=TEXT, key=TEXT),
        role=KeyRole.ADMIN,
    ),
    ("POST", "/api/keys/{id}/revoke"): Operation(
        summary="Revoke a key", answer=record(id=TEXT, revoked=YES_NO), role=KeyRole.ADMIN
    ),
    ("GET", "/api/health"): Operation(
        summary="Spool, jobs, judges, storage, and the configuration without secrets",
        answer=record(
            gateway={"type": "object"},
            jobs=array({"type": "object"}),
            judges=array(record(judges=array(TEXT), deployment=TEXT, calls=COUNT, failed=COUNT)),
            store={"type": "object"},
            problems=array(TEXT),
            config_hash=TEXT,
            configuration={"type": "object"},
        ),
    ),
}


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/api/openapi.json", _document)]


def check_filters(request: web.Request) -> None:
    """Refuse a filter that the operation of an address does not name.

    Raises
    ------
    ApiError
        400.
    """
    resource = request.match_info.route.resource
    operation = OPERATIONS.get((request.method, resource.canonical)) if resource is not None else None
    if operation is not None:
        known_filters(request, operation.filters)


async def _document(_: web.Request) -> web.Response:
    return web.json_response(document())


@cache
def document() -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), operation in OPERATIONS.items():
        paths.setdefault(path, {})[method.lower()] = _written(method, path, operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Biasmeter: the auditor's API", "version": "1"},
        "security": [{"key": []}, {"session": []}, {}],
        "paths": paths,
        "components": {
            "schemas": dict(COMPONENTS),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "biasmeter_session"},
            },
        },
    }


def _written(method: str, path: str, operation: Operation) -> dict[str, Any]:
    placed = [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in re.findall(r"\{(\w+)\}", path)]
    placed += [
        {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in operation.filters.items()
    ]
    answer = {"description": operation.summary, "content": {"application/json": {"schema": operation.answer}}}
    refused = {
        "description": "Why it was refused or failed",
        "content": {"application/json": {"schema": component("Error")}},
    }
    written: dict[str, Any] = {
        "operationId": f"{method.lower()}{re.sub(r'[^a-z]+', '_', path)}",
        "summary": operation.summary,
        "description": f"Needs the role {operation.role}.",
        "parameters": placed,
        "responses": {str(operation.status): answer, "4XX": refused, "503": refused},
    }
    if (method, path) == ("POST", "/api/reviews"):
        written["responses"]["200"] = answer
    if operation.body is not None:
        content = {"application/json": {"schema": operation.body}}
        written["requestBody"] = {"required": True, "content": content}
    return written
