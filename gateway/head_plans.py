"""Plans: what follows from the head of a request, worked out once for each head that clients send again and again.

A head is recognised by its bytes, except the digits of its content-length. A plan is made when the strict parser has
accepted the same head twice, and holds nothing of a body. All plans are dropped when the keys, the configuration or the
snapshot have changed, so a plan is never older than what the ordinary way would look up.
"""

import math
from collections.abc import Mapping
from random import random
from typing import Final

from auditor.config import Config, Deployment, Route, WeightedDeployment
from auditor.domain.exchange import Origin
from auditor.domain.keys import Key
from gateway.app import Gateway
from gateway.auth import Directives
from gateway.endpoints import Endpoint
from gateway.errors import GatewayError
from gateway.headers import upstream_headers
from gateway.routing import RoutingTable, choose
from gateway.server import Request
from gateway.slots import DeploymentSlots
from gateway.upstreams import UpstreamRequest, tls
from gateway.upstreams.connection import ConnectionKey
from gateway.upstreams.lean import parse_url, write_head
from gateway.wire import replace_model

#: The largest head with a plan, and the number of heads and of models of a head that have one.
_MOST_HEAD: Final = 4096
_MOST_HEADS: Final = 2048
_MOST_MODELS: Final = 64
#: Heads that were seen once are remembered by their hashes, so many at a time.
_MOST_SEEN: Final = 8192
#: The end of the name before the digits, and what stands before them in lower case.
_BEFORE_LENGTH: Final = b"ength: "
_LENGTH: Final = "\r\ncontent-length: "
_MOST_DIGITS: Final = 7
#: With one of these the head says more than that a usual request follows, or is different each time.
_UNUSUAL: Final = frozenset(
    {"transfer-encoding", "content-encoding", "expect", "upgrade", "x-request-id", "traceparent", "connection"}
)
_PLACEHOLDER: Final = "0-request-id-0"


class DeploymentPlan:
    """How a deployment is asked for the requests of one head and model."""

    __slots__ = (
        "_after",
        "_before",
        "_ca_file",
        "_host",
        "_model",
        "_port",
        "_secure",
        "deployment",
        "is_usable",
        "total",
    )

    def __init__(
        self, config: Config, table: RoutingTable, deployment: Deployment, head: "HeadPlan", model: str
    ) -> None:
        self.deployment = deployment
        self.total = table.timeouts[deployment.name].total
        self._model = deployment.model if deployment.model != model else None
        url = deployment.url(head.endpoint.path)
        target = parse_url(url)
        self._host, self._port, self._secure = target.host, target.port, target.secure
        self._ca_file = deployment.ca_file
        fields = upstream_headers(head.headers, deployment, _PLACEHOLDER, config.gateway.forward_headers)
        written = write_head(target, UpstreamRequest(url, fields, b"", 1.0))
        self._before, _, after = written.partition(_PLACEHOLDER.encode())
        self._after = after.removesuffix(b"0\r\n\r\n")
        #: Whether the request id stands in one place of the head, and its length at the end.
        self.is_usable = after.count(_PLACEHOLDER.encode()) == 0 and after.endswith(b"\r\ncontent-length: 0\r\n\r\n")

    def connection_key(self) -> ConnectionKey:
        """Return where its connections go to."""
        return self._host, self._port, tls.context(self._ca_file) if self._secure else None

    def request(self, request_id: str, body: bytes) -> bytes:
        """Return the whole request to the deployment."""
        if self._model is not None:
            body = replace_model(body, self._model)
        return b"%b%b%b%d\r\n\r\n%b" % (self._before, request_id.encode(), self._after, len(body), body)


class ModelPlan:
    """The route of a model, for the requests of one head."""

    __slots__ = ("_entries", "_plans", "route")

    def __init__(self, gateway: Gateway, head: "HeadPlan", model: str) -> None:
        self.route: Route = gateway.table.route(model)
        self._entries: tuple[WeightedDeployment, ...] = self.route.deployments
        self._plans = {
            entry.name: DeploymentPlan(
                gateway.config, gateway.table, gateway.table.deployments[entry.name], head, model
            )
            for entry in self._entries
            if entry.weight > 0
        }

    def choose(self, slots: DeploymentSlots) -> DeploymentPlan | None:
        """Choose a deployment; None if that is no usual choice, because a breaker is open or a deployment is full."""
        plans = self._plans
        if any(
            slots.seconds_until_open(name)
            or (plan.deployment.concurrency is not None and slots.pending(name) >= plan.deployment.concurrency)
            for name, plan in plans.items()
        ):
            return None
        if len(plans) == 1:
            (plan,) = plans.values()
        else:
            plan = plans[choose(self._entries, slots.pending, random)]
        return plan if plan.is_usable else None


