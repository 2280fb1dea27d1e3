"""From the wire to the webhook and the shipped rules: a simulated deployment changes and is paged, no neighbour is.

Simulator, gateway, shipper and Prometheus are processes of their own, at their own time. What a pass has left in the
store is then moved to the day that is simulated, and the auditor's work on it is done with a clock of that day; at the
end all of it is done again from the facts alone. A dozen days take minutes, so it is no part of the suite;
``tests/integration/jobs/test_alarm.py`` has the same from the codings on.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import httpx2
import pytest
import yaml
from sqlalchemy.ext.asyncio import AsyncEngine
from support.documents.deployed_rules import found_or_skip
from support.servers.alarms import alarm_of, facts_of, post_due
from support.servers.ports import free_port
from support.servers.product import Product, installation
from support.servers.webhook_server import receiving
from support.stores.audited_store import fetch
from support.stores.watched_store import STATEMENTS, TASKS, moment

from auditor.access import gateway_access
from auditor.config import Config, load
from auditor.domain.ids import day_bounds, id_time
from auditor.instrument.designs import Design, DesignVariation
from auditor.jobs.run_once import run_once
from auditor.probes.plan import PlanSpec, make_plan
from auditor.probes.run import Runner
from auditor.store.engine import make_engine

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

NAMES = ("moves", "stays", "pinned")
TRUTH = {"p_a": 0.25, "p_b_given_a": 0.6, "p_b_given_not_a": 0.06}
DRIFTS_ON = 8
LAST = 12


@pytest.fixture
def product(tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    port = free_port()
    tasks = dict.fromkeys(TASKS, TRUTH)
    drift = {"at": "2100-01-01T00:00:00Z", "shift": {"sel": 1.2, "elab": 0.6}}  # put in force by hand, on its day
    scenario = {
        "deployments": [
            {"name": name, "tasks": tasks, **({"drift": drift} if name == "moves" else {})} for name in NAMES
        ]
    }
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(scenario))))
    url = f"http://127.0.0.1:{port}/v1"
    settings: dict[str, Any] = {
        "data_dir": "data",
        "gateway": {"listen": f"127.0.0.1:{free_port()}", "workers": 1, "drain_notice": "0s"},
        "deployments": [{"name": name, "base_url": url, "model": name, "concurrency": 200} for name in NAMES],
        "routes": [{"model": "*", "deployments": ["stays"]}],
        "monitor": {"reference": "7d", "anchor": "pinned"},
    }
    with installation(tmp_path, settings, migrated_url) as product:
        arguments = ("simulate", "-c", str(tmp_path / "scenario.yaml"), "--port", str(port))
        simulator = product.start_unconfigured(*arguments, until=r"http://127\.0\.0\.1:\d+/v1")
        try:
            yield product
        finally:
            simulator.stop()


async def move_to(url: str, day: int) -> None:
    """Give what the store got today the ids and times of the simulated day."""
    low, high = day_bounds(moment(day).date())
    real = datetime.now(UTC) - timedelta(days=1)
    connection = await asyncpg.connect(url)
    try:
        for table in ("exchanges", "exchange_content"):
            await connection.execute(
                f"CREATE TABLE IF NOT EXISTS {table}_{moment(day):%Y%m%d} PARTITION OF {table} "
                f"FOR VALUES FROM ('{low}') TO ('{high}')"
            )
        ids = [row["id"] for row in await connection.fetch("SELECT id FROM exchanges WHERE at > $1", real)]
        began = min(map(id_time, ids))
        changed = [(one, _moved(one, moment(day, 1) - began), moment(day, 1) + (id_time(one) - began)) for one in ids]
        await connection.executemany("UPDATE exchanges SET id = $2, at = $3 WHERE id = $1", changed)
        pairs = [(old, new) for old, new, _ in changed]
        await connection.executemany("UPDATE exchange_content SET id = $2 WHERE id = $1", pairs)
        await connection.executemany("UPDATE planned_instances SET exchange_id = $2 WHERE exchange_id = $1", pairs)
    finally:
        await connection.close()


def _moved(one: UUID, by: timedelta) -> UUID:
    return UUID(int=one.int + ((by // timedelta(milliseconds=1)) << 80))


async def ask(product: Product, engine: Any, config: Config, day: int) -> None:
    """Send one day's pass through the gateway."""
    asked = PlanSpec(
        design=Design.PANEL, statements=STATEMENTS, number=day, variation=DesignVariation(levels={"task": TASKS})
    )
    runner = Runner(engine=engine, config=config, access=gateway_access(config))
    ended = await runner.run(make_plan(asked), config.deployments, share=0.1)
    assert {one.answered for one in ended} == {len(STATEMENTS) * len(TASKS)}


