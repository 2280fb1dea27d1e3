"""Build the HTTP application: authorization, routes, and error responses."""

import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.api import (
    answers,
    audit_pages,
    audits,
    beside,
    deployment_page,
    deployments,
    estimates,
    exchanges,
    finding_pages,
    findings,
    fleet,
    health,
    keys,
    login,
    one_answer,
    pages,
    plans,
    replays,
    review_pages,
    review_samples,
    reviews,
    start,
)
from auditor.api.auth import ApiAuth
from auditor.api.context import AUTH, CLOCK, CONFIG, ENGINE
from auditor.api.openapi import openapi_operation
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, problem, wants_page
from auditor.api.session import USER, require_role
from auditor.config import Config
from auditor.domain.keys import KeyRole
from auditor.errors import StoreUnavailable
from auditor.export.process_series import metrics_page

log = logging.getLogger(__name__)

#: What serves the console; each has ``routes``.
_PAGES = (
    *(pages, login, fleet, deployment_page, beside, answers, one_answer, finding_pages, review_samples),
    *(review_pages, audit_pages, replays, keys, health, start),
)
#: What the API does, in the order of its document; an address comes before one with a name in its place.
_OPERATIONS = (
    *start.OPERATIONS,
    *deployments.OPERATIONS,
    *deployment_page.OPERATIONS,
    *beside.OPERATIONS,
    *estimates.OPERATIONS,
    *answers.OPERATIONS,
    *one_answer.OPERATIONS,
    *exchanges.OPERATIONS,
    *reviews.OPERATIONS,
    *review_samples.OPERATIONS,
    *review_pages.OPERATIONS,
    *findings.OPERATIONS,
    *plans.OPERATIONS,
    *audits.OPERATIONS,
    *replays.OPERATIONS,
    *keys.OPERATIONS,
    *health.OPERATIONS,
)
#: Every operation, also the one that serves the document.
OPERATIONS = (openapi_operation(_OPERATIONS), *_OPERATIONS)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
#: Seconds between two log lines about a store that is away.
_LOG_EVERY = 30.0
#: Paths that need neither a key nor a session: for programs that watch the auditor, and before a login.
_WATCHED_PATHS = frozenset({"/healthz", "/metrics"})
_LOGIN_PATHS = frozenset({"/login", "/logout"})
#: Headers of every response that does not set its own.
_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: browsers then send "Origin: null" with forms, and the origin of a form is checked.
    "referrer-policy": "same-origin",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiServices:
    """Hold what the handlers use."""

    engine: AsyncEngine  #: closed with the application
    auth: ApiAuth
    config: Callable[[], Config]  #: returns the current one; a reload replaces it
    clock: Callable[[], datetime]
    registry: CollectorRegistry
    exposed: Callable[[], bytes] = bytes  #: returns gauges as Prometheus text


def build_app(served: ApiServices) -> web.Application:
    """Build the application."""
    app = web.Application(middlewares=[_make_error_answers(), _refuse_nul, _authorize])
    app[ENGINE] = served.engine
    app[AUTH] = served.auth
    app[CONFIG] = served.config
    app[CLOCK] = served.clock

    async def metrics(request: web.Request) -> web.Response:
        page, kind = metrics_page(served.registry, served.exposed(), request.headers.get("accept", ""))
        return web.Response(body=page, headers={"content-type": kind})

    async def dispose(_: web.Application) -> None:
        await served.engine.dispose()

    app.add_routes([web.get("/healthz", _healthz), web.get("/metrics", metrics)])
    for page in _PAGES:
        app.add_routes(page.routes())
    app.add_routes([operation.route() for operation in OPERATIONS])
    app.on_cleanup.append(dispose)
    app.on_response_prepare.append(_add_headers)
    return app


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)


async def _healthz(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


@web.middleware
async def _authorize(request: web.Request, handler: Handler) -> web.StreamResponse:
    auth = request.app[AUTH]
    auth.check_origin(request)
    if request.path in _WATCHED_PATHS:
        return await handler(request)
    if request.path in _LOGIN_PATHS or request.path.startswith("/static/"):
        return await handler(request)
    user = await auth.identify(request, request.app[CLOCK]())
    if user is None:
        if wants_page(request):
            following = "/login?" + urlencode({"next": request.path_qs}) if request.method == "GET" else "/login"
            return web.Response(status=303, headers={"location": following})
        message = (
            "This request needs a valid key in the header 'Authorization: Bearer KEY', or a session of the console."
        )
        raise ApiError(401, message, "invalid_api_key")
    request[USER] = user
    if request.method not in {"GET", "HEAD"}:
        require_role(request, KeyRole.REVIEWER)
    return await handler(request)


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
            return _refusal(request, error)
        except StoreUnavailable as error:
            if time.monotonic() - logged > _LOG_EVERY:
                logged = time.monotonic()
                log.warning("%s", error)
            message = "The auditor cannot reach its database. Try again."
            return _refusal(request, ApiError(503, message, "store_unavailable", headers={"retry-after": "5"}))
        except web.HTTPRedirection:
            raise
        except web.HTTPException as error:
            code = "not_found" if error.status == 404 else "http_error"
            return _refusal(request, ApiError(error.status, f"{error.reason}.", code))
        except ConnectionResetError:
            raise
        except Exception:
            log.exception("%s %r failed", request.method, request.path)
            message = "The auditor failed while it handled this request. Its log has the reason."
            return _refusal(request, ApiError(500, message, "internal_error"))

    return answer_errors


def _refusal(request: web.Request, error: ApiError) -> web.Response:
    """Return an error as a page for a browser, and as JSON for a program."""
    if not wants_page(request):
        return problem(error)
    answer = render_page(request, "error.html.j2", error.status, message=str(error))
    answer.headers.update(error.headers)
    return answer
