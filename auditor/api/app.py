"""Build the HTTP application: authorization, routes, and error responses."""

import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.api import answers, deployments, estimates, exchanges, findings, reviews, status
from auditor.api.auth import ApiAuth
from auditor.api.context import AUTH, CLOCK, CONFIG, ENGINE
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, problem
from auditor.config import Config
from auditor.errors import StoreUnavailable

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
#: Seconds between two log lines about a store that is away.
_LOG_EVERY = 30.0
#: Paths that need no key.
_OPEN_PATHS = frozenset({"/healthz", "/metrics"})
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiServices:
    """Hold what the handlers use."""

    engine: AsyncEngine  #: closed with the application
    auth: ApiAuth
    config: Callable[[], Config]  #: returns the current one; a reload replaces it
    clock: Callable[[], datetime]
    registry: CollectorRegistry
    exposed: Callable[[], bytes] = bytes  #: returns series as Prometheus text


def build_app(served: ApiServices) -> web.Application:
    """Build the application."""
    app = web.Application(middlewares=[_make_error_answers(), _refuse_nul, _authorize])
    app[ENGINE] = served.engine
    app[AUTH] = served.auth
    app[CONFIG] = served.config
    app[CLOCK] = served.clock

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(served.registry) + served.exposed(), headers={"content-type": _METRICS_TYPE}
        )

    async def dispose(_: web.Application) -> None:
        await served.engine.dispose()

    app.add_routes([web.get("/healthz", _healthz), web.get("/metrics", metrics)])
    for part in (exchanges, answers, deployments, estimates, findings, reviews, status):
        app.add_routes(part.routes())
    app.on_cleanup.append(dispose)
    return app


async def _healthz(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


@web.middleware
async def _authorize(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path not in _OPEN_PATHS:
        await request.app[AUTH].authorize(request)
    return await handler(request)


def _is_page(request: web.Request) -> bool:
    """Return whether a browser asks for a page, which shows errors as pages too."""
    return not request.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")


@web.middleware
async def _refuse_nul(request: web.Request, handler: Handler) -> web.StreamResponse:
    if "\0" in request.path or "\0" in request.query_string:
        raise ApiError(400, "The address contains a NUL character.", "invalid_value")
    return await handler(request)


def _make_error_answers() -> Middleware:
    """Make the middleware that answers errors. It logs at most every 30 s that the store is away."""
    logged = -math.inf

    @web.middleware
    async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
        nonlocal logged
        try:
            return await handler(request)
        except ApiError as error:
            if _is_page(request):
                return render_page("error.html.j2", error.status, message=str(error))
            return problem(error.status, str(error), error.code, error.param)
        except StoreUnavailable as error:
            if time.monotonic() - logged > _LOG_EVERY:
                logged = time.monotonic()
                log.warning("%s", error)
            message = "The auditor cannot reach its database. Try again."
            return problem(503, message, "store_unavailable", headers={"retry-after": "5"})
        except web.HTTPException as error:
            return problem(error.status, error.reason, "not_found" if error.status == 404 else "http_error")
        except ConnectionResetError:
            raise
        except Exception:
            log.exception("%s %r failed", request.method, request.path)
            message = "The auditor failed while it handled this request. Its log has the reason."
            return problem(500, message, "internal_error")

    return answer_errors
