"""What new exchanges cost a store that holds many already: CPU of this process and of PostgreSQL, step by step."""

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import asyncpg
from audited import CTO, chat_body, plan
from exchanges import NOON, exchange
from great_fleet import fill, fleet_config, later
from shipping_fleet import postmaster_of, server_cpu

from auditor.domain.exchange import Origin
from auditor.instrument.pool import shipped_pool
from auditor.jobs.code import code_chunk, find_chunks
from auditor.jobs.estimate import count_stale, estimate_all
from auditor.jobs.work import open_work
from auditor.store.engine import make_engine, transaction
from gateway import exchange_codec
from gateway.batches import ship_some
from gateway.counters import Counters
from gateway.exchange_store import ExchangeStore
from gateway.quarantine import Quarantine
from gateway.spool import SpoolWriter

STEPS = ("ship", "code", "count", "estimate")


@dataclass(slots=True)
class Growth:
    """CPU seconds of this process and of PostgreSQL by step, and what is there afterwards."""

    own: Counter[str] = field(default_factory=Counter)
    server: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0


async def cost_of_new(url: str, folder: Path, *, past: int, deployments: int, new: int) -> Growth:
    """Store and code so many past exchanges in bulk, then ship, code and count new ones, and estimate.

    The new ones are answers to a plan that asks all deployments alike.
    """
    config = fleet_config(folder, deployments)
    await fill(url, config, past)
    names = [one.name for one in config.deployments]
    pool = shipped_pool()
    each = -(-new // deployments)
    asked = pool[: min(each, len(pool))]
    draws = -(-each // len(asked))
    await plan(url, names, asked, [CTO], name="new", draws=draws)
    refs = [(name, f"new/{name}/{one.id}/{draw}") for name in names for one in asked for draw in range(draws)]
    growth = Growth()
    connection = await asyncpg.connect(url, statement_cache_size=0)
    postmaster = await postmaster_of(connection)

    class Step:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            self.began = time.process_time(), server_cpu(postmaster)

        def __exit__(self, *_: object) -> None:
            growth.own[self.name] += time.process_time() - self.began[0]
            growth.server[self.name] += server_cpu(postmaster) - self.began[1]

    return growth
