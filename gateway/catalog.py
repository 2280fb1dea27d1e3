"""``GET /v1/models``: list the models that the caller may use. A ``*`` route adds the models of its deployments."""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from auditor.config import Deployment
from gateway.errors import GatewayError, NotFound
from gateway.exchange.app import Gateway, json_answer
from gateway.headers import upstream_headers
from gateway.http import Request, WholeAnswer
from gateway.routing.table import ANY
from gateway.upstreams.fetch import fetch
from gateway.upstreams.requests import connection_key, parse_url, write_head

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

    async def model_by_name(self, request: Request) -> WholeAnswer:
        """``/v1/models/``: one of them. Its name may hold slashes."""
        name = request.path.removeprefix("/v1/models/")
        for model in await self._models(request):
            if model["id"] == name:
                return json_answer(model)
        raise NotFound(f"The model {name[:200]!r} does not exist.", code="model_not_found", param="model")

    async def _models(self, request: Request) -> Models:
        gateway = self._gateway
        key = gateway.authenticator.identify(request.headers)
        named = [_entry(name) for name in gateway.table.routes if name != ANY]
        rest = gateway.table.routes.get(ANY)
        relayed = await self._relayed(gateway.table.deployments[d.name] for d in rest.deployments) if rest else []
        known = {model["id"] for model in named}
        models = named + [model for model in relayed if model["id"] not in known]
        return [model for model in models if key is None or key.allows_model(model["id"])]

    async def _relayed(self, deployments: Iterable[Deployment]) -> Models:
        lists = await asyncio.gather(*(self._of(deployment) for deployment in deployments), return_exceptions=True)
        models: dict[str, Model] = {}
        failed: list[BaseException] = []
        for result in lists:
            if isinstance(result, BaseException):
                failed.append(result)
            else:
                models |= {model["id"]: model for model in result}
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
    target = parse_url(deployment.url("models"))
    head, body = await fetch(
        gateway.pool,
        connection_key(target, deployment.ca_file),
        write_head("GET", target, upstream_headers({}, deployment, "models"), None),
        connect_timeout=timeouts.connect,
        timeout=timeouts.first_token,
        limit=_LARGEST_LIST,
    )
    try:
        models = msgspec.json.decode(body)["data"]
        return [model for model in models if isinstance(model["id"], str)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        message = f"The deployment {deployment.name!r} did not list its models (status {head.status})."
        raise GatewayError(message, code="upstream_protocol", status=502) from None