class HeadPlan:
    """What follows from a head, and what has followed from it and a model so far."""

    __slots__ = ("_models", "_place", "directives", "endpoint", "expires_us", "headers", "key", "target")

    def __init__(
        self, place: int, endpoint: Endpoint, request: Request, key: Key | None, directives: Directives
    ) -> None:
        self.endpoint = endpoint
        self.target = request.target
        self.headers: Mapping[str, str] = request.headers
        self.key = key
        self.directives = directives
        expires = key.expires_at if key is not None else None
        self.expires_us = math.inf if expires is None else expires.timestamp() * 1e6
        self._place = place
        self._models: dict[str, ModelPlan | None] = {}

    def has_length_at(self, place: int) -> bool:
        """Return whether the digits of the length begin at ``place``."""
        return place == self._place

    def plan(self, gateway: Gateway, model: str) -> ModelPlan | None:
        """Return the plan for a model; None if the ordinary way must refuse it."""
        try:
            return self._models[model]
        except KeyError:
            pass
        made: ModelPlan | None = None
        if self.key is None or self.key.may_ask_for(model):
            try:
                made = ModelPlan(gateway, self, model)
            except GatewayError:  # there is no such model, or the head to its deployment cannot be written
                made = None
        if len(self._models) < _MOST_MODELS:
            self._models[model] = made
        return made


class HeadPlans:
    """The plans of one worker.

    Parameters
    ----------
    gateway
        The parts of the worker.
    endpoints
        The endpoints with plans, by the target of their requests.
    """

    def __init__(self, gateway: Gateway, endpoints: Mapping[str, Endpoint]) -> None:
        self._gateway = gateway
        self._endpoints = endpoints
        self._plans: dict[bytes, HeadPlan] = {}
        self._seen: set[int] = set()
        self._made_from: tuple[object, ...] = ()

    def __len__(self) -> int:
        return len(self._plans)

    def find(self, data: bytes) -> tuple[HeadPlan, int, int] | None:
        """Return the plan of the head that ``data`` begin with, where the body begins, and its length in bytes."""
        length = _length_at(data)
        if length is None:
            return None
        place, stop, end = length
        plan = self._plans.get(data[:place] + data[stop:end])
        digits = data[place:stop]
        if plan is None or not plan.has_length_at(place) or not digits.isdigit() or not self._is_current():
            return None
        return plan, end + 4, int(digits)

    def learn(self, data: bytes, request: Request) -> None:
        """Make the plan of a head that has come again, from what the parser has made of it."""
        length = _length_at(data)
        endpoint = self._endpoints.get(request.target)
        if length is None or endpoint is None or not _is_usual(request):
            return
        place, stop, end = length
        said = data[place - len(_LENGTH) : stop].decode("latin-1").lower()
        if said != f"{_LENGTH}{request.headers.get('content-length')}":
            return
        self._is_current()
        head = data[:place] + data[stop:end]
        if self._is_seen(head) and (plan := self._plan(place, endpoint, request)):
            if len(self._plans) >= _MOST_HEADS:
                del self._plans[next(iter(self._plans))]
            self._plans[head] = plan

    def _plan(self, place: int, endpoint: Endpoint, request: Request) -> HeadPlan | None:
        authenticator = self._gateway.authenticator
        try:
            key = authenticator.identify(request.headers)
            directives = authenticator.directives(request.headers, key)
        except GatewayError:
            return None
        if directives.origin is not Origin.CLIENT or directives.pin is not None:
            return None
        return HeadPlan(place, endpoint, request, key, directives)

    def _is_seen(self, head: bytes) -> bool:
        mark = hash(head)
        if mark in self._seen:
            self._seen.discard(mark)
            return True
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen.add(mark)
        return False

    def _is_current(self) -> bool:
        """Drop all plans if they were made from other keys or another configuration. Return whether they are kept."""
        gateway = self._gateway
        now = (gateway.config, gateway.table, gateway.authenticator, gateway.snapshot.current)
        if all(one is other for one, other in zip(now, self._made_from, strict=False)) and self._made_from:
            return True
        self._plans.clear()
        self._made_from = now
        return False


def _length_at(data: bytes) -> tuple[int, int, int] | None:
    """Return where the digits of the length begin and end, and where the head ends; None if it is not complete."""
    end = data.find(b"\r\n\r\n", 0, _MOST_HEAD)
    place = data.find(_BEFORE_LENGTH, 0, end) + len(_BEFORE_LENGTH)
    stop = data.find(b"\r", place, place + _MOST_DIGITS + 1)
    return None if end < 0 or stop < 0 or place < len(_BEFORE_LENGTH) else (place, stop, end)


def _is_usual(request: Request) -> bool:
    return request.method == "POST" and request.minor == 1 and request.stays and _UNUSUAL.isdisjoint(request.headers)
