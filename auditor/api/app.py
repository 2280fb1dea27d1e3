"""Puts the application together: the door, the paths, and how errors leave it."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.api import deployments, estimates, exchanges, findings, references, reviews, status
from auditor.api.door import Door
from auditor.api.errors import ApiError, problem
from auditor.api.keys import CLOCK, CONFIG, DOOR, ENGINE
from auditor.config import Config
from auditor.errors import StoreUnavailable

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """What the application serves from."""

    engine: AsyncEngine  #: disposed of with the application
    door: Door
    config: Callable[[], Config]  #: a reload exchanges it
    clock: Callable[[], datetime]
    registry: CollectorRegistry
    exposed: Callable[[], bytes] = bytes  #: series that are rendered already


def build_app(served: Served) -> web.Application:
    """Build the application."""
    app = web.Application(middlewares=[_answer_errors, _ask_at_the_door])
    app[ENGINE] = served.engine
    app[DOOR] = served.door
    app[CONFIG] = served.config
    app[CLOCK] = served.clock

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(served.registry) + served.exposed(), headers={"content-type": _METRICS_TYPE}
        )

    async def dispose(_: web.Application) -> None:
        await served.engine.dispose()

    app.add_routes([web.get("/healthz", _healthz), web.get("/metrics", metrics)])
    for part in (exchanges, deployments, estimates, findings, references, reviews, status):
        app.add_routes(part.routes())
    app.on_cleanup.append(dispose)
    return app


async def _healthz(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


@web.middleware
async def _ask_at_the_door(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path == "/" or request.path.startswith("/api/"):
        await request.app[DOOR].admit(request)
    return await handler(request)


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ApiError as error:
        return problem(error.status, str(error), error.code, error.param)
    except StoreUnavailable as error:
        log.warning("%s", error)
        return problem(
            503, "The store cannot be reached. Try again.", "store_unavailable", headers={"retry-after": "5"}
        )
    except web.HTTPException as error:
        return problem(error.status, error.reason, "not_found" if error.status == 404 else "http_error")
    except ConnectionResetError:
        raise
    except Exception:
        log.exception("%s %s failed", request.method, request.path)
        return problem(500, "The auditor failed on this request.", "internal_error")
