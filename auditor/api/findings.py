"""``/api/findings``: what the watch has found, and what people say to it."""

from typing import Final

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.body import day, needed_words, read_object, refuse_foreign_pages, words
from auditor.api.errors import ApiError
from auditor.api.keys import CLOCK, CONFIG, ENGINE
from auditor.errors import UsageError
from auditor.jobs.acceptance import Accepted, accept_reference
from auditor.jobs.findings import Person, acknowledge, event_json, finding_json
from auditor.store.engine import reading
from auditor.store.findings import FILTERS, Finding, read_events, read_finding, read_findings
from auditor.store.queue import ESTIMATE, ask_for

_MEMBERS: Final = ("action", "by", "note", "since", "release")
_ACTIONS: Final = ("acknowledge", "accept_reference")


def routes() -> list[web.RouteDef]:
    """List the paths."""
    return [
        web.get("/api/findings", _all),
        web.get("/api/findings/{id}", _one),
        web.post("/api/findings/{id}", _answer),
    ]


async def _all(request: web.Request) -> web.Response:
    wanted = dict(request.query)
    unknown = sorted(set(wanted) - set(FILTERS))
    if unknown:
        names = ", ".join(FILTERS)
        raise ApiError(400, f"There is no filter {unknown[0]!r}; there are: {names}.", "invalid_value", unknown[0])
    async with reading(request.app[ENGINE]) as connection:
        found = await read_findings(connection, **wanted)
    return web.json_response({"findings": [finding_json(one) for one in found]})


async def _one(request: web.Request) -> web.Response:
    async with reading(request.app[ENGINE]) as connection:
        return await _shown(connection, await _need(connection, request))


async def _answer(request: web.Request) -> web.Response:
    """Acknowledge a finding, or accept what the deployment is like now. Some auditor then estimates anew."""
    refuse_foreign_pages(request)
    given = await read_object(request, _MEMBERS)
    action = given.get("action")
    if action not in _ACTIONS:
        raise ApiError(400, f"action must be one of {', '.join(_ACTIONS)}.", "invalid_value", "action")
    by, note = needed_words(given, "by", "who answers"), words(given, "note")
    person = Person(by=by, note=note, now=request.app[CLOCK]())
    accepted = Accepted(since=day(given, "since"), release=words(given, "release"))
    if action == "acknowledge" and accepted != Accepted():
        raise ApiError(400, "since and release belong to accept_reference.", "invalid_value", "since")
    async with reading(request.app[ENGINE]) as connection:
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
        raise ApiError(404, "There is no finding of this id.", "finding_not_found", "id")
    return found


async def _shown(connection: AsyncConnection, finding: Finding) -> web.Response:
    events = await read_events(connection, finding.id)
    return web.json_response({**finding_json(finding), "events": [event_json(one) for one in events]})
