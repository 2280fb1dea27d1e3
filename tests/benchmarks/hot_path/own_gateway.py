"""The gateway that is measured, on a real store: keys, routing, limits, metrics, redaction, every exchange kept."""

import os
import re
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.hot_path.processes import Cpu, Pids, cpu_of, on_cpus
from benchmarks.hot_path.rounds import Proxy
from benchmarks.hot_path.scenarios import MODELS
from postgres_of import postgres_pids
from product import Product, free_port, installation

NAME, UNCAPTURED = "biasmeter", "biasmeter, capture 0"

_SUFFIX = "-uncaptured"
#: Both are counted for each request, and neither is ever reached.
_LIMITS = ("--rpm", str(2**31 - 1), "--tpm", str(2**31 - 1))
_PATIENCE = 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Shipped:
    """What the way from the spool into the store has cost, from the first exchange of a round until none was left.

    Attributes
    ----------
    shipper, store
        Seconds of CPU of the shipper and of all of PostgreSQL's processes.
    after
        Seconds for which the spool was still being emptied when the load had ended.
    """

    exchanges: int
    shipper: Cpu
    store: Cpu
    after: float


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnGateway:
    """A running gateway as two proxies, which differ in whether exchanges are captured."""

    proxies: tuple[Proxy, Proxy]
    product: Product
    shipper: Pids
    store: Pids

    def shipping(self) -> tuple[Cpu, Cpu]:
        """Give what shipper and store have used so far."""
        return cpu_of(self.shipper()), cpu_of(self.store())

    def await_shipped(self) -> float:
        """Wait until the spool is empty; give the seconds."""
        began = time.monotonic()
        while self.product.spooled():
            assert time.monotonic() < began + _PATIENCE, "the spool is not emptied in time"
            time.sleep(0.05)
        return time.monotonic() - began

    def shipped_since(self, before: tuple[Cpu, Cpu], exchanges: int) -> Shipped:
        """Wait until the spool is empty; give what that and what was before it has cost."""
        after = self.await_shipped()
        shipper, store = self.shipping()
        return Shipped(exchanges=exchanges, shipper=shipper - before[0], store=store - before[1], after=after)

    def captures(self) -> dict[str, int]:
        """Requests by what was captured of them, as the gateway counts them itself."""
        with urllib.request.urlopen(self.product.url + "/metrics", timeout=30) as answer:
            series = answer.read().decode()
        found = re.findall(r'^biasmeter_capture_total\{outcome="(\w+)"\} (\S+)', series, re.MULTILINE)
        return {outcome: int(float(count)) for outcome, count in found}


@contextmanager
def own_gateway(
    folder: Path, upstream: int, cpu: int, rest: Sequence[int], sources: Path | None = None
) -> Iterator[OwnGateway]:
    """Run a gateway until the block ends: its one worker on a CPU, parent, shipper and PostgreSQL on the rest.

    ``sources`` is the tree it is run from; None: this one.
    """
    folder = folder / "biasmeter"
    folder.mkdir()
    with on_cpus(rest), installation(folder, _settings(upstream), None) as product:
        if sources is not None:
            product.environment["PYTHONPATH"] = str(sources)
        product.run("migrate", "-c", str(product.config))
        _, key = product.create_key(*_LIMITS)
        with product.running("gateway") as running:
            workers, shipper = running.pids("gateway.worker"), running.pids("gateway.ship")
            for pid in workers:
                os.sched_setaffinity(pid, {cpu})
            store = postgres_pids(product)
            proxy = Proxy(
                name=NAME,
                port=int(product.url.rpartition(":")[2]),
                version=version("biasmeter"),
                pids=lambda: workers,
                headers={"Authorization": f"Bearer {key}"},
            )
            yield OwnGateway(
                proxies=(proxy, replace(proxy, name=UNCAPTURED, suffix=_SUFFIX)),
                product=product,
                shipper=lambda: shipper,
                store=lambda: store,
            )


def _settings(upstream: int) -> dict[str, Any]:
    url = f"http://127.0.0.1:{upstream}/v1"
    names = ["one", "other"]
    uncaptured = [
        {"model": model + _SUFFIX, "deployments": names, "capture": "full", "sample": 0.0} for model in MODELS
    ]
    return {
        "data_dir": "data",
        "gateway": {"listen": f"127.0.0.1:{free_port()}", "workers": 1, "drain_notice": "0s"},
        "deployments": [{"name": name, "base_url": url, "api_key": "sk-upstream"} for name in names],
        "routes": [*uncaptured, {"model": "*", "deployments": names, "capture": "full"}],
    }
