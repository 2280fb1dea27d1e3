"""``GET /v1/models``: list the models that the caller may use. A ``*`` route adds the models of its deployments.

All callers wait for one request to a deployment and share its list, and those whose key has all models share the
answer. Entries are relayed as the deployment wrote them.
"""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from auditor.config import Deployment
from gateway.errors import GatewayError, NotFound
from gateway.exchange.app import Gateway
from gateway.headers import upstream_headers
from gateway.http import Request, WholeAnswer
from gateway.limits.key_limits import TokenCount
from gateway.routing.table import ANY, RoutingTable
from gateway.upstreams.fetch import fetch
from gateway.upstreams.requests import connection_key, parse_url, write_head

#: The entries of a list, as JSON, by the names of the models.
Models = dict[str, bytes]
#: Seconds for which a deployment's list is cached, and why it could not be read.
_BELIEVED: Final = 30.0
_FAILED: Final = 5.0
#: Maximum bytes of a deployment's list; the longest real ones have some hundred KiB.
_LARGEST_LIST: Final = 4 << 20
_NO_TOKENS: Final = TokenCount(0, 0)
_TYPE: Final = "application/json; charset=utf-8"


class _Answer(msgspec.Struct):
    data: list[msgspec.Raw]


class _Entry(msgspec.Struct):
    id: Any


_answer = msgspec.json.Decoder(_Answer)
_entry = msgspec.json.Decoder(_Entry)


@dataclass(frozen=True, slots=True, eq=False)
class _Listing:
    """A deployment's list, or why it could not be read."""

    models: Models
    error: GatewayError | None
    until: float  #: in seconds of the monotonic clock


@dataclass(frozen=True, slots=True)
class _Merged:
    """The list of all models, and the answer that contains it."""

    made_from: tuple[RoutingTable, tuple[_Listing, ...]]
    models: Models
    body: bytes


class Catalog:
    """Lists models, and caches the lists of deployments."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._listings: dict[str, _Listing] = {}
        self._fetching: dict[str, asyncio.Task[_Listing]] = {}
        self._merged: _Merged | None = None

    async def list(self, request: Request) -> WholeAnswer:
        """``/v1/models``."""
        allowed, merged = await self._read(request)
        if not allowed:
            return WholeAnswer(200, {"content-type": _TYPE}, merged.body)
        body = _write([entry for name, entry in merged.models.items() if name in allowed])
        return WholeAnswer(200, {"content-type": _TYPE}, body)

    async def model_by_name(self, request: Request) -> WholeAnswer:
        """``/v1/models/``: one of them. Its name may hold slashes."""
        name = request.path.removeprefix("/v1/models/")
        allowed, merged = await self._read(request)
        entry = merged.models.get(name)
        if entry is None or (allowed and name not in allowed):
            raise NotFound(f"The model {name[:200]!r} does not exist.", code="model_not_found", param="model")
        return WholeAnswer(200, {"content-type": _TYPE}, entry)

    async def _read(self, request: Request) -> tuple[tuple[str, ...], _Merged]:
        """Return the models that the caller's key is limited to, if it is, and the list of all.

        Raises
        ------
        GatewayError
            The caller has no valid key or has used up its limits, or no deployment has listed its models.
        """
        gateway = self._gateway
        key = gateway.authenticator.identify(request.headers)
        if key is not None:
            gateway.admit(key, _NO_TOKENS)
        table = gateway.table
        rest = table.routes.get(ANY)
        deployments = [] if rest is None else [table.deployments[entry.name] for entry in rest.deployments]
        # Every request to a deployment with a model of its own uses that one.
        listings = await asyncio.gather(*(self._listing(each) for each in deployments if each.model is None))
        return () if key is None else key.models, self._merge(table, tuple(listings))

    def _merge(self, table: RoutingTable, listings: tuple[_Listing, ...]) -> _Merged:
        merged = self._merged
        if merged is not None and merged.made_from == (table, listings):
            return merged
        relayed: Models = {}
        for listing in listings:
            relayed |= listing.models
        errors = [listing.error for listing in listings if listing.error is not None]
        if errors and not relayed:
            raise errors[0].with_traceback(None)  # it is raised again and again
        models = {name: _named(name) for name in table.routes if name != ANY}
        models |= {name: entry for name, entry in relayed.items() if name not in models}
        merged = self._merged = _Merged((table, listings), models, _write(models.values()))
        return merged

    async def _listing(self, deployment: Deployment) -> _Listing:
        name = deployment.name
        listing = self._listings.get(name)
        if listing is not None and time.monotonic() <= listing.until:
            return listing
        task = self._fetching.get(name)
        if task is None:
            task = self._fetching[name] = asyncio.create_task(self._fetch(deployment))
        return await asyncio.shield(task)  # it goes on for the others when this caller leaves

    async def _fetch(self, deployment: Deployment) -> _Listing:
        try:
            listing = _Listing(await _fetch(self._gateway, deployment), None, time.monotonic() + _BELIEVED)
        except GatewayError as error:
            listing = _Listing({}, error, time.monotonic() + _FAILED)
        finally:
            del self._fetching[deployment.name]
        self._listings[deployment.name] = listing
        return listing


def _named(name: str) -> bytes:
    return msgspec.json.encode({"id": name, "object": "model", "created": 0, "owned_by": "biasmeter"})


def _write(entries: Iterable[bytes]) -> bytes:
    return b'{"object": "list", "data": [%b]}' % b", ".join(entries)


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
        body.decode()  # entries are relayed as they are
        entries = [(_entry.decode(raw).id, bytes(raw)) for raw in _answer.decode(body).data]
        return {name: entry for name, entry in entries if isinstance(name, str)}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        message = f"The deployment {deployment.name!r} did not list its models (status {head.status})."
        raise GatewayError(message, code="upstream_protocol", status=502) from None
