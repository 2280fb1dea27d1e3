"""A store whose audit runs for a year keeps its size once the configured ages have passed."""

from datetime import date, timedelta

import pytest
from support.stores.aged_store import live_through

from auditor.store.retention import RetentionBounds

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]


async def test_a_year_with_the_job_running_stays_flat(migrated_url: str) -> None:
    def bounds(today: date) -> RetentionBounds:
        return RetentionBounds(content=today - timedelta(days=30), facts=today - timedelta(days=90))

    sizes = await live_through(migrated_url, 365, bounds, count=100)
    for day in (0, 30, 90, 180, 270, 364):
        print(f"day {day:3}: {sizes[day] / 1e6:.1f} MB")
    assert max(sizes[330:]) <= 1.05 * max(sizes[95:130]), sizes
