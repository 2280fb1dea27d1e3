"""A store with rows of many days in every table that retention reaches."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

import asyncpg
from support.stores.exchanges import exchange, rows_of

from auditor.domain.exchange import Exchange, Origin
from auditor.domain.ids import day_bounds
from auditor.store.engine import make_engine
from auditor.store.retention import RetentionBounds, remove_expired
from gateway.storing.exchange_store import ExchangeStore

CODER = "coder-1"

_PARTITIONS = ("codings", "votes", "answer_words")
#: Rows of the day's exchanges ``e`` (id, deployment, origin) and of the day ``g`` (coder, noon, name).
_GIVEN = """
    WITH e AS (SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[]) AS e (id, deployment, origin)),
    g AS (SELECT $4::text AS coder, $5::timestamptz AS noon, $6::text AS name)
"""
_ROWS = (
    """INSERT INTO codings (exchange_id, coder, hour, deployment, origin, rubric, cluster, inclusion, sel, elab,
                            coded_at)
       SELECT id, coder, date_trunc('hour', noon), deployment, origin, 'statement', name, 1, 'E', 'D', noon
       FROM e, g""",
    "INSERT INTO answer_words SELECT id, to_tsvector('simple', 'because of ' || id) FROM e, g",
    "INSERT INTO votes SELECT id, coder, 'j1', 'D', NULL, 'Because of ' || id FROM e, g",
    """INSERT INTO reviews (exchange_id, layer, view, reviewer, rubric, label, note, at)
       SELECT id, 'elab', 'split', coder, 'statement', 'E', name, noon FROM e, g""",
    "INSERT INTO peer_vectors SELECT id, coder, decode('0000803f', 'hex'), NULL, false, noon FROM e, g",
    "INSERT INTO peer_scores SELECT id, coder, 3, NULL, 'It says ' || id, noon FROM e, g",
    "INSERT INTO peer_passed_over SELECT id, name, coder, noon FROM e, g",
    "INSERT INTO plans SELECT name, coder, 'sentinel', 0, 'statement', noon, '{}' FROM g",
    "INSERT INTO statements SELECT coder, '{}', noon FROM g ON CONFLICT DO NOTHING",
    """INSERT INTO planned_calls
       SELECT name || '/' || i, name, coder, coder, 'CTO', 'self', 'none', 'neutral', 't', 0, i, true
       FROM g, generate_series(1, 3) AS i""",
    "INSERT INTO peer_rounds SELECT name, coder, noon, '{}' FROM g",
    "INSERT INTO peer_questions SELECT name, 'q', coder, 'Why?', 0 FROM g",
    "INSERT INTO peer_calls SELECT 'peer/' || name, name, coder, 'q' FROM g",
    "INSERT INTO review_draws SELECT name, coder, 'statement', 'probe', NULL, noon, noon, '{}' FROM g",
    "INSERT INTO review_draw_items SELECT name, id, 0, 1 FROM e, g",
    "INSERT INTO exposures SELECT name, noon, 's', 'd', 'probe', NULL, NULL, coder, NULL, 'ir', '{}' FROM g",
    """INSERT INTO tallies (hour, coder, deployment, origin, rubric, cluster, inclusion, sel, elab, n)
       SELECT date_trunc('hour', noon), coder, 'gpt-eu', 'probe', 'statement', name, 1, 'E', 'D', 3 FROM g""",
    """INSERT INTO ballots
       SELECT date_trunc('hour', noon), coder, 'gpt-eu', 'probe', 'statement', '[["j1", "D"]]', 3 FROM g""",
    "INSERT INTO stale_tiles (hour, coder) SELECT date_trunc('hour', noon), coder FROM g",
)


def day_of_exchanges(
    day: date, count: int, origins: Sequence[Origin] = (Origin.CLIENT, Origin.PROBE)
) -> list[Exchange]:
    """Make so many exchanges of a day, with content, evenly over the day."""
    begun = datetime.combine(day, time(), UTC)
    step = timedelta(days=1) / count
    return [
        exchange(
            begun + place * step,
            origin=origins[place % len(origins)],
            ref=f"plan-{day}/{place}" if origins[place % len(origins)] is Origin.PROBE else None,
            request=f'{{"model":"gpt","messages":"{day} {place}"}}'.encode()
            + hashlib.sha256(f"{day}".encode()).digest(),
        )
        for place in range(count)
    ]


async def open_store(connection: asyncpg.Connection) -> ExchangeStore:
    """Prepare a connection as the shipper does."""
    store = ExchangeStore(connection)
    await store.prepare()
    for statement in (
        "INSERT INTO coders VALUES ($1, 'statement', '{}', now()) ON CONFLICT DO NOTHING",
        "INSERT INTO peer_scorers VALUES ($1, 'm', '{}', now()) ON CONFLICT DO NOTHING",
    ):
        await connection.execute(statement, CODER)
    return store


async def add_day(store: ExchangeStore, day: date, count: int = 4) -> list[Exchange]:
    """Write a day's exchanges, and rows about them into every table that retention reaches."""
    connection = store.connection
    made = day_of_exchanges(day, count)
    await store.write(rows_of(made))
    low, high = day_bounds(day)
    for table in _PARTITIONS:
        await connection.execute(
            f"CREATE TABLE {table}_{day:%Y%m%d} PARTITION OF {table} FOR VALUES FROM ('{low}') TO ('{high}')"
        )
    columns = ([one.id for one in made], [one.deployment for one in made], [one.origin.value for one in made])
    noon = datetime.combine(day, time(12), UTC)
    for statement in _ROWS:
        await connection.execute(f"{_GIVEN} {statement}", *columns, CODER, noon, f"plan-{day}")
    return made


