"""Plans of known heads: when they are made, what they are found by, and what drops them."""

import gc
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.servers.both_relays import KEYS, SECRETS
from support.servers.gateway_app import Served, served

from auditor.config import Config
from auditor.domain.keys import Right
from gateway import snapshot
from gateway.exchange.endpoints import ENDPOINTS
from gateway.exchange.head_plans import HeadPlan, HeadPlans
from gateway.http import Request
from gateway.routing.table import RoutingTable

SETTINGS: dict[str, Any] = {
    "deployments": [{"name": "a", "base_url": "http://127.0.0.1:9/v1"}],
    "routes": [{"model": "m", "deployments": ["a"]}],
}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %b\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(SETTINGS, tmp_path, KEYS) as made:
        yield made


def plans(gateway: Served) -> HeadPlans:
    return HeadPlans(gateway.gateway, {f"/v1/{endpoint.path}": endpoint for endpoint in ENDPOINTS})


def head(length: int = 2, secret: str = SECRETS[0], extra: bytes = b"") -> bytes:
    return HEAD.replace(b"\r\nHost", b"\r\n%bHost" % extra) % (secret.encode(), length)


def request(length: int = 2, secret: str = SECRETS[0], **changed: Any) -> Request:
    headers = {"host": "h", "authorization": f"Bearer {secret}", "content-length": str(length)}
    fields = {"minor": 1, "stays": True, "target": "/v1/chat/completions", "method": "POST"} | changed
    headers |= fields.pop("headers", {})
    return Request(None, fields["method"], fields["target"], headers, minor=fields["minor"], stays=fields["stays"])  # type: ignore[arg-type]


def remember(made: HeadPlans, times: int = 2) -> None:
    for _ in range(times):
        made.remember(head() + b"{}", request())


def found_plan(made: HeadPlans) -> HeadPlan:
    found = made.find(head())
    assert found is not None
    return found.plan


def test_a_head_is_known_when_it_has_come_twice_whatever_its_length_says(gateway: Served) -> None:
    made = plans(gateway)
    remember(made, times=1)
    assert made.find(head() + b"{}") is None
    remember(made, times=1)
    found = made.find(head(12345))
    assert found is not None
    assert (found.plan.key, found.body_at, found.length) == (KEYS[0], len(head(12345)), 12345)


@pytest.mark.parametrize(
    "other",
    [
        head(secret=SECRETS[1]),
        head(extra=b"X: 1\r\n"),
        head().replace(b"Content-Length: 2", b"Content-Length: -2"),
        head().replace(b"Content-Length: 2", b"Content-Length:  2"),
        head().replace(b"Content-Length: 2", b"Content-Length: 123456789"),
        head().replace(b"Content-Length: 2\r\n", b""),
        head().lower(),
        head().removesuffix(b"\r\n"),
    ],
)
def test_another_head_is_not_known(gateway: Served, other: bytes) -> None:
    made = plans(gateway)
    remember(made)
    assert made.find(other) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "PUT"},
        {"minor": 0},
        {"stays": False},
        {"target": "/v1/models"},
        {"secret": "sk-bias-unknown"},
        {"length": 3},
        *[{"headers": {name: "x"}} for name in ("expect", "transfer-encoding", "content-encoding", "upgrade")],
        {"headers": {"x-biasmeter-origin": "probe"}},
    ],
)
def test_an_unusual_head_is_never_known(gateway: Served, changed: dict[str, Any]) -> None:
    made = plans(gateway)
    for _ in range(3):
        made.remember(head() + b"{}", request(**changed))
    assert (made.find(head() + b"{}"), len(made)) == (None, 0)


def test_a_plan_outlives_a_change_of_its_key_s_limits_and_has_the_new_ones(gateway: Served) -> None:
    made, parts = plans(gateway), gateway.gateway
    remember(made)
    route_plan = found_plan(made).route(parts, "m")
    changed = replace(KEYS[0], rpm=7, tpm=8, budget=9.0)
    snapshot.write(gateway.folders.snapshot, [changed, *KEYS[1:]])
    parts.snapshot.refresh()
    plan = found_plan(made)
    assert plan.key == changed
    assert plan.route(parts, "m") is route_plan


@pytest.mark.parametrize(
    "changed",
    [
        {"revoked": True},
        {"models": ("m",)},
        {"rights": frozenset({Right.PIN})},
        {"id": "key_9"},
        {"expires_at": datetime(2020, 1, 1, tzinfo=UTC)},
    ],
)
def test_a_key_that_may_do_something_else_drops_its_plan(gateway: Served, changed: dict[str, Any]) -> None:
    made, parts = plans(gateway), gateway.gateway
    remember(made)
    snapshot.write(gateway.folders.snapshot, [replace(KEYS[0], **changed), *KEYS[1:]])
    parts.snapshot.refresh()
    assert (made.find(head()), len(made)) == (None, 0)


