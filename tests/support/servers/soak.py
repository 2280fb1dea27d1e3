"""The soak: the whole gateway in bad weather for a while, and then what must be as if nothing had been.

Memory is looked at from the end of the warm-up on. A process that leaks shows as a slope; how small a leak shows
depends on how many requests there were, so the bound is also told as bytes a request.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
from support.clients.scrape import by_label, parsed, scrape
from support.clients.soak_clients import Asked, soaking
from support.servers.ports import free_port
from support.servers.process_memory import Growth, watched
from support.servers.product import Product, Running, installation, settings
from support.upstreams.scripted_upstream import read_log
from support.upstreams.soak_upstream import soak_upstream
from support.waiting import eventually

SAMPLE = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How long, and how hard."""

    warm_up: float  #: seconds
    measured: float  #: seconds
    clients: int = 24
    pause: float = 0.1  #: seconds between two requests of a client, on average
    rest: float = 10  #: seconds after which nothing may be going on any more
    connections: int = 24  #: that the upstream may still have then: those kept for later
    growth: float  #: MiB that a process may gain in the measured time, at most


@dataclass(frozen=True, kw_only=True, slots=True)
class Soak:
    """What was seen of a soak."""

    plan: Plan
    asked: Asked
    growth: dict[str, Growth]
    requests_a_second: float
    reached: set[str]  #: ids of requests that came to the upstream
    rows: list[asyncpg.Record]  #: what the store holds
    counted: dict[str, float]  #: `biasmeter_capture_total` by outcome
    in_flight: dict[str, float]  #: `biasmeter_in_flight` by origin
    standing: dict[str, int]  #: the upstream's open connections, and its answers that have not ended
    restarted: bool

    @property
    def seen(self) -> int:
        """Requests that the gateway took, as the clients and the upstream know it.

        Of a request left before the head of its answer, which did not come to the upstream, only a row in the store
        can tell whether the gateway had read it. (Such requests are made only where every copy is kept.)
        """
        taken = self.asked.answered | (self.reached & self.asked.sent)
        return len(taken | self.stored)

    @property
    def stored(self) -> set[str]:
        """The ids of requests that the store holds."""
        return {row["request_id"] for row in self.rows}

    def faults(self) -> list[str]:
        """Say what is not as it must be."""
        return [*self._counts(), *self._leftovers(), *self._weather()]

    def _counts(self) -> Iterator[str]:
        stored, passed_over = self.counted.get("stored", 0), self.counted.get("not_sampled", 0)
        if sum(self.counted.values()) != self.seen:
            yield f"{self.seen} requests were seen, and counted as {self.counted}"
        if not stored == len(self.rows) == len(self.stored):
            yield f"{stored} are counted as stored; {len(self.rows)} rows are of {len(self.stored)} requests"
        if not self.stored <= self.asked.sent:
            yield "there are rows of requests that nobody sent"
        of_sampled = len(self.asked.of("sampled")) - sum(row["route"] == "sampled" for row in self.rows)
        if not passed_over or passed_over != of_sampled:
            yield f"{passed_over} are counted as not sampled, {of_sampled} were"

    def _leftovers(self) -> Iterator[str]:
        if any(self.in_flight.values()):
            yield f"in flight at the end: {self.in_flight}"
        if self.standing["busy"] or self.standing["connections"] > self.plan.connections:
            yield f"the upstream at the end: {self.standing}"
        if self.restarted:
            yield "a process was started again"
        for name, growth in self.growth.items():
            if growth.gained > self.plan.growth:
                yield f"{name} has gained {growth.gained:.1f} MiB: {growth}"

    def _weather(self) -> Iterator[str]:
        """Tell what a soak that shows anything would have met, and did not; and what no gateway may do."""
        if unseen := {"complete", "failed", "cut", "client_gone"} - {row["outcome"] for row in self.rows}:
            yield f"no exchange ended as {unseen}"
        if missing := {200, 400, 429, 502, 503} - set(self.asked.statuses):
            yield f"nobody got {missing}"
        if not any(row["attempts"] > 1 and row["outcome"] == "complete" for row in self.rows):
            yield "nothing was asked again, and then answered"
        if self.asked.statuses[500] or set(self.asked.refused) != {400, 401, 404}:
            yield f"answers to requests: {self.asked.statuses}; to wrong ones: {self.asked.refused}"
        if odd := set(self.asked.endings) - {"whole", "left", "left in the answer", "read slowly"}:
            yield f"for clients it ended as {odd}: {self.asked.endings}"

    def report(self) -> str:
        """Write the figures down as Markdown."""
        plan = self.plan
        measured = self.requests_a_second * plan.measured
        lines = [
            f"{plan.clients} clients, {self.requests_a_second:.0f} requests/s, {plan.warm_up:.0f} s of warm-up, then:",
            "",
            f"| over {plan.measured:.0f} s | RSS, MiB | slope, MiB/h (s.e.) | gained, MiB | bytes a request |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {name} | {one.low:.1f} to {one.high:.1f} | {one.slope:+.1f} ({one.error:.1f}) | {one.gained:.2f} | "
            f"{one.gained * 2**20 / measured:.0f} |"
            for name, one in self.growth.items()
        ]
        counts: dict[str, Mapping[Any, object]] = {
            "answers by status": self.asked.statuses,
            "for clients": self.asked.endings,
            "exchanges by outcome": Counter(row["outcome"] for row in self.rows),
            "exchanges by attempts": Counter(row["attempts"] for row in self.rows),
            "copies": {name: int(count) for name, count in self.counted.items()},
            "in flight at the end": {name: int(count) for name, count in self.in_flight.items()},
            "upstream at the end": self.standing,
        }
        lines += ["", f"- requests seen: {self.seen}"]
        lines += [f"- {name}: " + ", ".join(f"{k} {v}" for k, v in sorted(of.items())) for name, of in counts.items()]
        return "\n".join(lines)


