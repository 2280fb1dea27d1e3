"""A simulated deployment drifts, requests move to its peer, the drift ends, and they come back.

Simulator, gateway, shipper and auditor are processes at their own time. The days of probes come from the simulator's
tables (``watched_store``), and monitoring works on them with a clock of those days.
"""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml
from support.servers.ports import free_port
from support.servers.product import Product, Running, installation
from support.stores.watched_store import TASKS, Days, moment, simulated
from support.waiting import eventually

from auditor.config import load
from auditor.jobs.monitor import watch_days
from auditor.store.actions import StoredAction, add_action
from auditor.store.codings import register_coder
from auditor.store.engine import make_engine, transaction
from auditor.store.findings import Finding, add_finding
from auditor.work import open_work

NAMES = ("moves", "stays", "pinned")
TRUTH = {"p_a": 0.25, "p_b_given_a": 0.6, "p_b_given_not_a": 0.06}
DRIFTS_ON, LAST_DRIFTED, LAST = 8, 10, 13
REQUESTS = 200
DEPLOYMENTS = [simulated(name) for name in NAMES]


@pytest.fixture
def product(tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    port = free_port()
    scenario = {"deployments": [{"name": name, "tasks": dict.fromkeys(TASKS, TRUTH)} for name in NAMES]}
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(scenario))))
    url = f"http://127.0.0.1:{port}/v1"
    policy = {"level": "page", "action": "shift_weight", "to": ["stays"], "share": 0.45, "recovered_after": 3}
    settings: dict[str, Any] = {
        "data_dir": "data",
        "gateway": {"listen": f"127.0.0.1:{free_port()}", "workers": 1, "drain_notice": "0s"},
        "auditor": {"listen": f"127.0.0.1:{free_port()}"},
        "deployments": [{"name": name, "base_url": url, "model": name} for name in NAMES],
        "routes": [{"model": "gpt", "deployments": ["moves", "stays"], "capture": "full", "on_finding": [policy]}],
        "monitor": {"reference": "7d", "anchor": "pinned"},
    }
    with installation(tmp_path, settings, migrated_url) as product:
        yield product


@pytest.fixture
def simulator(product: Product) -> Iterator[None]:
    """The deployments."""
    port = urlsplit(product.settings["deployments"][0]["base_url"]).port
    arguments = ("simulate", "-c", str(product.folder / "scenario.yaml"), "--port", str(port))
    running = product.start_unconfigured(*arguments, until=r"http://127\.0\.0\.1:\d+/v1")
    try:
        yield
    finally:
        running.stop()


@dataclass
class Clients:
    """Clients of the route, who count which deployment has answered: the simulator names itself in each answer."""

    product: Product
    answered: Counter[str] = field(default_factory=Counter)

    async def share(self) -> float:
        """Send requests, and return the share that the drifting deployment has answered."""
        found: Counter[str] = Counter()
        async with aiohttp.ClientSession() as client:
            for number in range(REQUESTS):
                asked = {"model": "gpt", "messages": [{"role": "user", "content": f"Hello {number}"}]}
                async with client.post(f"{self.product.url}/v1/chat/completions", json=asked) as answer:
                    assert answer.status == 200, await answer.text()
                    found[(await answer.json())["model"]] += 1
        self.answered += found
        return found["moves"] / REQUESTS


@dataclass
class Nights:
    """Days of probes, and the monitoring of each in the night after it."""

    days: Days

    async def until(self, last: int, drifts_on: int | None) -> None:
        first = 0 if not self.days.asked else LAST_DRIFTED
        self.days.deployments = [simulated("moves", drifts_on, 1.6), *DEPLOYMENTS[1:]]
        for day in range(first, last):
            await self.days.pass_of(day)
            async with open_work(self.days.engine, self.days.config, partial(moment, day + 1, 2)) as work:
                assert await watch_days(work) == 1


async def followed(gateway: Running, ending: str) -> None:
    """Wait until the worker has said which actions it applies, the last time."""
    await eventually(lambda: [one for one in gateway.said().splitlines() if "actions on routes" in one][-1:] != [])
    await eventually(
        lambda: [one for one in gateway.said().splitlines() if "actions on routes" in one][-1].endswith(ending)
    )


