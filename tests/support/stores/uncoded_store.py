"""A store with answers that nobody has coded, and what bulk work has stored, as rows that can be compared."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import CTO, panel_answers, plan, ship
from support.stores.exchanges import NOON

from auditor.domain.condition import BASELINE
from auditor.instrument.pool import shipped_pool
from auditor.store.engine import transaction

SHARES = {"d1": {"E|E": 40, "D|D": 50, "R|": 10}}
#: Everything but when it was made.
CODINGS = "SELECT to_jsonb(codings) - 'coded_at' FROM codings ORDER BY exchange_id, coder"
VOTES = "SELECT to_jsonb(votes) FROM votes ORDER BY exchange_id, coder, judge"
SCORES = "SELECT to_jsonb(peer_scores) - 'at' FROM peer_scores ORDER BY exchange_id, scorer"
VECTORS = "SELECT to_jsonb(peer_vectors) - 'at' FROM peer_vectors ORDER BY exchange_id, scorer"


def later() -> datetime:
    return NOON + timedelta(minutes=30)


async def store_answers(url: str) -> None:
    """Ship 80 answers of a plan."""
    await plan(url, SHARES, shipped_pool()[:40], [CTO, BASELINE])
    await ship(url, panel_answers(SHARES, conditions=[CTO, BASELINE]))


async def rows(engine: AsyncEngine, query: str) -> list[Any]:
    async with transaction(engine) as connection:
        return list((await connection.execute(text(query))).scalars())


async def empty(engine: AsyncEngine, *tables: str) -> None:
    async with transaction(engine) as connection:
        for table in tables:
            await connection.execute(text(f"DELETE FROM {table}"))
