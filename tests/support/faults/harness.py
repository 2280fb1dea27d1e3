"""Inject a fault into a running product under load, and account for every exchange afterwards.

A scenario is a function that injects one kind of fault for `Site.seconds`, and returns how many it injected. What it
needs is in its `Site`; what must hold afterwards is the same for all of them (`Account.faults`).
"""

import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

import asyncpg
from support.clients.load import Load, grown, load
from support.servers.product import STARTUP, Product, Running
from support.waiting import eventually

from gateway.recording.counters import read_all

#: Names a file to which each account is appended as a line of JSON (`support.faults.report`).
RESULTS = "BIASMETER_FAULT_RESULTS"
#: Set for scenarios at their full length.
FULL = "BIASMETER_FAULTS_FULL"


@dataclass(slots=True)
class Site:
    """A product that runs, and what a scenario may do to it."""

    product: Product
    running: Running
    database_url: str
    faults: Path  #: the folder of `injected/sitecustomize.py`
    small_disk: bool  #: whether `data_dir` is a file system of its own, which can be filled
    seed: int = 0
    asked: Load = field(default_factory=Load)
    bad_inputs: int = 0  #: requests that no well-behaved client sends
    kills: int = 0  #: workers that were killed; each may have written one exchange that it had not counted yet
    lost: bool = False  #: whether copies may be dropped, because the spool cannot be written

    @property
    def full(self) -> bool:
        return FULL in os.environ

    def seconds(self, short: float, full: float) -> float:
        """How long a fault lasts, in the test suite and at full length."""
        return full if self.full else short

    @property
    def random(self) -> Random:
        return Random(self.seed)

    @property
    def gateway(self) -> Path:
        return self.product.data_dir / "gateway"

    def workers(self) -> list[int]:
        return self.running.pids("gateway.processes.worker")

    def kill_worker(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        self.kills += 1

    async def new_workers(self, known: list[int]) -> None:
        """Wait until both workers are others than the known ones, and serve."""
        await eventually(lambda: len(set(self.workers()) - set(known)) == 2, STARTUP)
        await grown(self.asked, 20)

    @contextmanager
    def injected(self, name: str, value: float) -> Iterator[None]:
        """Let the processes be slow, or their clocks be wrong, until the block ends."""
        path = self.faults / name
        path.with_suffix(".new").write_text(str(value))
        path.with_suffix(".new").rename(path)
        try:
            yield
        finally:
            path.unlink()

    def captured(self) -> dict[str, int]:
        """What the gateway has counted, by what became of the copy."""
        counts = read_all(self.gateway / "counters")
        return {key[1]: count for key, count in counts.items() if key[0] == "biasmeter_capture"}

    async def at_rest(self) -> None:
        """Wait until no request is in flight, nothing waits in the spool, and nothing is counted any more."""
        seen: list[object] = []

        def quiet() -> bool:
            counts = read_all(self.gateway / "counters")
            busy = sum(count for key, count in counts.items() if key[0] == "biasmeter_in_flight")
            seen.append(counts)
            return not busy and self.product.spooled() == 0 and seen[-10:] == [counts] * 10

        await eventually(quiet, STARTUP)

    async def rows(self, query: str) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.database_url, timeout=10)
        try:
            return list(await connection.fetch(query))
        finally:
            await connection.close()

    async def stored(self) -> set[str]:
        """The ids of all exchanges, none of which may be there twice."""
        found = [str(row["id"]) for row in await self.rows("SELECT id FROM exchanges")]
        assert len(found) == len(set(found)), "an exchange is stored twice"
        return set(found)


Scenario = Callable[[Site], Awaitable[int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """What became of the exchanges of one scenario."""

    scenario: str
    injected: int
    bad_inputs: int
    seen: int  #: exchanges that ended, as clients and store know them
    stored: int
    dropped: int  #: counted as dropped
    counted: int  #: counted in all
    whole: int  #: answers that a client received in full
    missing: int  #: of these, those that are not stored
    client_errors: int
    kills: int
    outage_s: float  #: how long the fault lasted
    requests_a_second: float  #: that clients received in full, the fault included

    def faults(self) -> Iterator[str]:
        """Say what is not as it must be."""
        if self.missing > self.dropped:
            yield f"{self.missing} answers that clients received in full are not stored, {self.dropped} are counted"
        if not self.seen - self.kills <= self.counted <= self.seen:
            yield f"{self.seen} exchanges ended, {self.counted} are counted"
        if not 0 <= self.stored + self.dropped - self.counted <= self.kills:
            yield f"{self.stored} stored and {self.dropped} dropped are not the {self.counted} that are counted"


async def account_for(site: Site, name: str, scenario: Scenario) -> Account:
    """Run one scenario under load, and account for its exchanges."""
    await site.at_rest()
    stored_before, counted_before = await site.stored(), site.captured()
    site.kills = site.bad_inputs = 0
    site.lost = False
    async with load(site.product.url) as asked:
        site.asked = asked
        start = time.monotonic()
        await grown(asked, 20)
        began = time.monotonic()
        injected = await scenario(site)
        outage = time.monotonic() - began
        await grown(asked, 40)
        rate = len(asked.complete) / (time.monotonic() - start)
    await site.at_rest()

    new = await site.stored() - stored_before
    delta = {outcome: count - counted_before.get(outcome, 0) for outcome, count in site.captured().items()}
    whole = set(asked.complete)
    account = Account(
        scenario=name,
        injected=injected,
        bad_inputs=site.bad_inputs,
        seen=len(whole | new),
        stored=len(new),
        dropped=sum(count for outcome, count in delta.items() if outcome.startswith("dropped")),
        counted=sum(delta.values()),
        whole=len(whole),
        missing=len(whole - new),
        client_errors=len(asked.failures),
        kills=site.kills,
        outage_s=outage,
        requests_a_second=rate,
    )
    record(asdict(account))
    assert list(account.faults()) == [], account
    assert account.dropped == 0 or site.lost, account
    assert not re.search(r'File ".*/gateway/\w+\.py"', site.running.said()), "a process of the gateway failed"
    return account


def record(result: Mapping[str, object]) -> None:
    """Keep a result for `support.faults.report`."""
    if RESULTS in os.environ:
        with Path(os.environ[RESULTS]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


@asynccontextmanager
async def store_connection(site: Site) -> AsyncIterator[asyncpg.Connection]:
    """A connection of its own to the store."""
    connection = await asyncpg.connect(site.database_url, timeout=10)
    try:
        yield connection
    finally:
        await connection.close()
