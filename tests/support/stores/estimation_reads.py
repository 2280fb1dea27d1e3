"""What estimating reads of the store, with so many answers in the past that were read, and drawn from for people."""

from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
from support.stores.audited_store import TRAFFIC, configuration, fetch, ship, verdict
from support.stores.exchanges import NOON
from support.stores.window_reads import rows_read

from auditor.jobs.code import code_chunk, find_chunks
from auditor.jobs.estimate import count_stale, estimate_all
from auditor.jobs.run_once import run_once
from auditor.reviews.opinions import Layer, Opinion
from auditor.reviews.samples import ReviewRequest, draw_sample
from auditor.store.engine import make_engine, transaction
from auditor.store.partitions import make_days
from auditor.store.reviews import Review, add_reviews
from auditor.work import open_work

HOURS = 20 * 24
NEW = 100
LATER = NOON + timedelta(minutes=30)

#: The first exchange again and again, an hour or more before it, evenly over the hours.
_EXCHANGES = """
    INSERT INTO exchanges
    SELECT made.* FROM generate_series(1, $1::bigint) AS i,
    LATERAL (SELECT $2::timestamptz - (1 + i % $3) * interval '1 hour' AS at) AS moment,
    LATERAL (
        SELECT lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(i), 15, '0')
        AS id
    ) AS named,
    (SELECT * FROM exchanges ORDER BY id LIMIT 1) AS e,
    LATERAL jsonb_populate_record(e::exchanges, jsonb_build_object('id', named.id, 'at', moment.at)) AS made
"""
_CODINGS = """
    INSERT INTO codings
    SELECT made.* FROM exchanges AS x,
    (SELECT * FROM codings ORDER BY exchange_id LIMIT 1) AS c,
    LATERAL jsonb_populate_record(c::codings, jsonb_build_object('exchange_id', x.id, 'hour', date_trunc('hour', x.at)))
        AS made
    WHERE x.at < $1::timestamptz
"""


async def rows_to_estimate(url: str, folder: Path, past: int) -> int:
    """Estimate with past answers, read some new ones, and count the rows that estimating anew reads."""
    engine = make_engine(url)
    config = configuration(folder, TRAFFIC)
    await ship(url, [verdict("E", "D", index) for index in range(NEW)])
    await run_once(config, engine, lambda: LATER)
    async with transaction(engine) as connection:
        days = {(NOON - timedelta(hours=hour)).date() for hour in range(HOURS + 1)}
        await make_days(connection, ("exchanges", "exchange_content", "codings", "votes"), days, "days of a test")
    await _write_past(url, past)
    sample = await draw_sample(engine, config, ReviewRequest(n=NEW, seed=1, origin="client", audit="moderation"), LATER)
    drawn = await fetch(url, "SELECT exchange_id FROM review_draw_items")  # their texts are gone
    opinion = Opinion(reviewer="anna", layer=Layer.ELAB, label="D")
    labels = [Review(exchange_id=row["exchange_id"], rubric=sample.draw.rubric, opinion=opinion) for row in drawn]
    assert len(labels) == NEW
    async with transaction(engine) as connection:
        await add_reviews(connection, labels, LATER)
    async with open_work(engine, config, lambda: LATER) as work:
        await estimate_all(work)
        await ship(url, [verdict("D", "D", NEW + index) for index in range(NEW)])
        async with transaction(engine) as connection:
            chunks = await find_chunks(connection, work)
        assert sum([await code_chunk(work, chunk) for chunk in chunks]) == NEW
    await engine.dispose()
    await fetch(url, "ANALYZE")
    # So that every run plans alike: of tables this small scans are cheaper, and with many answers they are not.
    await fetch(url, f'ALTER DATABASE "{urlsplit(url).path[1:]}" SET enable_seqscan = off')
    before = await rows_read(url)
    engine = make_engine(url)
    async with open_work(engine, config, lambda: LATER) as work:
        await count_stale(work)
        await estimate_all(work)
    await engine.dispose()
    return await rows_read(url) - before


async def _write_past(url: str, past: int) -> None:
    connection = await asyncpg.connect(url)
    newest = NOON.replace(minute=0)
    await connection.execute(_EXCHANGES, past, newest, HOURS, timeout=600)
    await connection.execute(_CODINGS, newest, timeout=600)
    await connection.execute("ANALYZE")
    await connection.close()
