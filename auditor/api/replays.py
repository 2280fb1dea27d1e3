"""Serve ``/replays`` and ``/api/replays``: stored replays with their progress, and the commands that send them.

Replays are planned and sent by a command alone: ``replay`` is a package above the auditor.
"""

import shlex
from typing import Any, Final

from aiohttp import web

from auditor.api.context import CONFIG, ENGINE
from auditor.api.pages import render_page
from auditor.api.requests import known_filters
from auditor.store.engine import transaction
from auditor.store.replays import ReplayProgress, read_replays

#: In a format's key: the two sides of a swap of groups.
_SWAP: Final = "<>"


def routes() -> list[web.RouteDef]:
    """List the routes."""
    return [web.get("/replays", _page), web.get("/api/replays", _json)]


async def _read(request: web.Request) -> list[dict[str, Any]]:
    known_filters(request, ())
    file = request.app[CONFIG]().file_argument
    async with transaction(request.app[ENGINE]) as connection:
        return [_shown(one, file) for one in await read_replays(connection)]


def _shown(one: ReplayProgress, file: str) -> dict[str, Any]:
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
        "command": _command(one.settings, file),
    }


def _command(settings: dict[str, Any], file: str) -> str:
    """Return the command that resumes a replay, or only compares its answers if all are there."""
    formats = [key for key in settings["formats"] if _SWAP not in key]
    options = ["--select", settings["select"]]
    options += ["--formats", ",".join(formats)] if formats else []
    for key in settings["formats"]:
        options += ["--swap", key] if _SWAP in key else []
    options += ["--to", settings["to"]] if settings["to"] else []
    options += ["--name", settings["name"]] if settings["name"] else []
    return f"biasmeter replay -c {file} {shlex.join(options)} --yes"


async def _json(request: web.Request) -> web.Response:
    return web.json_response({"replays": await _read(request)})


async def _page(request: web.Request) -> web.Response:
    return render_page(request, "replays.html.j2", replays=await _read(request))
