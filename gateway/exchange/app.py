"""The HTTP application: the parts that handlers use, the router, and how errors become answers."""

import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from auditor.config import Config
from auditor.domain.ids import new_id_text
from auditor.domain.keys import Key
from gateway.auth import Authenticator
from gateway.errors import INTERNAL_ERROR, BadRequest, GatewayError, NotFound
from gateway.headers import request_id
from gateway.http import Request, WholeAnswer
from gateway.limits.key_limits import Grant, KeyLimits, TokenCount
from gateway.recording.recorder import Recorder
from gateway.recording.telemetry import MetricsPage
from gateway.routing.slots import DeploymentSlots
from gateway.routing.table import RoutingTable
from gateway.snapshot import SnapshotReader
from gateway.upstreams.pool import ConnectionPool

log = logging.getLogger(__name__)

#: Returns None if an exchange answers.
Handler = Callable[[Request], Awaitable[WholeAnswer | None]]


@dataclass(slots=True)
class Gateway:
    """The parts that handlers use.

    A reload replaces ``config``, ``table`` and ``authenticator`` between two steps of the event loop, so a request may
    read newer ones after an ``await``. ``draining`` becomes true when this worker has to end.
    """

    config: Config
    table: RoutingTable
    authenticator: Authenticator
    snapshot: SnapshotReader
    pool: ConnectionPool
    slots: DeploymentSlots
    limits: KeyLimits
    recorder: Recorder
    metrics_page: MetricsPage
    refusing_stream_options: set[str] = field(default_factory=set)  #: deployments that know no ``stream_options``
    draining: bool = False

    def admit(self, key: Key, tokens: TokenCount) -> Grant | None:
        """Check a request against the limits of its key, and reserve its tokens.

        Raises
        ------
        Limited
            It exceeds one of them.
        """
        elsewhere = 0
        if key.budget is not None and (snapshot := self.snapshot.current) is not None:
            elsewhere = snapshot.spent_elsewhere.get(key.id, 0)
        return self.limits.admit(key, elsewhere, tokens)


class Router:
    """Finds the handler of a request by its method and path."""

    def __init__(self) -> None:
        self._exact: dict[str, dict[str, Handler]] = {}
        self._below: dict[str, dict[str, Handler]] = {}
        self._rest: dict[str, Handler] = {}

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Register a handler for a path, or for all below it if it ends with a slash. ``GET`` includes ``HEAD``.

        ``/`` is only itself.
        """
        table = self._below if path.endswith("/") and path != "/" else self._exact
        for each in ("GET", "HEAD") if method == "GET" else (method,):
            table.setdefault(path, {})[each] = handler

    def add_rest(self, method: str, handler: Handler) -> None:
        """Register a handler for a method on all paths that have no handler."""
        self._rest[method] = handler

    async def serve(self, request: Request) -> bool:
        """Answer a request, also when its handler fails, or have an exchange answer it.

        Returns
        -------
        bool
            Whether the connection ends with the answer.
        """
        answer = await self._answer(request)
        if answer is None:
            return False
        if "x-request-id" not in answer.headers:
            answer.headers["x-request-id"] = request_id(request.headers, new_id_text(time.time_ns() // 1_000_000))
        try:
            return answer.send(request)
        except ValueError as error:  # a header field that cannot be written
            log_failure(request.method, request.path, error)
            return error_answer(INTERNAL_ERROR).send(request)

    async def _answer(self, request: Request) -> WholeAnswer | None:
        try:
            return await self._dispatch(request)
        except GatewayError as error:
            return error_answer(error)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the client gets an answer
            log_failure(request.method, request.path, error)
            return error_answer(INTERNAL_ERROR)

    async def _dispatch(self, request: Request) -> WholeAnswer | None:
        by_method = self._exact.get(request.target) or self._find_below(request.path) or self._rest
        handler = by_method.get(request.method)
        if handler is None:
            if by_method is self._rest:
                raise unknown_url(request.path)
            error = BadRequest(f"{request.method} is not allowed here.", code="method_not_allowed", status=405)
            return error_answer(error, {"allow": ",".join(sorted(by_method))})
        if "expect" in request.headers:
            _let_continue(request)
        return await handler(request)

    def _find_below(self, path: str) -> dict[str, Handler] | None:
        if path in self._exact:  # the target has a query or escapes
            return self._exact[path]
        for beginning, by_method in self._below.items():
            if path.startswith(beginning) and path != beginning:
                return by_method
        return None


def log_failure(method: str, path: str, error: Exception) -> None:
    """Log an error of the gateway itself."""
    log.error("%s %r failed", method, path, exc_info=error)


def unknown_url(path: str) -> NotFound:
    """Return the error for a path without endpoint."""
    return NotFound(f"There is no endpoint at {path[:200]!r}.", code="unknown_url")


def _let_continue(request: Request) -> None:
    """Send ``100 Continue`` to a client that waits for it before it sends the body."""
    if request.minor == 0:
        return
    if request.headers["expect"].lower() != "100-continue":
        raise BadRequest("The header 'expect' supports only 100-continue.", code="http_error", status=417)
    if not request.is_whole:
        request.client.let_continue()


def error_answer(error: GatewayError, headers: dict[str, str] | None = None) -> WholeAnswer:
    """Answer with an error in OpenAI's shape."""
    content = {"content-type": "application/json", **error.headers(), **(headers or {})}
    return WholeAnswer(error.http_status, content, error.body())


def json_answer(content: Any, status: int = 200) -> WholeAnswer:
    """Answer with JSON."""
    return WholeAnswer(status, {"content-type": "application/json; charset=utf-8"}, json.dumps(content).encode())
