"""What new exchanges cost a store that holds many already: CPU of this process and of PostgreSQL, step by step."""

import gc
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product
from pathlib import Path
from uuid import UUID

import asyncpg
from support.servers.shipping_fleet import postmaster_of, server_cpu
from support.stores.audited_store import answered, plan
from support.stores.exchanges import NOON
from support.stores.great_fleet_store import fill, fleet_config, later
from support.stores.window_reads import CONDITIONS

from auditor.domain.exchange import Exchange
from auditor.instrument.pool import shipped_pool
from auditor.jobs.code import code_chunk, find_chunks
from auditor.jobs.estimate import count_stale, estimate_all
from auditor.store.engine import make_engine, transaction
from auditor.work import open_work
from gateway.recording import codec
from gateway.recording.counters import Counters
from gateway.recording.quarantine import Quarantine
from gateway.recording.spool import SpoolWriter
from gateway.storing.batches import ship_some
from gateway.storing.exchange_store import ExchangeStore

STEPS = ("ship", "code", "count", "estimate")


@dataclass(slots=True)
class Growth:
    """Seconds of CPU of this process and of PostgreSQL by step, and whether each new exchange is there once."""

    own: Counter[str] = field(default_factory=Counter)
    server: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0


async def cost_of_new(url: str, folder: Path, *, past: int, deployments: int, new: int) -> Growth:
    """Write so many past exchanges with all that is made of them, then ship, code, count and estimate new ones.

    The new ones ask each deployment about the same statements under five conditions.
    """
    config = fleet_config(folder, deployments)
    await fill(url, config, past)
    names = [one.name for one in config.deployments]
    asked = shipped_pool()[: new // (len(CONDITIONS) * deployments)]
    await plan(url, names, asked, CONDITIONS, name="new")
    made = [
        answered(name, one, condition, "A. It is a harmful stereotype.", NOON + timedelta(milliseconds=n), name="new")
        for n, (name, one, condition) in enumerate(product(names, asked, CONDITIONS))
    ]
    assert len(made) == new
    growth = Growth()
    connection = await asyncpg.connect(url, statement_cache_size=0)
    postmaster = await postmaster_of(connection)

    @contextmanager
    def step(name: str) -> Iterator[None]:
        began = time.process_time(), server_cpu(postmaster)
        yield
        growth.own[name] += time.process_time() - began[0]
        growth.server[name] += server_cpu(postmaster) - began[1]

    engine = make_engine(url)
    async with open_work(engine, config, later) as work, transaction(engine) as opened:
        await find_chunks(opened, work)  # a search has seen the past, as in a store that is in use
    store = ExchangeStore(connection)
    await store.prepare()
    _write_spool(folder / "spool", made)
    quarantine = Quarantine(folder / "quarantine", Counters(folder / "shipper.counters"), 1 << 20)
    # A collection would walk through what was made to write the past, which no process of a gateway holds.
    gc.collect()
    gc.freeze()
    with step("ship"):
        while await ship_some(store, folder / "spool", quarantine):
            pass
    async with open_work(engine, config, later) as work:
        with step("code"):
            async with transaction(engine) as opened:
                chunks = await find_chunks(opened, work)
            coded = sum([await code_chunk(work, chunk) for chunk in chunks])
        with step("count"):
            await count_stale(work)
        with step("estimate"):
            await estimate_all(work)
    await engine.dispose()
    growth.lost, growth.doubled = await _lost_and_doubled(connection, [one.id for one in made], coded)
    await connection.close()
    return growth


def _write_spool(folder: Path, made: Iterable[Exchange]) -> None:
    writer = SpoolWriter(folder, "w")
    for one in made:
        writer.append(codec.encode(one), 1)
    writer.close()


async def _lost_and_doubled(connection: asyncpg.Connection, new: list[UUID], coded: int) -> tuple[int, int]:
    """Count new exchanges that are missing, uncoded or not counted, and those that are coded or counted twice."""
    stored = await connection.fetchval("SELECT count(*) FROM exchanges WHERE id = ANY($1)", new)
    found = await connection.fetchval(
        "SELECT count(DISTINCT exchange_id) FROM codings WHERE exchange_id = ANY($1)", new
    )
    codings = await connection.fetchval("SELECT count(*) FROM codings")
    counted = await connection.fetchval("SELECT sum(n) FROM tallies")
    lost = 2 * len(new) - stored - found + max(codings - counted, 0)
    return lost, coded - found + max(counted - codings, 0)