async def drift(product: Product) -> None:
    """Let the simulator answer as after the change, from now on."""
    simulator = product.settings["deployments"][0]["base_url"].removesuffix("/v1")
    async with httpx2.AsyncClient() as client:
        answer = await client.post(f"{simulator}/simulate/deployments/moves", json={"drifted": True})
    assert answer.status_code == 200


async def asked_and_watched(product: Product, url: str, config: Config) -> None:
    """Ask every day through the gateway, and do the auditor's work of that day on what came; one deployment drifts."""
    engine = make_engine(url)
    with product.running("gateway"):
        for day in range(LAST):
            if day == DRIFTS_ON:
                await drift(product)
            await ask(product, engine, config, day)
            await move_to(url, day)
            await work_on(engine, config, day)
    await engine.dispose()


async def work_on(engine: AsyncEngine, config: Config, day: int) -> None:
    """Do what the auditor does in the night after a day."""
    now = moment(day + 1, 2)
    await run_once(config, engine, lambda: now)
    await post_due(config, engine, now)


async def watched_again(url: str, config: Config) -> None:
    """Work everything out again from what was asked and answered, day by day."""
    engine = make_engine(url)
    for day in range(LAST):
        await work_on(engine, config, day)
    await engine.dispose()


async def test_a_change_behind_the_gateway_wakes_somebody_and_again_from_the_same_facts(
    product: Product, postgres_server: str, tmp_path: Path
) -> None:
    program, url = found_or_skip("prometheus"), product.database_url
    assert url is not None
    async with receiving(503) as receiver:
        product.settings["monitor"]["webhook"] = {"url": receiver.url, "secret": "s3cret"}
        product.write()
        config = load(product.config, {})
        await asked_and_watched(product, url, config)
        told = await alarm_of(url, config, moment(LAST, 2), receiver, program, tmp_path / "first")
        # The first post failed and came again.
        assert len(receiver.got) == len(told.findings) + 1
    rows = await fetch(url, "SELECT deployment, metric, level, day FROM findings ORDER BY day")
    print([tuple(row) for row in rows])
    assert {row["deployment"] for row in rows} == {"moves"}
    assert next(row["day"] for row in rows if row["level"] == "page") <= moment(DRIFTS_ON + 2).date()
    assert {json.loads(body)["finding"]["deployment"] for body in told.posted} == {"moves"}
    assert told.deployments() == {"moves"}
    paged = [one for one in told.alerts if one["labels"]["alertname"] == "BiasmeterDriftPage"]
    assert "ber_union_full" in {one["labels"]["metric"] for one in paged}
    for one in paged:
        print(one["annotations"]["numbers"])
        assert re.search(r"over 7d [\d.]+%, 95 % limits [\d.]+% to [\d.]+%, n = \d+;", one["annotations"]["numbers"])

    with facts_of(postgres_server, url) as copy:
        async with receiving() as receiver:
            product.settings["monitor"]["webhook"]["url"] = receiver.url
            product.write()
            config = load(product.config, {})
            await watched_again(copy, config)
            assert await alarm_of(copy, config, moment(LAST, 2), receiver, program, tmp_path / "again") == told
