"""What happens to findings is posted to a real server: signed, again until it has arrived, each state once."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.documents.finding_entries import SEEN, found
from support.servers.webhook_server import receiving
from support.stores.audited_store import configuration, fetch
from support.waiting import eventually

from auditor.config import Config
from auditor.findings import Person, acknowledge
from auditor.jobs.webhook import FIRST_PAUSE, LONGEST, post_next, repeat_posting
from auditor.store.engine import transaction
from auditor.store.findings import read_finding
from auditor.work import Work


@dataclass
class Posting:
    """Posts what is due, at a time of one's choice."""

    work: Work
    client: httpx2.AsyncClient

    async def at(self, after: timedelta) -> bool:
        return await post_next(replace(self.work, clock=lambda: SEEN + after), self.client)


@asynccontextmanager
async def posting(engine: AsyncEngine, folder: Path, url: str, secret: str = "s3cret") -> AsyncIterator[Posting]:
    config = configuration(folder, f"monitor: {{webhook: {{url: '{url}', secret: {secret}}}}}\n")
    async with httpx2.AsyncClient(timeout=5) as client:
        yield Posting(Work(engine=engine, config=config, clock=lambda: SEEN, coders={}), client)


async def answered_by(engine: AsyncEngine, config: Config, finding_id: str) -> None:
    async with transaction(engine) as connection:
        finding = await read_finding(connection, finding_id, changing=True)
        assert finding is not None
        await acknowledge(connection, config, finding, Person(by="anna", note="on it", now=SEEN + timedelta(hours=1)))


async def test_a_finding_arrives_after_failures_signed_and_once(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with receiving(500, 404) as receiver, posting(engine, tmp_path, receiver.url) as posts:
        await found(engine, posts.work.config)
        await found(engine, posts.work.config)
        assert await posts.at(timedelta(0))
        # It is not due again before its pause is over, and the next one is twice as long.
        assert not await posts.at(FIRST_PAUSE - timedelta(seconds=1))
        assert await posts.at(FIRST_PAUSE)
        assert not await posts.at(3 * FIRST_PAUSE - timedelta(seconds=1))
        assert await posts.at(3 * FIRST_PAUSE)
        assert not await posts.at(timedelta(days=1))
        await answered_by(engine, posts.work.config, "finding_1")
        assert await posts.at(timedelta(days=1))
        assert not await posts.at(timedelta(days=2))
    keys = [headers["idempotency-key"] for headers, _ in receiver.got]
    assert keys == [*["finding_1:open"] * 3, "finding_1:acknowledged"]
    assert len({body for _, body in receiver.got}) == 2
    for headers, body in receiver.got:
        expected = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
        assert headers["x-biasmeter-signature"] == f"sha256={expected}"
        assert headers["content-type"] == "application/json"
    assert receiver.got[0][0]["x-biasmeter-timestamp"] == SEEN.isoformat()
    posted: list[Any] = [json.loads(body) for _, body in receiver.got]
    assert posted[0]["schema"] == "biasmeter.finding/1"
    assert (posted[0]["finding"]["deployment"], posted[0]["finding"]["state"]) == ("d1", "open")
    assert (posted[3]["finding"]["state"], posted[3]["finding"]["by"]) == ("acknowledged", "anna")
    rows = await fetch(migrated_url, "SELECT state, attempts, error FROM webhook_deliveries ORDER BY state")
    assert [tuple(row) for row in rows] == [("acknowledged", 1, None), ("open", 3, None)]
    assert "webhook: finding_1 (open): status 500" in caplog.text
    assert "secret-path" not in caplog.text


async def test_nobody_there_is_told_in_a_word_and_given_up_in_the_end(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    async with posting(engine, tmp_path, "http://127.0.0.1:1/secret-path") as posts:
        await found(engine, posts.work.config)
        assert await posts.at(timedelta(0))
        (row,) = await fetch(migrated_url, "SELECT error, delivered_at FROM webhook_deliveries")
        assert tuple(row) == ("ConnectError", None)
        assert not await posts.at(LONGEST)


async def test_one_that_cannot_be_posted_holds_up_no_other(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    async with receiving(500) as receiver, posting(engine, tmp_path, receiver.url) as posts:
        for name in ("a", "b"):
            await found(engine, posts.work.config, id=name)
        assert await posts.at(timedelta(0))
        assert await posts.at(timedelta(0))
        assert not await posts.at(timedelta(0))
    rows = await fetch(migrated_url, "SELECT finding_id FROM webhook_deliveries WHERE delivered_at IS NOT NULL")
    assert [row["finding_id"] for row in rows] == ["b"]


async def test_without_a_webhook_nothing_waits_to_be_posted(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await found(engine, configuration(tmp_path))
    assert await fetch(migrated_url, "SELECT * FROM webhook_deliveries") == []


async def test_what_waits_is_posted_of_itself(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    async with receiving() as receiver, posting(engine, tmp_path, receiver.url) as posts:
        for name in ("a", "b"):
            await found(engine, posts.work.config, id=name)
        going = asyncio.create_task(repeat_posting(posts.work))

        async def arrived() -> bool:
            return (
                len(await fetch(migrated_url, "SELECT 1 FROM webhook_deliveries WHERE delivered_at IS NOT NULL")) == 2
            )

        await eventually(arrived)
        going.cancel()
    assert [headers["idempotency-key"] for headers, _ in receiver.got] == ["a:open", "b:open"]
