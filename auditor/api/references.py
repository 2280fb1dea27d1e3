"""``/api/references``: what deployments are held against, and a new one that somebody accepts."""

from typing import Final

from aiohttp import web

from auditor.api.body import day, needed_words, read_object, refuse_foreign_pages, words
from auditor.api.errors import ApiError
from auditor.api.keys import CLOCK, CONFIG, ENGINE
from auditor.errors import UsageError
from auditor.jobs.acceptance import Accepted, accept_unasked, reference_json, shown_references
from auditor.jobs.findings import Person
from auditor.store.engine import reading
from auditor.store.queue import ESTIMATE, ask_for

_MEMBERS: Final = ("deployment", "by", "note", "since", "release")


def routes() -> list[web.RouteDef]:
    """List the paths."""
    return [web.get("/api/references", _all), web.post("/api/references", _accept)]


async def _all(request: web.Request) -> web.Response:
    unknown = sorted(set(request.query) - {"deployment"})
    if unknown:
        raise ApiError(400, f"There is no filter {unknown[0]!r}; there is: deployment.", "invalid_value", unknown[0])
    async with reading(request.app[ENGINE]) as connection:
        shown = await shown_references(connection, request.app[CONFIG](), request.query.get("deployment"))
    return web.json_response({"references": shown})


async def _accept(request: web.Request) -> web.Response:
    """Accept what a deployment is like from a day on. Some auditor then estimates anew."""
    refuse_foreign_pages(request)
    given = await read_object(request, _MEMBERS)
    deployment = needed_words(given, "deployment", "whose reference it is")
    by, note = needed_words(given, "by", "who accepts it"), words(given, "note")
    person = Person(by=by, note=note, now=request.app[CLOCK]())
    accepted = Accepted(since=day(given, "since"), release=words(given, "release"))
    async with reading(request.app[ENGINE]) as connection:
        try:
            reference = await accept_unasked(connection, request.app[CONFIG](), deployment, accepted, person)
        except UsageError as error:
            raise ApiError(409, f"{error}.", "reference_refused") from None
        await ask_for(connection, ESTIMATE, "estimate:asked")
    return web.json_response(reference_json(reference, in_force=True), status=201)