async def soak(folder: Path, database_url: str, plan: Plan) -> Soak:
    """Run a gateway of two workers in bad weather, on a migrated store."""
    log = folder / "upstream.log"
    with (
        soak_upstream(log) as (upstream_url, _),
        installation(folder, _settings(upstream_url), database_url) as product,
    ):
        _, key = product.create_key()
        with product.running("gateway") as running:
            return await _soaked(product, running, key, upstream_url, log, plan)


async def _soaked(product: Product, running: Running, key: str, upstream_url: str, log: Path, plan: Plan) -> Soak:
    pids = _pids(running)
    async with watched(pids) as memory, soaking(product.url, key, clients=plan.clients, pause=plan.pause) as asked:
        await asyncio.sleep(plan.warm_up)
        since, sent = time.monotonic(), len(asked.sent)
        await asyncio.sleep(plan.measured)
        rate = (len(asked.sent) - sent) / (time.monotonic() - since)
        growth = memory.growth(since)
    with suppress(AssertionError):  # what does not come to rest is told with all else
        await eventually(lambda: _at_rest(product, upstream_url, plan.connections), patience=plan.rest)
    await product.shipped()
    shown = parsed(await scrape(product.url))
    return Soak(
        plan=plan,
        asked=asked,
        growth=growth,
        requests_a_second=rate,
        reached={line["id"] for line in read_log(log)},
        rows=await product.rows("SELECT request_id, route, outcome, attempts FROM exchanges"),
        counted=by_label(shown, "biasmeter_capture_total", "outcome"),
        in_flight=by_label(shown, "biasmeter_in_flight", "origin"),
        standing=await _standing(upstream_url),
        restarted=_pids(running) != pids,
    )


def _pids(running: Running) -> dict[str, int]:
    workers = {f"worker {number}": pid for number, pid in enumerate(running.pids("gateway.processes.worker"))}
    return {"parent": running.process.pid, **workers, "shipper": running.pids("gateway.processes.ship")[0]}


async def _at_rest(product: Product, upstream_url: str, connections: int) -> bool:
    in_flight = by_label(parsed(await scrape(product.url)), "biasmeter_in_flight", "origin")
    standing = await _standing(upstream_url)
    return not any(in_flight.values()) and not standing["busy"] and standing["connections"] <= connections


async def _standing(upstream_url: str) -> dict[str, int]:
    async with aiohttp.ClientSession() as client, client.get(upstream_url + "/standing") as answer:
        standing: dict[str, int] = await answer.json()
        return standing


def _settings(upstream_url: str) -> dict[str, Any]:
    """Everything is kept but on `sampled`; what is slow to answer is soon too slow; nobody listens behind `down`."""
    timeouts = {"connect": 1, "first_token": 0.5, "idle": 0.5, "total": 8}
    made = settings(upstream_url, timeouts=timeouts)
    models = {each: each for each in ("steady", "long", "limited", "down")}
    models |= {"sampled": "steady", "weather-a": "weather", "weather-b": "weather"}
    urls = {"down": f"http://127.0.0.1:{free_port()}/v1"}
    made["deployments"] = [
        {"name": name, "base_url": urls.get(name, upstream_url), "model": model} for name, model in models.items()
    ]
    kept = {"capture": "full"}
    made["routes"] = [
        *({"model": name, "deployments": [name], **kept} for name in ("steady", "long", "limited", "down")),
        {"model": "weather", "deployments": ["weather-a", "weather-b"], **kept},
        {"model": "sampled", "deployments": ["sampled"], "sample": SAMPLE},
    ]
    return made
