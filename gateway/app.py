"""The gateway's HTTP application: its parts, its paths, and how errors leave it."""

import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

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
from gateway.server import OpenAnswer, Request, WholeAnswer
from gateway.snapshot import SnapshotReader
from gateway.telemetry import Exposition
from gateway.upstreams import Upstream

log = logging.getLogger(__name__)

#: An answer that is open has been sent already.
Handler = Callable[[Request], Awaitable[WholeAnswer | OpenAnswer]]


@dataclass(slots=True)
class Gateway:
    """What the handlers work with.

    A reload exchanges ``config``, ``table`` and ``doorkeeper`` between two steps of the event loop: what a request
    takes from them after an ``await`` may be newer than what it took before. ``draining`` turns true when this worker
    has been asked to end.
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
    draining: bool = False


class Paths:
    """What is served: a handler for each path and method, and for paths that only begin in a known way."""

    def __init__(self) -> None:
        self._exact: dict[str, dict[str, Handler]] = {}
        self._below: dict[str, dict[str, Handler]] = {}

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Serve a path, or all below it if it ends with a slash. ``GET`` includes ``HEAD``."""
        table = self._below if path.endswith("/") else self._exact
        for each in ("GET", "HEAD") if method == "GET" else (method,):
            table.setdefault(path, {})[each] = handler

    async def serve(self, request: Request) -> bool:
        """Answer a request, whatever happens; only a client who has left gets nothing.

        Returns
        -------
        bool
            Whether the connection ends with the answer.
        """
        answer = await self._answer(request)
        if isinstance(answer, OpenAnswer):
            return answer.ends
        if "x-request-id" not in answer.headers:
            answer.headers["x-request-id"] = request_id(request.headers, new_id(time.time_ns() // 1_000_000))
        try:
            return answer.send(request)
        except ValueError:  # a header field that cannot be written
            log.exception("%s %s failed", request.method, request.path)
            return _internal_error().send(request)

    async def _answer(self, request: Request) -> WholeAnswer | OpenAnswer:
        try:
            by_method = self._exact.get(request.target) or self._look_for(request.path)
            handler = by_method.get(request.method)
            if handler is None:
                error = BadRequest(f"{request.method} is not allowed here.", code="method_not_allowed", status=405)
                return error_answer(error, {"allow": ",".join(sorted(by_method))})
            if "expect" in request.headers:
                _let_continue(request)
            return await handler(request)
        except GatewayError as error:
            return error_answer(error)
        except ConnectionResetError:  # the client has left; there is nobody to answer
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return _internal_error()

    def _look_for(self, path: str) -> dict[str, Handler]:
        if path in self._exact:  # a query stood behind it, or it was written with escapes
            return self._exact[path]
        for beginning, by_method in self._below.items():
            if path.startswith(beginning) and path != beginning:
                return by_method
        raise NotFound(f"There is nothing at {path[:200]!r}.", code="unknown_url")


def _let_continue(request: Request) -> None:
    """Ask for the body of a client that waits to be asked."""
    if request.minor == 0:
        return
    if request.headers["expect"].lower() != "100-continue":
        raise BadRequest("Nothing but 100-continue can be expected.", code="http_error", status=417)
    if not request.is_whole:
        request.client.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def _internal_error() -> WholeAnswer:
    body = error_body("The gateway failed on this request.", type_="api_error", code="internal_error")
    return WholeAnswer(500, {"content-type": "application/json"}, body)


def error_answer(error: GatewayError, headers: dict[str, str] | None = None) -> WholeAnswer:
    """Answer with an error in OpenAI's shape."""
    told = {"content-type": "application/json", **error.headers(), **(headers or {})}
    return WholeAnswer(error.http_status, told, error.body())


def json_answer(told: Any, status: int = 200) -> WholeAnswer:
    """Answer with JSON."""
    return WholeAnswer(status, {"content-type": "application/json; charset=utf-8"}, json.dumps(told).encode())
