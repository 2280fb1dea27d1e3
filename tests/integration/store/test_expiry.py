"""What retention may remove: a clock that is wrong, or an age that was shortened, empties no store by itself."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.aged_store import day_of_exchanges
from support.stores.audited_store import fetch, ship

from auditor.domain.ids import floor_id
from auditor.store.engine import transaction
from auditor.store.expiry import Expiry, _is_much, find_expiry
from auditor.store.lifetimes import Lifetime
from auditor.store.retention import remove_expired

DAY = 86_400.0
TODAY = datetime.now(UTC).date()
#: A clock that is three years ahead is the same to a store as data of three years ago.
THEN = TODAY - timedelta(days=3 * 365)


async def store_days(url: str, days: Iterable[date], count: int = 40) -> None:
    """Store exchanges of some days, none of them later than now."""
    made = [each for day in days for each in day_of_exchanges(day, count)]
    newest = floor_id(datetime.now(UTC))
    await ship(url, [each for each in made if each.id < newest])


async def expiry_of(engine: AsyncEngine, content: float, facts: float, *, confirmed: bool = False) -> Expiry:
    async with transaction(engine) as connection:
        return await find_expiry(connection, content * DAY, facts * DAY, confirmed=confirmed)


async def remove(engine: AsyncEngine, content: float, facts: float, *, confirmed: bool = False) -> Expiry:
    expiry = await expiry_of(engine, content, facts, confirmed=confirmed)
    await remove_expired(engine, expiry.bounds)
    return expiry


async def days_of(url: str, table: str = "exchanges") -> list[date]:
    rows = await fetch(url, f"SELECT DISTINCT right(tableoid::regclass::text, 8) AS day FROM {table} ORDER BY 1")
    return [datetime.strptime(row["day"], "%Y%m%d").replace(tzinfo=UTC).date() for row in rows]


async def test_a_clock_that_is_years_ahead_removes_nothing_until_it_is_confirmed(
    migrated_url: str, engine: AsyncEngine
) -> None:
    days = [THEN - timedelta(days=age) for age in (4, 3, 2, 1, 0)]
    await store_days(migrated_url, days)
    at_start = await remove(engine, 30, 400)
    assert (at_start.bounds.content, at_start.bounds.facts) == (THEN - timedelta(days=30), THEN - timedelta(days=400))
    assert [(each.lifetime, each.days, each.exchanges) for each in at_start.held] == [
        (Lifetime.CONTENT, 5, 200), (Lifetime.FACTS, 5, 200)
    ]  # fmt: skip
    assert str(at_start.held[1]) == (
        f"facts of 200 exchanges of 5 days before {TODAY - timedelta(days=400)} is due by PostgreSQL's clock, "
        f"and kept: the newest exchange is of {THEN}; if the clock is right: biasmeter retention --yes"
    )
    await store_days(migrated_url, [TODAY - timedelta(days=1), TODAY])  # by the clock that is wrong
    later = await remove(engine, 30, 400)
    assert [(each.lifetime, each.days, each.reason) for each in later.held] == [
        (Lifetime.CONTENT, 5, "more than a third at once"), (Lifetime.FACTS, 5, "more than a third at once")
    ]  # fmt: skip
    for table in ("exchanges", "exchange_content"):
        assert (await days_of(migrated_url, table))[:5] == days
    confirmed = await remove(engine, 30, 400, confirmed=True)
    assert confirmed.held == ()
    assert set(await days_of(migrated_url)) <= {TODAY - timedelta(days=1), TODAY}


async def test_days_become_due_one_by_one_and_nothing_is_held(migrated_url: str, engine: AsyncEngine) -> None:
    await store_days(migrated_url, [TODAY - timedelta(days=age) for age in range(8)])
    for content, facts in ((6, 7), (5, 6), (3, 5), (1, 3), (0.5, 2)):
        expiry = await remove(engine, content, facts)
        assert expiry.held == ()
        assert min(await days_of(migrated_url)) == expiry.bounds.facts
        assert min(await days_of(migrated_url, "exchange_content")) == expiry.bounds.content


async def test_what_is_much_is_kept_and_the_rest_goes(migrated_url: str, engine: AsyncEngine) -> None:
    await store_days(migrated_url, [TODAY - timedelta(days=age) for age in range(11, -1, -1)])
    await remove(engine, 10, 11)
    facts_from = min(await days_of(migrated_url))
    # The age of facts is shortened by a week, that of content by a day.
    shortened = await remove(engine, 3, 4)
    assert [each.lifetime for each in shortened.held] == [Lifetime.CONTENT, Lifetime.FACTS]
    assert shortened.bounds.facts == shortened.bounds.content == min(await days_of(migrated_url)) == facts_from
    content_only = await remove(engine, 8, 8)
    assert content_only.held == ()
    assert min(await days_of(migrated_url, "exchange_content")) == content_only.bounds.content > facts_from


async def test_few_exchanges_go_without_a_question(migrated_url: str, engine: AsyncEngine) -> None:
    await store_days(migrated_url, [THEN, TODAY - timedelta(days=1)], count=99)
    expiry = await remove(engine, 30, 400)
    assert expiry.held == ()
    assert await days_of(migrated_url) == [TODAY - timedelta(days=1)]


async def test_a_store_without_exchanges_holds_nothing(engine: AsyncEngine) -> None:
    expiry = await expiry_of(engine, 30, 36_500)
    assert expiry.held == ()
    assert TODAY - timedelta(days=31) <= expiry.bounds.content <= TODAY


@given(
    old=st.integers(0, 400),
    young=st.integers(0, 400),
    recent=st.integers(0, 400),
    first_kept=st.dates(date(2000, 1, 1)),
)
def test_more_than_a_third_of_a_hundred_or_more_is_much(old: int, young: int, recent: int, first_kept: date) -> None:
    """Whatever became due since yesterday."""
    days = {first_kept - timedelta(days=3): old, first_kept - timedelta(days=2): recent, first_kept: young}
    assert _is_much(days, first_kept) == (old >= 100 and old > (old + recent + young) / 3)


@pytest.mark.parametrize("expired_before", ["ffffffff-ffff-ffff-ffff-ffffffffffff", None])
async def test_a_record_of_what_expired_that_was_altered_changes_no_bound(
    migrated_url: str, engine: AsyncEngine, expired_before: str | None
) -> None:
    await store_days(migrated_url, [THEN, TODAY - timedelta(days=1)], count=150)
    if expired_before is None:
        await fetch(migrated_url, "DELETE FROM chain_base")
    else:
        await fetch(migrated_url, "UPDATE chain_base SET expired_before = $1", expired_before)
    expiry = await expiry_of(engine, 30, 400)
    assert expiry.bounds.facts <= TODAY - timedelta(days=400)
