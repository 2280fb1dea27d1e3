"""``GET /v1/models``: list the models that the caller may use. A ``*`` route adds the models of its deployments."""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from auditor.config import Deployment
from gateway.errors import GatewayError, NotFound, UpstreamFailed, UpstreamTimeout
from gateway.exchange.app import Gateway, json_answer
from gateway.headers import upstream_headers
from gateway.http import Request, WholeAnswer
from gateway.routing.table import ANY
from gateway.upstreams import Upstream, UpstreamRequest

Model = dict[str, Any]
Models = list[Model]
#: Seconds for which a deployment's list is cached.
_BELIEVED = 30.0
#: Maximum bytes of a deployment's list; the longest real ones have some hundred KiB.
_LARGEST_LIST = 4 << 20


class Catalog:
    """Lists models, and caches the lists of deployments."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._lists: dict[str, tuple[float, Models]] = {}

    async def list(self, request: Request) -> WholeAnswer:
        """``/v1/models``."""
        models = await self._models(request)
        return json_answer({"object": "list", "data": models})

    async def one(self, request: Request) -> WholeAnswer:
        """``/v1/models/``: one of them. Its name may hold slashes."""
        asked = request.path.removeprefix("/v1/models/")
        for model in await self._models(request):
            if model["id"] == asked:
                return json_answer(model)
        raise NotFound(f"The model {asked[:200]!r} does not exist.", code="model_not_found", param="model")

    async def _models(self, request: Request) -> Models:
        gateway = self._gateway
        key = gateway.authenticator.identify(request.headers)
        named = [_entry(name) for name in gateway.table.routes if name != ANY]
        rest = gateway.table.routes.get(ANY)
        relayed = await self._relayed(gateway.table.deployments[d.name] for d in rest.deployments) if rest else []
        known = {model["id"] for model in named}
        models = named + [model for model in relayed if model["id"] not in known]
        return [model for model in models if key is None or key.may_ask_for(model["id"])]

    async def _relayed(self, deployments: Iterable[Deployment]) -> Models:
        lists = await asyncio.gather(*(self._of(deployment) for deployment in deployments), return_exceptions=True)
        models: dict[str, Model] = {}
        failed: list[BaseException] = []
        for found in lists:
            if isinstance(found, BaseException):
                failed.append(found)
            else:
                models |= {model["id"]: model for model in found}
        if failed and not models:
            raise failed[0]
        return list(models.values())

    async def _of(self, deployment: Deployment) -> Models:
        if deployment.model is not None:
            return []  # every request to it uses this one model
        fetched_at, models = self._lists.get(deployment.name, (0.0, []))
        if not fetched_at or time.monotonic() - fetched_at > _BELIEVED:
            models = await _fetch(self._gateway, deployment)
            self._lists[deployment.name] = (time.monotonic(), models)
        return models


def _entry(name: str) -> Model:
    return {"id": name, "object": "model", "created": 0, "owned_by": "biasmeter"}


async def _fetch(gateway: Gateway, deployment: Deployment) -> Models:
    timeouts = gateway.config.timeouts_for(deployment)
    ask = UpstreamRequest(
        url=deployment.url("models"),
        headers=upstream_headers({}, deployment, "models"),
        body=b"",
        connect_timeout=timeouts.connect,
        method="GET",
        ca_file=deployment.ca_file,
    )
    status, body = await _read_whole(gateway.upstream, ask, timeouts.first_token, _LARGEST_LIST)
    try:
        models = msgspec.json.decode(body)["data"]
        return [model for model in models if isinstance(model["id"], str)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        message = f"The deployment {deployment.name!r} did not list its models (status {status})."
        raise GatewayError(message, code="upstream_protocol", status=502) from None


async def _read_whole(upstream: Upstream, ask: UpstreamRequest, seconds: float, limit: int) -> tuple[int, bytes]:
    """Send a request of the gateway itself, and return the status and body of the answer.

    Raises
    ------
    UpstreamFailed
        The deployment could not be reached, or its answer is larger than ``limit`` bytes.
    UpstreamTimeout
        The answer was not complete after ``seconds``.
    """
    try:
        async with asyncio.timeout(seconds):
            answer = await upstream.send(ask)
            try:
                pieces = []
                size = 0
                while piece := await answer.read():
                    size += len(piece)
                    if size > limit:
                        raise UpstreamFailed(
                            f"The deployment's answer is larger than {limit} bytes.", code="upstream_protocol"
                        )
                    pieces.append(piece)
                return answer.status, b"".join(pieces)
            finally:
                answer.close()
    except TimeoutError:
        raise UpstreamTimeout("The deployment did not answer in time.", code="total_timeout") from None