#: The moment or id by which a row is older or younger, for each table that retention reaches.
AGES = {
    "exchanges": "id", "exchange_content": "id", "codings": "exchange_id", "votes": "exchange_id",
    "answer_words": "exchange_id", "reviews": "exchange_id", "peer_vectors": "exchange_id",
    "peer_scores": "exchange_id",
    "peer_passed_over": "exchange_id", "planned_instances": "exchange_id", "review_draw_items": "exchange_id",
    "plans": "created_at", "peer_rounds": "created_at", "review_draws": "drawn_at", "exposures": "concluded_at",
    "tallies": "hour", "ballots": "hour", "stale_tiles": "hour", "exchange_counts": "day",
    "planned_calls": "split_part(ref, '/', 1)", "peer_questions": "round_id", "peer_calls": "round_id",
}  # fmt: skip


async def rows_from(connection: asyncpg.Connection, day: date) -> dict[str, list[str]]:
    """Read the rows that are not older than a day, as text, by table."""
    low, start = day_bounds(day)[0], datetime.combine(day, time(), UTC)
    found = {}
    for table, age in AGES.items():
        bound: UUID | datetime | date | str = low if age.endswith("id") and age != "round_id" else start
        if table == "exchange_counts":
            bound = day
        if table in {"planned_calls", "peer_questions", "peer_calls"}:
            bound = f"plan-{day}"
        query = f"SELECT t::text FROM {table} t WHERE {age} >= $1 ORDER BY 1"
        found[table] = [row[0] for row in await connection.fetch(query, bound)]
    return found


async def count_before(connection: asyncpg.Connection, day: date) -> dict[str, int]:
    """Count the rows that are older than a day, by table."""
    total = {table: await connection.fetchval(f"SELECT count(*) FROM {table}") for table in AGES}
    kept = await rows_from(connection, day)
    return {table: total[table] - len(kept[table]) for table in AGES}


async def live_through(
    url: str, days: int, bounds: Callable[[date], RetentionBounds], count: int = 4, begin: date = date(2025, 1, 1)
) -> list[int]:
    """Let days pass, each with rows in every table and then a run of retention; give the store's bytes after each.

    Vacuum once in a while, as the server does by itself.
    """
    connection, engine = await asyncpg.connect(url), make_engine(url)
    sizes = []
    try:
        store = await open_store(connection)
        for passed in range(days):
            today = begin + timedelta(days=passed)
            await add_day(store, today, count)
            await remove_expired(engine, bounds(today))
            if passed % 5 == 4:
                await connection.execute("VACUUM")
            sizes.append(await connection.fetchval(_SIZE))
    finally:
        await connection.close()
        await engine.dispose()
    return sizes


_SIZE = """
    SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind = 'r'
"""