def test_a_new_end_of_a_key_is_that_of_its_plan(gateway: Served) -> None:
    made, parts = plans(gateway), gateway.gateway
    remember(made)
    end = datetime.now(UTC) + timedelta(days=1)
    snapshot.write(gateway.folders.snapshot, [replace(KEYS[0], expires_at=end), *KEYS[1:]])
    parts.snapshot.refresh()
    assert found_plan(made).expires_us == end.timestamp() * 1e6


def test_a_plan_without_a_key_ends_with_the_first_key(gateway: Served) -> None:
    made, parts = plans(gateway), gateway.gateway
    snapshot.write(gateway.folders.snapshot, [])
    parts.snapshot.refresh()
    keyless = (
        head().replace(b"Authorization: Bearer " + SECRETS[0].encode() + b"\r\n", b"").replace(b": h", b": localhost")
    )
    asked = request()
    del asked.headers["authorization"]
    asked.headers["host"] = "localhost"
    for _ in range(2):
        made.remember(keyless, asked)
    found = made.find(keyless)
    assert found is not None
    assert found.plan.key is None
    snapshot.write(gateway.folders.snapshot, KEYS)  # as the shipper does: the worker has not looked since
    assert (made.find(keyless), len(made)) == (None, 0)


def test_a_change_of_keys_or_configuration_drops_plans(gateway: Served) -> None:
    made, parts = plans(gateway), gateway.gateway
    remember(made)
    snapshot.write(gateway.folders.snapshot, KEYS[1:])
    parts.snapshot.refresh()
    assert (made.find(head()), len(made)) == (None, 0)
    remember(made, times=3)
    assert len(made) == 0  # its key is not known any more
    snapshot.write(gateway.folders.snapshot, KEYS)
    parts.snapshot.refresh()
    remember(made)
    assert made.find(head()) is not None
    parts.config = Config.model_validate({"data_dir": str(parts.config.data_dir), **SETTINGS})
    parts.table = RoutingTable(parts.config)
    assert (made.find(head()), len(made)) == (None, 0)
    remember(made)
    assert made.find(head()) is not None
    parts.table = RoutingTable(parts.config)  # as when an action on a route has expired
    assert (made.find(head()), len(made)) == (None, 0)


def test_the_plans_of_a_head_are_bounded_and_hold_no_long_name(gateway: Served) -> None:
    made, parts = plans(gateway), gateway.gateway
    parts.config = Config.model_validate(
        {"data_dir": str(parts.config.data_dir), **SETTINGS, "routes": [{"model": "*", "deployments": ["a"]}]}
    )
    parts.table = RoutingTable(parts.config)
    remember(made)
    found = made.find(head())
    assert found is not None
    long = "m" * 201
    assert found.plan.route(parts, long) is not found.plan.route(parts, long)
    assert found.plan.route(parts, "0") is found.plan.route(parts, "0")
    for number in range(20):
        assert found.plan.route(parts, str(number)) is not None
    assert len(found.plan._models) == 8


def live_requests() -> list[Request]:
    """List the requests that something in this process holds."""
    gc.collect()
    return [each for each in gc.get_objects() if type(each) is Request]  # isinstance would wake what loads lazily


def test_plans_are_bounded_and_hold_no_request(gateway: Served) -> None:
    made, before = plans(gateway), live_requests()
    for number in range(2100):
        extra = b"X-Also: %d\r\n" % number
        for _ in range(2):
            made.remember(head(extra=extra) + b"{}", request())
    assert len(made) == 2048
    assert made.find(head(extra=b"X-Also: 0\r\n")) is None
    assert made.find(head(extra=b"X-Also: 2099\r\n")) is not None
    assert [each for each in live_requests() if not any(each is other for other in before)] == []


def test_plans_of_long_heads_are_fewer(gateway: Served) -> None:
    made, long = plans(gateway), b"X-Also: %04d" + b"y" * 3800 + b"\r\n"
    for number in range(600):
        for _ in range(2):
            made.remember(head(extra=long % number) + b"{}", request())
    assert 2**20 // 4000 < len(made) < 2**20 // 3800
    assert made.find(head(extra=long % 599)) is not None
    for number in range(2048):  # short ones find room again
        for _ in range(2):
            made.remember(head(extra=b"X-Also: %d\r\n" % number) + b"{}", request())
    assert len(made) == 2048
