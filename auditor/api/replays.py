"""Serve ``/replays`` and ``/api/replays``: plan, start, watch and stop replays; the page prints the same as commands.

A started replay is run by a job of the auditor (``auditor.jobs.replays``), and so is the estimate of its cost.
"""

from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from auditor.api.audits import run_entry
from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.operations import get, post
from auditor.api.pages import render_page
from auditor.api.requests import (
    ApiError,
    known_filters,
    optional_number,
    optional_text,
    read_object,
    required_text,
)
from auditor.api.session import person_of, read_form, require_role
from auditor.documents.audits import ReplayEntry, ReplayRunEntry, ReplaysBody, StartedReplayBody, Usd
from auditor.documents.base import Count, Document
from auditor.domain.keys import KeyRole
from auditor.jobs.replays import ReplayChoice, command, folder_of
from auditor.store.console_runs import ConsoleRun, RunKind, ask_run, read_runs, stop_run
from auditor.store.engine import transaction
from auditor.store.replays import ReplayProgress, read_replays


class ReplayRequest(Document):
    """A replay that somebody asks for; ``send``: not only estimate it."""

    select: str
    formats: str | UnsetType = UNSET
    swap: str | UnsetType = UNSET
    to: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    budget_calls: Count | UnsetType = UNSET
    budget_usd: Usd | UnsetType = UNSET
    send: bool | UnsetType = UNSET


#: Fields of a replay, in a form as in JSON.
_FIELDS: Final = ReplayRequest.__struct_fields__


def routes() -> list[web.RouteDef]:
    """List the routes of the pages."""
    return [
        web.get("/replays", _page),
        web.post("/replays", _start_by_form),
        web.post("/replays/{id}/stop", _stop_by_form),
        web.get("/replays/{id}/comparison", _comparison),
    ]


# -- what is read and done -------------------------------------------------------------------------------------------


async def _read(request: web.Request) -> ReplaysBody:
    config = request.app[CONFIG]()
    async with transaction(request.app[ENGINE]) as connection:
        replays = await read_replays(connection)
        runs = await read_runs(connection, RunKind.REPLAY)
    return ReplaysBody(
        replays=[_replay_entry(replay, config.file_argument) for replay in replays],
        runs=[_run_entry(run, config.file_argument) for run in reversed(runs.values())],
    )


def _replay_entry(replay: ReplayProgress, file: str) -> ReplayEntry:
    return ReplayEntry(
        id=replay.id,
        select=replay.settings["select"],
        formats=replay.settings["formats"],
        to=replay.settings["to"],
        created_at=replay.created_at.isoformat(),
        planned=replay.planned,
        answered=replay.answered,
        concluded_at=replay.concluded_at.isoformat() if replay.concluded_at else None,
        measures=replay.measures,
        command=command(ReplayChoice.of_settings(replay.settings), file, send=True),
    )


def _run_entry(run: ConsoleRun, file: str) -> ReplayRunEntry:
    choice = ReplayChoice.of_json(run.choice["replay"])
    return ReplayRunEntry(
        **asdict(run_entry(run)),
        **choice.to_json(),
        id=run.id,
        send=run.choice["send"],
        command=command(choice, file, send=run.choice["send"]),
    )


def _read_choice(fields: Mapping[str, Any]) -> ReplayChoice:
    """Read a replay from the fields of a form or a JSON object.

    Raises
    ------
    ApiError
        400. What the command alone can check, as the formats, it says when it runs.
    """
    filled = {name: value for name, value in fields.items() if value not in (None, "")}
    swap = optional_text(filled, "swap") or ""
    choice = ReplayChoice(
        select=required_text(filled, "select", "which exchanges are asked again").strip(),
        formats=optional_text(filled, "formats") or "",
        swap=tuple(each.strip() for each in swap.split(",") if each.strip()),
        to=optional_text(filled, "to"),
        name=optional_text(filled, "name") or "",
        budget_calls=optional_number(filled, "budget_calls", whole=True),
        budget_usd=optional_number(filled, "budget_usd"),
    )
    for text in (choice.select, choice.formats, choice.name, *choice.swap, choice.to or ""):
        # It would be read as an option, or end the line that a page prints.
        if text.startswith("-") or not text.isprintable():
            raise ApiError(400, f"{text[:40]!r} cannot be a part of a command.", "invalid_value")
    return choice


async def _start(request: web.Request, choice: ReplayChoice, *, send: bool) -> str:
    async with transaction(request.app[ENGINE]) as connection:
        now, person = request.app[CLOCK](), person_of(request)
        options = {"replay": choice.to_json(), "send": send}
        await ask_run(connection, RunKind.REPLAY, choice.id, options, person.name, now)
    return choice.id


async def _stop(request: web.Request) -> str:
    run_id = request.match_info["id"]
    async with transaction(request.app[ENGINE]) as connection:
        if not await stop_run(connection, RunKind.REPLAY, run_id):
            raise ApiError(409, "The auditor does not run this replay.", "replay_not_running")
    return run_id


# -- pages -----------------------------------------------------------------------------------------------------------


async def _page(request: web.Request) -> web.Response:
    known_filters(request, ())
    read = await _read(request)
    return render_page(
        request,
        "replays.html.j2",
        replays=read.replays,
        runs=read.runs,
        open=any(run.state in {"asked", "running", "stopping"} for run in read.runs),
        names=[deployment.name for deployment in request.app[CONFIG]().deployments],
        fields=_FIELDS,
        may_start=person_of(request).role.includes(KeyRole.ADMIN),
    )


async def _start_by_form(request: web.Request) -> web.Response:
    require_role(request, KeyRole.ADMIN)
    fields = await read_form(request, _FIELDS)
    await _start(request, _read_choice(fields), send=fields.get("send") == "yes")
    raise web.HTTPSeeOther("/replays")


async def _stop_by_form(request: web.Request) -> web.Response:
    require_role(request, KeyRole.ADMIN)
    await read_form(request, ())
    await _stop(request)
    raise web.HTTPSeeOther("/replays")


async def _comparison(request: web.Request) -> web.StreamResponse:
    """Send the comparison that a run has written; its page loads nothing."""
    known_filters(request, ())
    async with transaction(request.app[ENGINE]) as connection:
        run = (await read_runs(connection, RunKind.REPLAY)).get(request.match_info["id"])
    page = folder_of(request.app[CONFIG](), run.id) / "comparison.html" if run else None
    if page is None or not page.is_file():
        raise ApiError(404, "There is no comparison of such a replay on this host.", "comparison_not_found", "id")
    return web.FileResponse(page)


# -- JSON ------------------------------------------------------------------------------------------------------------


@get("/api/replays", "Replays with their progress and commands, and those that were planned or started here")
async def _list(request: web.Request) -> ReplaysBody:
    return await _read(request)


@post(
    "/api/replays",
    "Estimate a replay, or start it with send",
    takes=ReplayRequest,
    role=KeyRole.ADMIN,
    statuses=(202,),
)
async def _start_by_json(request: web.Request) -> StartedReplayBody:
    fields = await read_object(request, ReplayRequest)
    send = fields.get("send", False)
    if not isinstance(send, bool):
        raise ApiError(400, "send must be true or false.", "invalid_value", "send")
    return StartedReplayBody(run=await _start(request, _read_choice(fields), send=send))


@post("/api/replays/{id}/stop", "Stop a replay after the calls under way", role=KeyRole.ADMIN, statuses=(202,))
async def _stop_by_json(request: web.Request) -> StartedReplayBody:
    return StartedReplayBody(run=await _stop(request))


OPERATIONS: Final = (_list, _start_by_json, _stop_by_json)