@pytest.mark.slow
@pytest.mark.usefixtures("simulator")
async def test_requests_leave_a_deployment_that_drifts_and_come_back_when_it_recovers(product: Product) -> None:
    assert product.database_url is not None
    engine = make_engine(product.database_url)
    config = load(product.config, {})
    nights = Nights(Days(product.database_url, engine, config, DEPLOYMENTS))
    clients = Clients(product)
    command = ("actions", "-c", str(product.config))
    await nights.until(LAST_DRIFTED, DRIFTS_ON)
    with product.running("gateway") as gateway:
        before = await clients.share()
        assert product.run(*command).stdout == "no finding has acted\n"
        planned = await asyncio.to_thread(product.run, *command, "--dry-run")
        assert "move 45.0 % of route gpt from moves to stays" in planned.stdout
        assert product.run(*command).stdout == "no finding has acted\n"
        with product.running("auditor", until="listening on"):
            await followed(gateway, "(shift_weight on gpt)")
        shifted = await clients.share()

        # The auditor's clock is today's, so it has closed the days that are simulated next.
        await product.rows("DELETE FROM monitor_days WHERE day >= $1", moment(LAST_DRIFTED).date())
        await nights.until(LAST, None)
        assert 0.3 < before < 0.7
        assert shifted < 0.2
        with product.running("auditor", until="listening on"):
            await followed(gateway, "none")
            async with aiohttp.ClientSession() as client:
                (told,) = (await (await client.get(f"{product.api}/api/actions")).json())["actions"]
                page = await (await client.get(f"{product.api}/findings", headers={"accept": "text/html"})).text()
        back = await clients.share()
        assert 0.3 < back < 0.7
        await product.shipped()
    await engine.dispose()

    assert told["because"] == "the newest days no longer show the change"
    assert "What findings did to routes" in page
    events = await product.rows("SELECT action, by, note FROM finding_events WHERE action LIKE 'action%' ORDER BY id")
    assert [(one["action"], one["by"]) for one in events] == [("action_began", "policy"), ("action_ended", "policy")]
    assert "weights: moves 1 -> 0.1, stays 1 -> 1.9" in events[0]["note"]
    assert told["id"] in product.run(*command).stdout
    # Nothing is lost or doubled: what the clients got is what the simulator answered, and what is stored.
    stored = await product.rows("SELECT deployment, count(*) AS n FROM exchanges WHERE origin = 'client' GROUP BY 1")
    assert {one["deployment"]: one["n"] for one in stored} == dict(clients.answered)
    assert clients.answered.total() == 3 * REQUESTS


async def act(product: Product, now: datetime) -> None:
    """Store a finding with an action that ends in some seconds, as an auditor leaves them that has died."""
    async with transaction(engine := make_engine(product.database_url or "")) as connection:
        await register_coder(connection, "coder", "statement", {}, now)
        facts = {"coder": "coder", "deployment": "moves", "metric": "ber_union_full", "level": "page"}
        days = {"day": now.date(), "window_since": now.date(), "first_seen": now}
        change = {"value": 0.1, "low": 0.05, "high": 0.15, "n": 1000, "n_statements": 110}
        finding = Finding(id="finding_1", reference_id="reference_1", evidence={}, **facts, **days, **change)
        assert await add_finding(connection, finding)
        action = StoredAction(
            id="action_1", finding_id=finding.id, route="gpt", deployment="moves", level="page", kind="shift_weight",
            to=("stays",), share=0.45, dry_run=False, began_at=now, evidence_day=now.date(),
            expires_at=now + timedelta(seconds=10),
        )  # fmt: skip
        await add_action(connection, action)
    await engine.dispose()


async def test_an_action_ends_in_the_gateway_at_its_time_with_nobody_to_end_it(product: Product) -> None:
    with product.running("gateway") as gateway:
        await act(product, datetime.now(UTC))
        await followed(gateway, "(shift_weight on gpt)")
        (shipper,) = gateway.pids("gateway.processes.ship")
        os.kill(shipper, signal.SIGSTOP)  # the snapshot stays as it is
        await followed(gateway, "none")
        os.kill(shipper, signal.SIGCONT)
    assert await product.rows("SELECT 1 FROM route_actions WHERE ended_at IS NULL")
