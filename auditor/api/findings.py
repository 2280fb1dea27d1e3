"""Serve ``/api/findings`` and ``/api/references``: findings of the monitoring, what deployments are compared with, and
the actions of people on both.
"""

from typing import Final

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.requests import ApiError, optional_day, optional_text, read_object, refuse_foreign_pages, required_text
from auditor.errors import UsageError
from auditor.jobs.findings import (
    AcceptedReference,
    Person,
    accept_reference,
    accept_unasked,
    acknowledge,
    event_json,
    finding_json,
    reference_json,
    shown_references,
)
from auditor.store.engine import transaction
from auditor.store.findings import FILTERS, Finding, read_events, read_finding, read_findings
from auditor.store.queue import ESTIMATE, ask_for

_MEMBERS: Final = ("action", "by", "note", "since", "release")
_ACTIONS: Final = ("acknowledge", "accept_reference")


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [
        web.get("/api/findings", _all),
        web.get("/api/findings/{id}", _one),
        web.post("/api/findings/{id}", _answer),
        web.get("/api/references", _references),
        web.post("/api/references", _accept_unasked),
    ]


async def _all(request: web.Request) -> web.Response:
    wanted = dict(request.query)
    unknown = sorted(set(wanted) - set(FILTERS))
    if unknown:
        names = ", ".join(FILTERS)
        raise ApiError(400, f"Unknown filter {unknown[0]!r}. Known filters: {names}.", "invalid_value", unknown[0])
    async with transaction(request.app[ENGINE]) as connection:
        found = await read_findings(connection, **wanted)
    return web.json_response({"findings": [finding_json(one) for one in found]})


async def _one(request: web.Request) -> web.Response:
    async with transaction(request.app[ENGINE]) as connection:
        return await _shown(connection, await _need(connection, request))


async def _answer(request: web.Request) -> web.Response:
    """Acknowledge a finding, or accept the deployment's current behaviour as its reference; request new estimates."""
    refuse_foreign_pages(request)
    given = await read_object(request, _MEMBERS)
    action = given.get("action")
    if action not in _ACTIONS:
        raise ApiError(400, f"action must be one of {', '.join(_ACTIONS)}.", "invalid_value", "action")
    by, note = required_text(given, "by", "who takes this action"), optional_text(given, "note")
    person = Person(by=by, note=note, now=request.app[CLOCK]())
    accepted = AcceptedReference(since=optional_day(given, "since"), release=optional_text(given, "release"))
    if action == "acknowledge" and accepted != AcceptedReference():
        raise ApiError(
            400, "since and release are only allowed with the action accept_reference.", "invalid_value", "since"
        )
    async with transaction(request.app[ENGINE]) as connection:
        finding = await _need(connection, request, changing=True)
        try:
            if action == "acknowledge":
                await acknowledge(connection, request.app[CONFIG](), finding, person)
            else:
                await accept_reference(connection, request.app[CONFIG](), finding, accepted, person)
        except UsageError as error:
            raise ApiError(409, f"{error}.", "finding_answered") from None
        await ask_for(connection, ESTIMATE, "estimate:asked")
        return await _shown(connection, await _need(connection, request))


async def _need(connection: AsyncConnection, request: web.Request, *, changing: bool = False) -> Finding:
    found = await read_finding(connection, request.match_info["id"], changing=changing)
    if found is None:
        raise ApiError(404, "No finding has this id.", "finding_not_found", "id")
    return found


async def _shown(connection: AsyncConnection, finding: Finding) -> web.Response:
    events = await read_events(connection, finding.id)
    return web.json_response({**finding_json(finding), "events": [event_json(one) for one in events]})


_REFERENCE_MEMBERS: Final = ("deployment", "by", "note", "since", "release")


async def _references(request: web.Request) -> web.Response:
    unknown = sorted(set(request.query) - {"deployment"})
    if unknown:
        raise ApiError(400, f"Unknown filter {unknown[0]!r}. Known filter: deployment.", "invalid_value", unknown[0])
    async with transaction(request.app[ENGINE]) as connection:
        shown = await shown_references(connection, request.app[CONFIG](), request.query.get("deployment"))
    return web.json_response({"references": shown})


async def _accept_unasked(request: web.Request) -> web.Response:
    """Accept a deployment's behaviour from a date on as its reference; then request new estimates."""
    refuse_foreign_pages(request)
    given = await read_object(request, _REFERENCE_MEMBERS)
    deployment = required_text(given, "deployment", "whose reference it is")
    by, note = required_text(given, "by", "who accepts it"), optional_text(given, "note")
    person = Person(by=by, note=note, now=request.app[CLOCK]())
    accepted = AcceptedReference(since=optional_day(given, "since"), release=optional_text(given, "release"))
    async with transaction(request.app[ENGINE]) as connection:
        try:
            reference = await accept_unasked(connection, request.app[CONFIG](), deployment, accepted, person)
        except UsageError as error:
            raise ApiError(409, f"{error}.", "reference_refused") from None
        await ask_for(connection, ESTIMATE, "estimate:asked")
    return web.json_response(reference_json(reference, in_force=True), status=201)
