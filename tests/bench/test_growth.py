"""The cost of an exchange as stored history, deployments and gateway hosts grow tenfold; nothing is lost or doubled.

``python -m pytest -m bench -s tests/bench/test_growth.py`` prints the tables of ``docs/scale.md`` and its
dated note. CPU time, which other work on the machine hardly changes; compare lines of one run. A hundred
shippers need 4 GB of memory.
``BIASMETER_GROWTH_PAST=1e5`` and ``BIASMETER_GROWTH_HOSTS=10`` stop at less.
"""

import asyncio
import os
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from pathlib import Path

import asyncpg
import pytest
from support.servers.shipping_fleet import ShippingFleet, Usage, postmaster_of, shippers
from support.stores.databases import Databases
from support.stores.growth_costs import STEPS, Growth, cost_of_new
from support.stores.postgres import create_database, drop_database, remove_store, wait_until_stopped

from auditor.postgres.embedded import attach
from auditor.postgres.folder import StoreFolder
from auditor.store.engine import make_engine
from auditor.store.schema import migrate

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3000)]

NEW = 2000
PAST = int(float(os.environ.get("BIASMETER_GROWTH_PAST", "1e6")))
HOSTS = int(os.environ.get("BIASMETER_GROWTH_HOSTS", "100"))
IDLE_S, ROWS, RATE, STEADY_S = 20.0, 20_000, 200, 20.0
#: Client keys with limits and budgets, whose shares and spending every host exchanges.
KEYS = 50
_KEYS = """
    INSERT INTO client_keys (id, name, hash, models, rights, rpm, budget, created_at)
    SELECT 'key_' || i, 'k', sha256(i::text::bytea), '{}', '{}', 100000, 1000, now() FROM generate_series(1, $1) AS i
"""


def line(of: object, growth: Growth) -> str:
    per = [f"{growth.own[step] / NEW * 1e6:,.0f} + {growth.server[step] / NEW * 1e6:,.0f}" for step in STEPS[:3]]
    last = f"{growth.own['estimate']:.1f} + {growth.server['estimate']:.1f}"
    return f"| {of:,} | {' | '.join(per)} | {last} | {growth.lost}, {growth.doubled} |"


async def test_history_and_deployments(tmp_path: Path, databases: Databases) -> None:
    print("\nCPU of the process + of PostgreSQL: us per new exchange; s per update of the estimates")
    for title, cases in (
        ("past exchanges", [(past, past, 20) for past in (10**4, 10**5, 10**6) if past <= PAST]),
        ("deployments", [(names, min(PAST, 10**5), names) for names in (2, 20, 200)]),
    ):
        print(f"| {title} | ship | code | count | estimate, s | lost, doubled |\n|---|---|---|---|---|---|")
        for of, past, deployments in cases:
            with databases.fresh() as url:
                folder = tmp_path / title.replace(" ", "-") / str(of)
                folder.mkdir(parents=True)
                growth = await cost_of_new(url, folder, past=past, deployments=deployments, new=NEW)
            print(line(of, growth), flush=True)
            assert (growth.lost, growth.doubled) == (0, 0)


@pytest.fixture
def great_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL of the test's own that admits three connections a host."""
    folder = tmp_path_factory.mktemp("server")
    folder.chmod(0o755)
    with attach(folder):
        pass
    wait_until_stopped(folder)
    pointer = StoreFolder(folder / "postgres").pointer
    root = Path(pointer.read_text().splitlines()[0]) if pointer.exists() else folder
    (settings,) = root.rglob("postgresql.conf")
    settings.with_name("local.conf").write_text(f"max_connections = {3 * HOSTS + 50}\n")
    with attach(folder) as store:
        yield store.url
    remove_store(folder)


async def test_hosts(tmp_path: Path, great_server: str) -> None:
    print(f"\n{KEYS} keys with limits and budgets; {ROWS:,} exchanges of 1.5 kB in all, then {RATE} a second")
    print("| hosts | connections | at rest, CPU % a host + PostgreSQL | us an exchange, hosts + PostgreSQL "
          "| exchanges/s | lag, s: median, most | lost, doubled |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for number in (1, 10, 100):
        if number <= HOSTS:
            print(await _fleet(tmp_path / str(number), great_server, number), flush=True)


async def _fleet(folder: Path, server: str, number: int) -> str:
    url = create_database(server, f"fleet_{number}")
    engine = make_engine(url)
    await migrate(engine)
    await engine.dispose()
    store = await asyncpg.connect(url)
    await store.execute(_KEYS, KEYS)
    with shippers(folder, url, number) as hosts:
        fleet = ShippingFleet(hosts, store, await postmaster_of(store))
        for host in range(number):
            fleet.write(1, host)  # the partition of the day
        await fleet.shipped()
        await asyncio.sleep(6.0)  # shares have settled
        rest = await _used(fleet, asyncio.sleep(IDLE_S))
        fleet.write_at_once(ROWS // number)
        full = await _used(fleet, fleet.shipped())
        lags = await _lags(fleet)
        stored = Counter(str(row["id"]) for row in await store.fetch("SELECT id FROM exchanges"))
        lost, doubled = len(fleet.written) - len(stored), stored.total() - len(stored)
        connections = await fleet.connections()
        assert stored == Counter(fleet.written)
    await store.close()
    drop_database(server, f"fleet_{number}")
    at_rest = f"{100 * rest.shippers / rest.at / number:.1f} + {100 * rest.server / rest.at:.0f}"
    each = f"{full.shippers / ROWS * 1e6:,.0f} + {full.server / ROWS * 1e6:,.0f}"
    lag = f"{statistics.median(lags):.1f}, {max(lags):.1f}"
    return f"| {number} | {connections} | {at_rest} | {each} | {ROWS / full.at:,.0f} | {lag} | {lost}, {doubled} |"


async def _used(fleet: ShippingFleet, work: Awaitable[None]) -> Usage:
    before = fleet.usage()
    await work
    return fleet.usage().since(before)


async def _lags(fleet: ShippingFleet) -> list[float]:
    """Write at a steady rate, one host after the other, and return how long each count took to be in the store."""
    written: list[tuple[int, float]] = []
    lags: list[float] = []
    began, count, turn = time.monotonic(), len(fleet.written), 0
    while time.monotonic() < began + STEADY_S or written:
        now = time.monotonic()
        if now < began + STEADY_S:
            for _ in range(round((now - began) * RATE) - (len(fleet.written) - count)):
                fleet.write(1, turn := turn + 1)
            written.append((len(fleet.written), time.monotonic()))
        stored, now = await fleet.stored(), time.monotonic()
        while written and written[0][0] <= stored:
            lags.append(now - written.pop(0)[1])
        await asyncio.sleep(0.1)
    return lags
