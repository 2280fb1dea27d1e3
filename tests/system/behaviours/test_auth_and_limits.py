"""Behaviours 11 to 16: who is let in, how often, and what happens to keys."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from support.clients.each_worker import ask_each_worker
from support.clients.scrape import scrape
from support.clients.sdk_clients import Failure, Sdk
from support.servers.product import Product
from support.stores.postgres import execute
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.waiting import PATIENCE, eventually

from auditor.domain.keys import hash_secret, new_secret
from gateway.snapshot import confirmation

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNKNOWN, NARROW, EXPIRED = (new_secret() for _ in range(3))
#: for each SDK one of its own
HURRIED, REVOKED = ({"python": new_secret(), "node": new_secret()} for _ in range(2))
#: longer than the store's word about a key is believed
LONG_AGO_S = 60


@pytest.fixture(scope="module")
def keys() -> dict[str, dict[str, Any]]:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    own = {key: {"rpm": 3} for key in HURRIED.values()} | {key: {} for key in REVOKED.values()}
    return {NARROW: {"models": ("gpt",)}, EXPIRED: {"expires_at": yesterday}} | own


async def refused(sdk: Sdk, key: str, model: str = "gpt") -> Failure:
    failure = (await sdk.with_key(key).chat(model)).failure
    assert failure is not None
    return failure


async def every_worker_says(gateway: Product, key: str, status: int, patience: float = PATIENCE) -> None:
    """Wait until every worker answers a key with this status."""

    async def models(client: aiohttp.ClientSession) -> int:
        async with client.get(f"{gateway.url}/v1/models", headers={"authorization": f"Bearer {key}"}) as answer:
            return answer.status

    async def all_say() -> bool:
        return set(await ask_each_worker(gateway, models)) == {status}

    await eventually(all_say, patience)


@pytest.mark.parametrize("key", [UNKNOWN, "sk-proj-of-somebody-else", "nonsense"], ids=["unknown", "foreign", "word"])
async def test_11_a_wrong_key_is_401_and_not_repeated_to_anybody(sdk: Sdk, key: str) -> None:
    failure = await refused(sdk, key)
    assert (failure.kind, failure.status) == ("AuthenticationError", 401)
    assert (failure.body["type"], failure.body["code"]) == ("invalid_request_error", "invalid_api_key")
    assert failure.headers["x-should-retry"] == "false"
    assert key not in failure.body["message"] + str(failure.headers)
    assert "sk-" not in failure.message


async def test_11_no_key_is_401_too(gateway: Product) -> None:
    async with aiohttp.ClientSession() as client:
        for path, method in (("/v1/chat/completions", "POST"), ("/v1/models", "GET"), ("/v1/models/gpt", "GET")):
            async with client.request(method, gateway.url + path, json={"model": "gpt"}) as answer:
                assert (answer.status, (await answer.json())["error"]["code"]) == (401, "invalid_api_key")


async def test_12_a_key_for_other_models_is_403_and_no_deployment_is_asked(
    sdk: Sdk, upstream: ScriptedUpstream
) -> None:
    before = upstream.received
    failure = await refused(sdk, NARROW, model="ordinary")
    assert (failure.kind, failure.status) == ("PermissionDeniedError", 403)
    assert (failure.body["code"], failure.body["param"]) == ("model_not_allowed", "model")
    assert upstream.received == before


async def test_13_an_expired_key_and_within_five_seconds_a_revoked_one_are_401(sdk: Sdk, gateway: Product) -> None:
    assert (await refused(sdk, EXPIRED)).body["code"] == "invalid_api_key"
    key = REVOKED[sdk.name]
    assert (await sdk.with_key(key).chat("gpt")).failure is None  # from here on it is cached
    await gateway.rows("UPDATE client_keys SET revoked_at = now() WHERE hash = $1", hash_secret(key))

    await every_worker_says(gateway, key, 401, patience=5)
    assert (await refused(sdk, key)).body["code"] == "invalid_api_key"


@asynccontextmanager
async def store_away(gateway: Product) -> AsyncIterator[None]:
    """Let nobody into the gateway's database, and let the store's last word be older than it is believed."""
    server, _, name = (gateway.database_url or "").rpartition("/")
    confirmed = confirmation(gateway.data_dir / "gateway" / "keys.json")

    def silent() -> bool:
        # Repeated: a connection may have been on its way in when the door was closed.
        execute(
            f"{server}/postgres",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE datname = '{name}' AND backend_type = 'client backend'",
        )
        return time.time() - confirmed.stat().st_mtime > 2.5  # keys are read every two seconds

    execute(f"{server}/postgres", f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    try:
        await eventually(silent)
        os.utime(confirmed, (time.time() - LONG_AGO_S,) * 2)
        yield
    finally:
        execute(f"{server}/postgres", f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


async def test_14_with_the_store_away_a_known_key_is_served_and_an_unknown_one_told_to_wait(
    sdk: Sdk, gateway: Product
) -> None:
    async with store_away(gateway):
        await every_worker_says(gateway, UNKNOWN, 503)
        failure = await refused(sdk, UNKNOWN)
        assert (failure.kind, failure.body["code"]) == ("InternalServerError", "key_store_unavailable")
        assert int(failure.headers["retry-after"]) > 0
        assert (await sdk.chat("gpt")).failure is None
        assert (await refused(sdk, EXPIRED)).status == 401
    await every_worker_says(gateway, UNKNOWN, 401)


async def test_15_over_its_own_limit_a_key_gets_429_and_when_to_come_back(sdk: Sdk, upstream: ScriptedUpstream) -> None:
    hurried = sdk.with_key(HURRIED[sdk.name])
    before = upstream.received
    answers = await asyncio.gather(*(hurried.chat("gpt") for _ in range(8)))  # to both workers at once
    failures = [answer.failure for answer in answers if answer.failure is not None]
    assert len(answers) - len(failures) == upstream.received - before == 3
    for failure in failures:
        assert (failure.kind, failure.body["code"]) == ("RateLimitError", "rate_limit_exceeded")
        assert 1 <= int(failure.headers["retry-after"]) <= 61
        assert failure.headers["x-ratelimit-limit-requests"] == "3"
        assert failure.headers["x-ratelimit-remaining-requests"] == "0"
        assert failure.headers["x-ratelimit-reset-requests"]
        assert "x-should-retry" not in failure.headers


async def test_16_only_the_hash_of_a_key_is_in_the_store_on_the_disk_and_in_the_series(
    sdk: Sdk, gateway: Product
) -> None:
    secrets = [sdk.key, NARROW, EXPIRED, UNKNOWN]
    for key in secrets:
        await sdk.with_key(key).chat("ordinary", user=key)  # also where a client writes it into its body by mistake
        await sdk.with_key(key).ask("models.list")
    await gateway.shipped()
    shown = await scrape(gateway.url)
    for (table,) in await gateway.rows("SELECT table_name FROM information_schema.tables WHERE table_schema='public'"):
        shown += "".join(row["line"] for row in await gateway.rows(f'SELECT t::text AS line FROM "{table}" t'))
    held = b"".join(path.read_bytes() for path in gateway.folder.rglob("*") if path.is_file())
    for key in secrets:
        assert key not in shown
        assert key.encode() not in held
        assert key.encode().hex() not in shown  # PostgreSQL writes bytes so
    assert hash_secret(sdk.key).hex() in shown
