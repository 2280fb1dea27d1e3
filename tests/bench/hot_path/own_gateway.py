"""The gateway that is measured, on a real store: keys, routing, limits, metrics, redaction, every exchange kept."""

import asyncio
import os
import re
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import asyncpg
from bench.hot_path.processes import Cpu, Pids, cpu_of, on_cpus
from bench.hot_path.rounds import Proxy, Round
from bench.hot_path.scenarios import MODELS, MOST_CLIENTS
from support.servers.ports import free_port
from support.servers.product import Product, installation
from support.stores.embedded_processes import postgres_pids

from auditor.postgres.embedded import open_store

NAME, UNCAPTURED, OVER_TLS = "biasmeter", "biasmeter, capture 0", "biasmeter, TLS"

_SUFFIX, _TLS_SUFFIX = "-uncaptured", "-tls"
#: Both are counted for each request, and neither is ever reached.
_LIMITS = ("--rpm", str(2**31 - 1), "--tpm", str(2**31 - 1))
_PATIENCE = 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Shipped:
    """What a round has cost, its way from the spool into the store included, until none of its exchanges was left.

    Attributes
    ----------
    worker, parent, shipper, store
        Seconds of CPU of each process, and of all of PostgreSQL's.
    after
        Seconds for which the spool was still being emptied when the load had ended.
    """

    scenario: str
    cycle: int
    exchanges: int
    units: int  #: as of its round
    worker: Cpu
    parent: Cpu
    shipper: Cpu
    store: Cpu
    after: float

    @property
    def cost(self) -> float:
        """Microseconds of CPU of worker, parent and shipper together, per answer or per event of streams."""
        return (self.worker.total + self.parent.total + self.shipper.total) / self.units * 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnGateway:
    """A running gateway as proxies: with every exchange captured, with none, and over TLS."""

    proxies: tuple[Proxy, ...]
    product: Product
    parent: Pids
    shipper: Pids
    store: Pids

    def behind(self) -> tuple[Cpu, Cpu, Cpu]:
        """Give what parent, shipper and store have used so far."""
        # The parent without its children, whose time would count twice.
        return cpu_of(self.parent()), cpu_of(self.shipper()), cpu_of(self.store())

    def await_shipped(self) -> float:
        """Wait until the spool is empty; give the seconds."""
        began = time.monotonic()
        while self.product.spooled():
            assert time.monotonic() < began + _PATIENCE, "the spool is not emptied in time"
            time.sleep(0.05)
        return time.monotonic() - began

    def shipped_since(self, before: tuple[Cpu, Cpu, Cpu], one: Round) -> Shipped:
        """Wait until the spool is empty; give what that and the round before it have cost."""
        after = self.await_shipped()
        parent, shipper, store = (now - then for now, then in zip(self.behind(), before, strict=True))
        return Shipped(
            scenario=one.scenario, cycle=one.cycle, exchanges=one.answers, units=one.units, worker=one.cpu,
            parent=parent, shipper=shipper, store=store, after=after,
        )  # fmt: skip

    def captures(self) -> dict[str, int]:
        """Requests by what was captured of them, as the gateway counts them itself."""
        with urllib.request.urlopen(self.product.url + "/metrics", timeout=30) as answer:
            series = answer.read().decode()
        found = re.findall(r'^biasmeter_capture_total\{outcome="(\w+)"\} (\S+)', series, re.MULTILINE)
        return {outcome: int(float(count)) for outcome, count in found}


@contextmanager
def own_gateway(
    folder: Path,
    upstream: int,
    cpu: int,
    rest: Sequence[int],
    sources: Sequence[Path] = (),
    tls: tuple[int, Path] | None = None,
) -> Iterator[OwnGateway]:
    """Run a gateway until the block ends: its one worker on a CPU, parent, shipper and PostgreSQL on the rest.

    ``sources`` is its path of modules; empty: this tree. ``tls`` is the upstream's port for TLS and its authority.
    """
    folder = folder / "biasmeter"
    folder.mkdir()
    with on_cpus(rest), installation(folder, _settings(upstream, tls), None) as product:
        if sources:
            product.environment["PYTHONPATH"] = os.pathsep.join(map(str, sources))
        product.run("migrate", "-c", str(product.config))
        keys = _create_keys(product)
        with product.running("gateway") as running:
            workers, shipper = running.pids("gateway.processes.worker"), running.pids("gateway.processes.ship")
            for pid in workers:
                os.sched_setaffinity(pid, {cpu})
            store = postgres_pids(product)
            proxy = Proxy(
                name=NAME,
                port=int(product.url.rpartition(":")[2]),
                version=version("biasmeter"),
                pids=lambda: workers,
                headers={"Authorization": f"Bearer {keys[0]}"},
                keys=keys,
            )
            over_tls = replace(proxy, name=OVER_TLS, suffix=_TLS_SUFFIX, tls=True)
            yield OwnGateway(
                proxies=(proxy, replace(proxy, name=UNCAPTURED, suffix=_SUFFIX), *([over_tls] if tls else [])),
                product=product,
                parent=lambda: [running.process.pid],
                shipper=lambda: shipper,
                store=lambda: store,
            )


def _create_keys(product: Product) -> tuple[str, ...]:
    """Make a key for each client, all with the limits of the first."""
    first_id, first = product.create_key(*_LIMITS)
    more = [f"{first[:-4]}{number:04}" for number in range(1, MOST_CLIENTS)]

    async def copy(url: str) -> None:
        connection = await asyncpg.connect(url)
        try:
            columns = "name, models, rights, rpm, tpm, created_at"
            await connection.executemany(
                f"INSERT INTO client_keys (id, hash, {columns}) "
                f"SELECT $1, $2, {columns} FROM client_keys WHERE id = $3",
                [(f"{first_id}_{number}", sha256(key.encode()).digest(), first_id) for number, key in enumerate(more)],
            )
        finally:
            await connection.close()

    with open_store(product.data_dir.resolve(), None) as url:
        asyncio.run(copy(url))
    return (first, *more)


def _settings(upstream: int, tls: tuple[int, Path] | None) -> dict[str, Any]:
    url = f"http://127.0.0.1:{upstream}/v1"
    names = ["one", "other"]
    uncaptured = [
        {"model": model + _SUFFIX, "deployments": names, "capture": "full", "sample": 0.0} for model in MODELS
    ]
    deployments = [{"name": name, "base_url": url, "api_key": "sk-upstream"} for name in names]
    over_tls: list[dict[str, Any]] = []
    if tls is not None:
        port, authority = tls
        secure = f"https://127.0.0.1:{port}/v1"
        names_tls = [f"{name}-tls" for name in names]
        deployments += [
            {"name": name, "base_url": secure, "api_key": "sk-upstream", "ca_file": str(authority)}
            for name in names_tls
        ]
        over_tls = [{"model": model + _TLS_SUFFIX, "deployments": names_tls, "capture": "full"} for model in MODELS]
    return {
        "data_dir": "data",
        "gateway": {"listen": f"127.0.0.1:{free_port()}", "workers": 1, "drain_notice": "0s"},
        "deployments": deployments,
        "routes": [*uncaptured, *over_tls, {"model": "*", "deployments": names, "capture": "full"}],
    }
