"""Serve ``/replays`` and ``/api/replays``: plan, start, watch and stop replays; the page prints the same as commands.

A started replay is run by a job of the auditor (``auditor.jobs.replays``), and so is the estimate of its cost.
"""

from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from auditor.api.context import CLOCK, CONFIG, ENGINE
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
from auditor.domain.keys import KeyRole
from auditor.jobs.replays import ReplayChoice, command, folder_of
from auditor.store.console_runs import ConsoleRun, RunKind, ask_run, read_runs, stop_run
from auditor.store.engine import transaction
from auditor.store.replays import ReplayProgress, read_replays

#: The fields of a replay, by form and JSON alike; ``send``: not only estimate it.
REPLAY_FIELDS: Final = ("select", "formats", "swap", "to", "name", "budget_calls", "budget_usd", "send")


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [
        web.get("/replays", _page),
        web.post("/replays", _start_by_form),
        web.post("/replays/{id}/stop", _stop_by_form),
        web.get("/replays/{id}/comparison", _comparison),
        web.get("/api/replays", _json),
        web.post("/api/replays", _start_json),
        web.post("/api/replays/{id}/stop", _stop_json),
    ]


# -- what is read and done -------------------------------------------------------------------------------------------


async def _read(request: web.Request) -> dict[str, Any]:
    known_filters(request, ())
    config = request.app[CONFIG]()
    async with transaction(request.app[ENGINE]) as connection:
        replays = await read_replays(connection)
        runs = await read_runs(connection, RunKind.REPLAY)
    return {
        "replays": [_replay(one, config.file_argument) for one in replays],
        "runs": [_run(one, config.file_argument) for one in reversed(runs.values())],
    }


def _replay(one: ReplayProgress, file: str) -> dict[str, Any]:
    return {
        "id": one.id,
        "select": one.settings["select"],
        "formats": list(one.settings["formats"]),
        "to": one.settings["to"],
        "created_at": one.created_at.isoformat(),
        "planned": one.planned,
        "answered": one.answered,
        "concluded_at": one.concluded_at.isoformat() if one.concluded_at else None,
        "measures": one.measures,
        "command": command(ReplayChoice.of_settings(one.settings), file, send=True),
    }


def _run(run: ConsoleRun, file: str) -> dict[str, Any]:
    choice = ReplayChoice.of_json(run.choice["replay"])
    return {
        "id": run.id,
        **choice.to_json(),
        "send": run.choice["send"],
        "command": command(choice, file, send=run.choice["send"]),
        **run.to_json(),
    }


def _read_choice(given: Mapping[str, Any]) -> ReplayChoice:
    """Read a replay from the fields of a form or a JSON object.

    Raises
    ------
    ApiError
        400. What the command alone can check, as the formats, it says when it runs.
    """
    filled = {name: value for name, value in given.items() if value not in (None, "")}
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
        asked = {"replay": choice.to_json(), "send": send}
        await ask_run(connection, RunKind.REPLAY, choice.id, asked, person.name, now)
    return choice.id


async def _stop(request: web.Request) -> str:
    run_id = request.match_info["id"]
    async with transaction(request.app[ENGINE]) as connection:
        if not await stop_run(connection, RunKind.REPLAY, run_id):
            raise ApiError(409, "The auditor does not run this replay.", "replay_not_running")
    return run_id


# -- pages -----------------------------------------------------------------------------------------------------------


async def _page(request: web.Request) -> web.Response:
    read = await _read(request)
    return render_page(
        request,
        "replays.html.j2",
        **read,
        open=any(run["state"] in {"asked", "running", "stopping"} for run in read["runs"]),
        names=[one.name for one in request.app[CONFIG]().deployments],
        fields=REPLAY_FIELDS,
        may_start=person_of(request).role.includes(KeyRole.ADMIN),
    )


async def _start_by_form(request: web.Request) -> web.Response:
    require_role(request, KeyRole.ADMIN)
    given = await read_form(request, REPLAY_FIELDS)
    await _start(request, _read_choice(given), send=given.get("send") == "yes")
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


async def _json(request: web.Request) -> web.Response:
    return web.json_response(await _read(request))


async def _start_json(request: web.Request) -> web.Response:
    known_filters(request, ())
    require_role(request, KeyRole.ADMIN)
    given = await read_object(request, REPLAY_FIELDS)
    send = given.get("send", False)
    if not isinstance(send, bool):
        raise ApiError(400, "send must be true or false.", "invalid_value", "send")
    return web.json_response({"run": await _start(request, _read_choice(given), send=send)}, status=202)


async def _stop_json(request: web.Request) -> web.Response:
    known_filters(request, ())
    require_role(request, KeyRole.ADMIN)
    return web.json_response({"run": await _stop(request)}, status=202)
