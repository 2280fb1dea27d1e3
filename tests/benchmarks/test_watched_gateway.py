"""From the wire to the webhook: a simulated deployment changes, is paged, and its neighbour is not.

Simulator, gateway and shipper are processes of their own, at their own time. What a pass has left in the store is then
moved to the day that is simulated, and the auditor's work on it is done with a clock of that day. A dozen days take
about a minute, so it is no part of the suite; ``tests/jobs/test_monitor.py`` has the same from the codings on.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest
import yaml
from audited import fetch
from hook_server import receiving
from product import Product, free_port, installation
from watched_store import STATEMENTS, TASKS, moment

from auditor.access import gateway_access
from auditor.config import Config, load
from auditor.domain.ids import day_bounds, id_time
from auditor.export.exposition import Exposition
from auditor.instrument.designs import Design, Variation
from auditor.jobs.idle import run_until_idle
from auditor.jobs.webhook import post_next
from auditor.jobs.work import Work
from auditor.probes.plan import Asked, make_plan
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
            with product.running("gateway"):
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
    asked = Asked(design=Design.PANEL, statements=STATEMENTS, number=day, variation=Variation(levels={"task": TASKS}))
    runner = Runner(engine=engine, config=config, access=gateway_access(config))
    ended = await runner.run(make_plan(asked), config.deployments, share=0.1)
    assert {one.answered for one in ended} == {len(STATEMENTS) * len(TASKS)}


async def test_a_change_behind_the_gateway_wakes_somebody(product: Product) -> None:
    assert product.database_url is not None
    engine = make_engine(product.database_url)
    async with receiving(503) as receiver, httpx.AsyncClient() as client:
        product.settings["monitor"]["webhook"] = {"url": receiver.url, "secret": "s3cret"}
        product.write()
        config = load(product.config, {})
        for day in range(LAST):
            if day == DRIFTS_ON:
                base = product.settings["deployments"][0]["base_url"].removesuffix("/v1")
                answer = await client.post(f"{base}/simulate/deployments/moves", json={"drifted": True})
                assert answer.status_code == 200
            await ask(product, engine, config, day)
            await move_to(product.database_url, day)
            await run_until_idle(config, engine, partial(moment, day + 1, 2))
            for minutes in (0, 10):
                work = Work(
                    engine=engine, config=config, clock=partial(moment, day + 1, 2 + minutes / 60), readers={}
                )  # fmt: skip
                while await post_next(work, client):
                    pass
        exposition = Exposition()
        await exposition.refresh(engine)
    await engine.dispose()
    rows = await fetch(product.database_url, "SELECT deployment, metric, level, day FROM findings ORDER BY day")
    print([tuple(row) for row in rows])
    paged = [row for row in rows if row["level"] == "page"]
    assert {row["deployment"] for row in rows} == {"moves"}
    assert paged[0]["day"] <= moment(DRIFTS_ON + 2).date()
    series = exposition.text.decode().splitlines()
    assert 'tiltmeter_drift_alarm{deployment="moves",level="page",metric="ber_union_full"} 1.0' in series
    assert 'tiltmeter_drift_alarm{deployment="stays",level="page",metric="ber_union_full"} 0.0' in series
    told = [json.loads(body)["finding"] for _, body in receiver.got]
    # The first post failed and came again.
    assert len(told) == len(rows) + 1
    assert told[0] == told[1] or {one["id"] for one in told[:-1]} == {one["id"] for one in told}
    assert {one["deployment"] for one in told} == {"moves"}
