"""Plans: what follows from the head of a request, and from the model that its body asks for.

Every request has one. For heads that clients send again and again it is worked out once: such a head is recognised by
its bytes, except the values that differ from request to request (its content-length, x-request-id and traceparent). It
is remembered when the strict parser has accepted the same head twice. A plan holds nothing of a body. All are dropped
when the configuration has changed, or an action on a route begins or ends. When the key snapshot has changed, a plan is
checked before it is used again: it stays if its key may do what it could, because hosts that share limits change the
limits of keys every few seconds. So a plan is never older than what would be looked up now.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from auditor.domain.keys import Key
from gateway.errors import Forbidden, GatewayError
from gateway.exchange.app import Gateway
from gateway.exchange.endpoints import Endpoint
from gateway.exchange.route_plans import RoutePlan
from gateway.headers import is_request_id, is_trace
from gateway.http import Request
from gateway.primitives import split_head
from gateway.recording.recorder import LARGE_COPY

#: The largest head with a plan, and the number of heads and of models of a head that have one.
_MOST_HEAD: Final = 4096
_MOST_HEADS: Final = 2048
#: Bytes of all heads that have one: a plan holds the fields again for each model and deployment.
_MOST_BYTES: Final = 1 << 20
_MOST_MODELS: Final = 8
#: Characters of a model's name with a plan; other names are text of a body.
_MOST_NAME: Final = 200
#: Heads that were seen once are remembered by their hashes, so many at a time.
_MOST_SEEN: Final = 8192
#: The fields whose values are no part of what a head is recognised by, and parts of their names: without those of the
#: last two only the length is looked for.
_VARYING_NAMES: Final = ("content-length", "x-request-id", "traceparent")
#: Both cases of each letter by hand: a pattern that ignores cases takes three times as long.
_VARYING: Final = re.compile(
    rb"(\r\n(?:%b): )([^\r\n]*)(?=\r\n)"
    % b"|".join(
        b"".join(b"[%b%b]" % (letter.upper().encode(), letter.encode()) for letter in name) for name in _VARYING_NAMES
    ).replace(b"[--]", b"-")
)
_IN_ID: Final = b"equest-"
_IN_TRACE: Final = b"raceparent"
_LENGTH_ALONE: Final = ("content-length",)
#: A head with one of these is parsed each time: it says how the body is read, or asks for another answer first.
_PARSED: Final = frozenset({"transfer-encoding", "content-encoding", "expect", "upgrade"})


class HeadPlan:
    """What follows from a head, and what has followed from it and a model so far.

    Attributes
    ----------
    endpoint, endpoint_name
        Endpoint of the requests, and its name in series and records.
    path
        The target of the request.
    minor
        0 for HTTP/1.0, 1 for HTTP/1.1.
    stays
        Whether the client wants to keep the connection.
    headers
        The fields of the first head with this plan; names in lower case.
    key
        The caller's key; None for a caller without one.
    snapshot
        Snapshot that contains the key.
    expires_us
        Time at which the key expires, in microseconds since 1970.
    directives
        Directives of the head; the tags of a trace are added for each request.
    varying
        The names of the fields whose values differ.
    """

    __slots__ = ("_models", "directives", "endpoint", "endpoint_name", "expires_us", "headers", "key",
                 "minor", "path", "snapshot", "stays", "varying")  # fmt: skip

    def __init__(self, gateway: Gateway, endpoint: Endpoint, request: Request, varying: tuple[str, ...] = ()) -> None:
        """Make the plan of a request.

        Raises
        ------
        GatewayError
            The caller has no valid key, or a header is malformed or not allowed.
        """
        self.endpoint, self.endpoint_name = endpoint, endpoint.name
        self.path = request.target
        self.minor, self.stays = request.minor, request.stays
        self.headers: Mapping[str, str] = request.headers
        self.varying = varying
        self.key = gateway.authenticator.identify(request.headers)
        self.snapshot = gateway.snapshot.current
        self.expires_us = _expiry(self.key)
        self.directives = gateway.authenticator.directives(request.headers, self.key)
        self._models: dict[str, RoutePlan] = {}

    def renew(self, gateway: Gateway) -> bool:
        """Find the key in the newest snapshot. Return False if the plan does not follow from it any more."""
        old = self.key
        try:
            key = gateway.authenticator.identify(self.headers)
        except GatewayError:  # revoked, for example
            return False
        if (key is None) is not (old is None):
            return False
        if key is not None and old is not None and (key.id, key.models, key.rights) != (old.id, old.models, old.rights):
            return False
        self.key, self.snapshot, self.expires_us = key, gateway.snapshot.current, _expiry(key)
        return True

    def headers_with(self, values: Sequence[bytes]) -> Mapping[str, str] | None:
        """Return the fields of a head with these values; None if one of them is malformed."""
        headers = {**self.headers, **{n: v.decode("latin-1") for n, v in zip(self.varying, values, strict=True)}}
        has_id = "x-request-id" not in headers or is_request_id(headers["x-request-id"])
        is_traced = "traceparent" not in headers or is_trace(headers["traceparent"])
        return headers if has_id and is_traced else None

    def route(self, gateway: Gateway, model: str) -> RoutePlan:
        """Return the plan for a model.

        Raises
        ------
        Forbidden
            The key may not ask for it, or not for the deployment that the head names.
        NotFound
            There is no such model.
        BadRequest
            There is no deployment of the name that the head names.
        """
        try:
            return self._models[model]
        except KeyError:
            pass
        if self.key is not None and not self.key.allows_model(model):
            raise Forbidden("This key may not use this model.", code="model_not_allowed", param="model")
        plan = RoutePlan(gateway, self.endpoint, self.headers, self.directives, self.key, model)
        if len(self._models) < _MOST_MODELS and len(model) <= _MOST_NAME:
            self._models[model] = plan
        return plan


class KnownHead(msgspec.Struct, frozen=True):
    """The head of a request, and its plan."""

    plan: HeadPlan
    headers: Mapping[str, str]
    body_at: int  #: where the body begins
    length: int  #: bytes of the body


class HeadPlans:
    """The plans of one worker that are remembered.

    Parameters
    ----------
    gateway
        The parts of the worker.
    endpoints
        The endpoints whose heads are remembered, by the target of their requests.

    Attributes
    ----------
    most_body
        Bytes of the largest body that is taken before it is parsed. `find` keeps it up to date.
    """

    def __init__(self, gateway: Gateway, endpoints: Mapping[str, Endpoint]) -> None:
        self._gateway = gateway
        self._endpoints = endpoints
        self._plans: dict[bytes, HeadPlan] = {}
        self._bytes = 0  # of their heads
        self._seen: set[int] = set()
        self._made_from: tuple[object, object] = (None, None)
        self.most_body = 0

    def __len__(self) -> int:
        return len(self._plans)

    def find(self, data: bytes) -> KnownHead | None:
        """Return what is known of the head that ``data`` begin with."""
        split = split_head(data, _MOST_HEAD)
        if split is None or not self._is_current():
            return None
        head, length, body_at = split
        # A head that is known without other varying fields has the same bytes around its length, whatever they are.
        plan = self._plans.get(head)
        headers: Mapping[str, str] | None
        if plan is not None and plan.varying is _LENGTH_ALONE:
            headers = plan.headers
        else:
            read = _read_head(data, split)
            plan = self._plans.get(read.key)
            if plan is None or plan.varying != read.varying:
                return None
            headers = plan.headers_with(read.values)
        if headers is None:
            return None
        if plan.key is None:
            self._gateway.authenticator.refresh_before_keyless()
        if plan.snapshot is not self._gateway.snapshot.current and not plan.renew(self._gateway):
            self._plans = {head: other for head, other in self._plans.items() if other is not plan}
            self._bytes = sum(map(len, self._plans))
            return None
        return KnownHead(plan, headers, body_at, length)

    def remember(self, data: bytes, request: Request) -> None:
        """Keep the plan of a head that has come again, and what the parser has made of it."""
        split = split_head(data, _MOST_HEAD)
        endpoint = self._endpoints.get(request.target)
        if split is None or endpoint is None or not _may_be_remembered(request):
            return
        read = _read_head(data, split)
        fields = [(name, value.decode("latin-1")) for name, value in zip(read.varying, read.values, strict=True)]
        if sorted(fields) != sorted(
            (name, request.headers[name]) for name in _VARYING_NAMES if name in request.headers
        ):
            return
        self._is_current()
        if not self._is_seen(read.key):
            return
        try:
            plan = HeadPlan(self._gateway, endpoint, request, read.varying)
        except GatewayError:
            return
        if plan.headers_with(read.values) is None:
            return
        self._bytes += len(read.key) - (len(read.key) if read.key in self._plans else 0)
        self._plans[read.key] = plan
        while len(self._plans) > _MOST_HEADS or self._bytes > _MOST_BYTES:
            oldest = next(iter(self._plans))
            self._bytes -= len(oldest)
            del self._plans[oldest]

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
        """Drop all plans if they were made from another configuration. Return whether they are kept."""
        gateway = self._gateway
        table, authenticator = self._made_from
        # Every new configuration has a table of its own; an action on a route that expires changes the table alone.
        if table is gateway.table and authenticator is gateway.authenticator:
            return True
        self._plans.clear()
        self._bytes = 0
        self._made_from = gateway.table, gateway.authenticator
        self.most_body = min(LARGE_COPY, gateway.config.gateway.body_limit)
        return False


def _expiry(key: Key | None) -> float:
    """Return when a key expires, in microseconds since 1970."""
    return math.inf if key is None or key.expires_at is None else key.expires_at.timestamp() * 1e6


class _ReadHead(NamedTuple):
    """A head as it is recognised, without the values of the varying fields."""

    key: bytes
    varying: tuple[str, ...]
    values: Sequence[bytes]


def _read_head(data: bytes, split: tuple[bytes, int, int]) -> _ReadHead:
    """Read the head that ``data`` begin with, after its length has been split off."""
    head, length, body_at = split
    if head.find(_IN_ID) < 0 and head.find(_IN_TRACE) < 0:
        return _ReadHead(head, _LENGTH_ALONE, (b"%d" % length,))
    pieces = _VARYING.split(data[: body_at - 2])  # what is between the fields, the name of each, its value
    values = pieces[2::3]
    del pieces[2::3]
    names = tuple([name[2:-2].decode().lower() for name in pieces[1::2]])
    return _ReadHead(b"".join(pieces), names, values)


def _may_be_remembered(request: Request) -> bool:
    is_plain = request.headers.get("connection", "keep-alive").lower() == "keep-alive" and request.stays
    return request.method == "POST" and request.minor == 1 and is_plain and _PARSED.isdisjoint(request.headers)
