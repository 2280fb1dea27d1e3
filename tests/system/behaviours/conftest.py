"""What the behaviours share: a gateway a module, two workers on a real store, and both SDKs pointed at it.

A module says what its gateway is configured with and which keys exist by overriding `configuration` and `keys`.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from support.clients.sdk_clients import Sdk, in_node, in_python, install_for_node
from support.servers.product import Product, installation, settings
from support.stores.databases import Databases
from support.stores.postgres import apart
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream

from auditor.domain.keys import Key, hash_secret, new_secret
from auditor.store.engine import make_engine
from auditor.store.keys import add_key

#: the client key that may do everything an ordinary client may
KEY = new_secret()

Configuration = dict[str, Any]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as up:
        yield up


@pytest.fixture(scope="module")
def configuration(upstream: ScriptedUpstream) -> Configuration:
    return settings(upstream.url)


@pytest.fixture(scope="module")
def keys() -> dict[str, dict[str, Any]]:
    """The client keys that exist beside KEY: the key itself, and in what it differs."""
    return {}


@pytest.fixture(scope="module")
def raw_headers() -> dict[str, str]:
    """What a client without an SDK sends."""
    return {"authorization": f"Bearer {KEY}", "content-type": "application/json"}


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory: pytest.TempPathFactory,
    databases: Databases,
    configuration: Configuration,
    keys: dict[str, dict[str, Any]],
) -> Iterator[Product]:
    with (
        databases.fresh() as url,
        installation(tmp_path_factory.mktemp("gateway"), configuration, url) as product,
    ):
        apart(_add(url, {KEY: {}} | keys))
        with product.running("gateway"):
            yield product


async def _add(url: str, keys: dict[str, dict[str, Any]]) -> None:
    engine = make_engine(url)
    async with engine.begin() as connection:
        for number, (secret, differs) in enumerate(keys.items()):
            key = Key(id=f"key_{number}", name=f"key {number}", hash=hash_secret(secret), **differs)
            await add_key(connection, key, datetime.now(UTC))
    await engine.dispose()


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=["python", pytest.param("node", marks=pytest.mark.slow)]
)
async def unpointed_sdk(request: pytest.FixtureRequest) -> AsyncIterator[Sdk]:
    """An unmodified SDK, not yet pointed at a server. What the one for Node sees in `make test`, a test says."""
    if request.param == "python":
        yield Sdk(name="python", carry_out=in_python, url="")
        return
    install_for_node()
    async with in_node() as carry_out:
        yield Sdk(name="node", carry_out=carry_out, url="")


@pytest.fixture(scope="module")
def sdk(unpointed_sdk: Sdk, gateway: Product) -> Sdk:
    """An unmodified SDK, pointed at the gateway."""
    return unpointed_sdk.to(gateway.url + "/v1").with_key(KEY)
