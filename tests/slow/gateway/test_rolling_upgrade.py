"""Two gateway hosts on one store are updated one after the other, under traffic: old and new serve side by side."""

import asyncio
import shutil
from collections import Counter
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import aiohttp
from support.paths import ROOT
from support.servers.product import Product, installation, settings
from support.stores.postgres_proxy import store_line
from support.upstreams.scripted_upstream import upstream_process
from support.waiting import eventually

from auditor.domain.schema import SCHEMA_VERSION

NEXT = f"{int(SCHEMA_VERSION) + 1:04}"
MIGRATION = f'''"""Add a column."""
from alembic import op
revision, down_revision, branch_labels, depends_on = "{NEXT}", "{SCHEMA_VERSION}", None, None
def upgrade() -> None:
    op.execute("ALTER TABLE exchanges ADD COLUMN region text")
'''


def next_release(folder: Path) -> str:
    """A copy of the product that needs one migration more."""
    for package in ("auditor", "biasmeter", "gateway", "replay"):
        shutil.copytree(ROOT / package, folder / package)
    (folder / "auditor" / "domain" / "schema.py").write_text(f'SCHEMA_VERSION = "{NEXT}"\n')
    (folder / "auditor" / "store" / "migrations" / "versions" / f"{NEXT}_region.py").write_text(MIGRATION)
    return str(folder)


class Traffic:
    """Clients behind a load balancer: a host that does not answer is left, and the request goes to the other."""

    def __init__(self, hosts: list[Product]) -> None:
        self.ids: Counter[str] = Counter()
        self.served = [0] * len(hosts)
        self._hosts = hosts
        self._stop = asyncio.Event()

    async def run(self) -> None:
        turn = 0
        async with aiohttp.ClientSession() as client:
            while not self._stop.is_set():
                turn += 1
                first = turn % len(self._hosts)
                assert await self._sent(client, first) or await self._sent(client, 1 - first), "no host answers"
                await asyncio.sleep(0.02)

    async def _sent(self, client: aiohttp.ClientSession, number: int) -> bool:
        url = self._hosts[number].url + "/v1/chat/completions"
        with suppress(aiohttp.ClientConnectionError):
            async with client.post(url, json={"model": "gpt"}) as answer:
                await answer.read()
                assert answer.status == 200
                self.ids[answer.headers["x-biasmeter-exchange-id"]] += 1
                self.served[number] += 1
                return True
        return False

    async def both_serve(self) -> None:
        """Wait until each host has answered ten more requests."""
        before = list(self.served)
        await eventually(lambda: all(now >= then + 10 for now, then in zip(self.served, before, strict=True)))

    def stop(self) -> None:
        self._stop.set()


async def test_hosts_are_updated_one_after_the_other_and_nothing_is_lost(tmp_path: Path, migrated_url: str) -> None:
    newer = next_release(tmp_path / "next")
    async with AsyncExitStack() as stack:
        upstream_url, _ = stack.enter_context(upstream_process())
        line = await stack.enter_async_context(store_line(migrated_url))
        hosts = []
        for number, url in enumerate((migrated_url, line.url)):
            (tmp_path / str(number)).mkdir()
            own = settings(upstream_url, workers=1)
            hosts.append(stack.enter_context(installation(tmp_path / str(number), own, url)))
        first, second = hosts
        running = list(await asyncio.gather(*(asyncio.to_thread(host.start, "gateway") for host in hosts)))
        traffic = Traffic(hosts)
        sending = asyncio.create_task(traffic.run())
        await traffic.both_serve()

        first.environment["PYTHONPATH"] = newer
        await asyncio.to_thread(first.run, "migrate", "-c", str(first.config))
        await traffic.both_serve()
        await line.cut()  # the second host's shipper has to connect again, and meets the new schema
        await line.join()
        await eventually(lambda: f"has schema {NEXT}, this release needs {SCHEMA_VERSION}" in running[1].said())

        for number, host in enumerate(hosts):
            host.environment["PYTHONPATH"] = newer
            await asyncio.to_thread(running[number].stop)
            running[number] = await asyncio.to_thread(host.start, "gateway")
            await traffic.both_serve()
            if host is first:  # old and new side by side: the old one keeps its copies until it is updated
                assert second.spooled() > 0
        traffic.stop()
        await sending
        for host in hosts:
            await host.shipped()
        rows = await first.rows("SELECT id, region FROM exchanges")
        assert Counter(str(row["id"]) for row in rows) == traffic.ids
        assert "Traceback" not in "".join(one.said() for one in running)
        for one in running:
            one.stop()
