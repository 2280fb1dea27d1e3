"""The gateway's HTTP application: its parts, its paths, and how errors leave it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import HttpVersion11, web

from auditor.config import Config
from auditor.domain.ids import new_id
from gateway.auth import Doorkeeper
from gateway.board import Board
from gateway.deadlines import Deadlines
from gateway.errors import BadRequest, GatewayError, NotFound, error_body
from gateway.headers import request_id
from gateway.limits import Limits
from gateway.recorder import Recorder
from gateway.routing import RoutingTable
from gateway.snapshot import SnapshotReader
from gateway.telemetry import Exposition
from gateway.upstreams import Upstream

log = logging.getLogger(__name__)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Gateway:
    """What the handlers work with.

    A reload exchanges ``config``, ``table`` and ``doorkeeper`` between two steps of the event loop: what a request
    takes from them after an ``await`` may be newer than what it took before. ``handlers`` are the tasks of the requests
    in flight; ``draining`` turns true when this worker has been asked to end.
    """

    config: Config
    table: RoutingTable
    doorkeeper: Doorkeeper
    snapshot: SnapshotReader
    upstream: Upstream
    board: Board
    limits: Limits
    recorder: Recorder
    exposition: Exposition
    deadlines: Deadlines = field(default_factory=Deadlines)
    refusing_stream_options: set[str] = field(default_factory=set)  #: deployments that know no ``stream_options``
    handlers: "set[asyncio.Task[object]]" = field(default_factory=set)
    draining: bool = False


class Paths:
    """What is served: a handler for each path and method, and for paths that only begin in a known way.

    aiohttp's own application and router cost a request more than all that the gateway does to choose a deployment.

    Parameters
    ----------
    gateway
        Keeps the tasks of requests in flight, and says when connections shall end with their answers.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._exact: dict[str, dict[str, Handler]] = {}
        self._below: dict[str, dict[str, Handler]] = {}

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Serve a path, or all below it if it ends with a slash. ``GET`` includes ``HEAD``."""
        table = self._below if path.endswith("/") else self._exact
        for each in ("GET", "HEAD") if method == "GET" else (method,):
            table.setdefault(path, {})[each] = handler

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, whatever happens; only a client who has left gets nothing."""
        handler_task = asyncio.current_task()
        assert handler_task is not None
        handlers = self._gateway.handlers
        handlers.add(handler_task)
        try:
            response = await self._answer(request)
        finally:
            handlers.remove(handler_task)
            del handler_task  # or a task that failed and this frame would hold one another, and all of the request
        if not response.prepared:
            if "x-request-id" not in response.headers:
                response.headers["x-request-id"] = request_id(request.headers, new_id(time.time_ns() // 1_000_000))
            if self._gateway.draining:
                response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            by_method = self._exact.get(request.raw_path) or self._look_for(request.path)
            handler = by_method.get(request.method)
            if handler is None:
                error = BadRequest(f"{request.method} is not allowed here.", code="method_not_allowed", status=405)
                return error_response(error, {"allow": ",".join(sorted(by_method))})
            if "expect" in request.headers:
                await _let_continue(request)
            return await handler(request)
        except GatewayError as error:
            return error_response(error)
        except ConnectionResetError as error:  # the client has left; there is nobody to answer
            # The request's task keeps the error, and what waits below knows the task: they and all of the request
            # would hold one another.
            error.__traceback__ = None
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            body = error_body("The gateway failed on this request.", type_="api_error", code="internal_error")
            return web.Response(status=500, body=body, content_type="application/json")

    def _look_for(self, path: str) -> dict[str, Handler]:
        if path in self._exact:  # a query stood behind it, or it was written with escapes
            return self._exact[path]
        for beginning, by_method in self._below.items():
            if path.startswith(beginning) and path != beginning:
                return by_method
        raise NotFound(f"There is nothing at {path[:200]!r}.", code="unknown_url")


async def _let_continue(request: web.BaseRequest) -> None:
    """Ask for the body of a client that waits to be asked."""
    if request.version < HttpVersion11:
        return
    if request.headers["expect"].lower() != "100-continue":
        raise BadRequest("Nothing but 100-continue can be expected.", code="http_error", status=417)
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def error_response(error: GatewayError, headers: dict[str, str] | None = None) -> web.Response:
    """Answer with an error in OpenAI's shape."""
    return web.Response(
        status=error.http_status,
        body=error.body(),
        headers={"content-type": "application/json", **error.headers(), **(headers or {})},
    )
