"""A new key: who waits until the gateway of the host knows it, and for how long."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from auditor import access
from auditor.access import wait_until_known
from auditor.config import Config
from auditor.domain.keys import Key, hash_secret
from gateway import bootstrap, snapshot

KEY = Key(id="key_1", name="k", hash=hash_secret("secret"))


@pytest.fixture
def config(tmp_path: Path) -> Config:
    deployments, routes = [{"name": "a", "base_url": "http://127.0.0.1:9/v1"}], [{"model": "*", "deployments": ["a"]}]
    return Config.model_validate({"data_dir": str(tmp_path), "deployments": deployments, "routes": routes})


async def test_where_no_gateway_runs_nothing_is_waited_for(config: Config) -> None:
    path = bootstrap.folders(config).snapshot
    assert await wait_until_known(config, KEY) is None
    snapshot.write(path, [])
    assert await wait_until_known(config, KEY) is None
    snapshot.confirm(path)
    long_ago = time.time() - snapshot.FRESH_S - 1
    os.utime(snapshot.confirmation(path), (long_ago, long_ago))
    assert await wait_until_known(config, KEY) is None


async def test_a_gateway_that_runs_is_waited_for(config: Config) -> None:
    path = bootstrap.folders(config).snapshot
    snapshot.write(path, [])
    snapshot.confirm(path)
    waiting = asyncio.create_task(wait_until_known(config, KEY))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    snapshot.write(path, [KEY])
    assert await waiting is True


async def test_a_gateway_that_does_not_learn_of_the_key_is_not_waited_for_for_ever(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_LONGEST_WAIT", 0.2)
    path = bootstrap.folders(config).snapshot
    snapshot.write(path, [])
    snapshot.confirm(path)
    assert await wait_until_known(config, KEY) is False
