"""What a watched store tells people: the findings it keeps, what is posted of them, and what Prometheus alerts on."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.auditor_api import serving
from support.servers.prometheus import prometheus_server
from support.servers.webhook_server import Receiver
from support.stores.audited_store import fetch
from support.stores.postgres import copied_database, execute

from auditor.config import Config
from auditor.export.families import EstimateExposition
from auditor.jobs.webhook import FIRST_PAUSE, post_next
from auditor.store.engine import make_engine
from auditor.work import Work

#: What nobody works out again.
FACTS = (
    "alembic_version", "exchanges", "exchange_content", "planned_instances", "statements", "plans", "planned_calls",
)  # fmt: skip
_PAGED = 'count_over_time(ALERTS{alertname="BiasmeterDriftPage", alertstate="firing"}[1m]) > 1'

Row = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Alarm:
    """What people are told, but for the times at which a process told it."""

    findings: list[Row]
    posted: list[bytes]  #: each body once, however often it was posted
    alerts: list[dict[str, dict[str, str]]]  #: of drift, those that fire: labels and annotations

    def deployments(self) -> set[str]:
        return {alert["labels"]["deployment"] for alert in self.alerts}


async def post_due(config: Config, engine: AsyncEngine, now: datetime) -> None:
    """Post what is due at a moment, and once more what has failed."""
    for at in (now, now + FIRST_PAUSE):
        await _post_at(config, engine, at)


async def _post_at(config: Config, engine: AsyncEngine, now: datetime) -> None:
    work = Work(engine=engine, config=config, clock=lambda: now, coders={})
    async with httpx2.AsyncClient() as client:
        while await post_next(work, client):
            pass


async def alarm_of(url: str, config: Config, now: datetime, receiver: Receiver, program: str, folder: Path) -> Alarm:
    """Show a store's newest estimates to a Prometheus with the shipped rules, until it has paged somebody."""
    rows = await fetch(url, "SELECT * FROM findings ORDER BY id")
    folder.mkdir()

    def watched(address: str) -> list[dict[str, Any]]:
        with prometheus_server(program, folder, {"biasmeter-auditor": address}) as prometheus:
            prometheus.until(_PAGED)
            return prometheus.alerts()

    engine, exposition = make_engine(url), EstimateExposition()
    await exposition.refresh(engine)
    await engine.dispose()
    async with serving(url, config, lambda: now, lambda: exposition.text) as address:
        found = await asyncio.to_thread(watched, address)
    alerts = [
        {"labels": one["labels"], "annotations": one["annotations"]}
        for one in found
        if one["state"] == "firing" and one["labels"]["alertname"].startswith("BiasmeterDrift")
    ]
    posted = sorted({body for _, body in receiver.got})
    return Alarm(findings=[tuple(row) for row in rows], posted=posted, alerts=sorted(alerts, key=str))


@contextmanager
def facts_of(server: str, url: str, *more: str) -> Iterator[str]:
    """A store of its own with the facts of another, and with nothing that follows from them but ``more``.

    Nobody may be connected to the other one.
    """
    kept = ", ".join(f"'{name}'" for name in (*FACTS, *more))
    with copied_database(server, urlsplit(url).path.removeprefix("/")) as copy:
        execute(
            copy,
            f"""
            DO $$ BEGIN EXECUTE (
                SELECT 'TRUNCATE ' || string_agg(oid::regclass::text, ', ') FROM pg_class
                WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
                      AND relname NOT IN ({kept})
            ); END $$
            """,
        )
        yield copy
