"""Updating windows for 1,000 new responses reads the same rows with 10^4 and with 10^7 past responses.

So does estimating as a whole, with what waits and with people's samples, where the past responses are all there.
"""

from pathlib import Path

import pytest
from support.stores.databases import Databases
from support.stores.estimation_reads import rows_to_estimate
from support.stores.window_reads import cost_of_an_update

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]


async def test_an_update_reads_the_same_rows_whatever_there_is(tmp_path: Path, databases: Databases) -> None:
    costs = {}
    for past in (10**4, 10**5, 10**6, 10**7):
        with databases.fresh() as url:
            costs[past] = await cost_of_an_update(url, tmp_path, past, hours=20 * 24)
        print(f"{past:>11,} past responses in {costs[past].tile_rows:,} rows of tiles: {costs[past].rows_read:,} read")
    fewest = costs[10**4].rows_read
    assert all(abs(cost.rows_read - fewest) < 0.2 * fewest for cost in costs.values())


async def test_estimating_reads_the_same_rows_whatever_was_read_before(tmp_path: Path, databases: Databases) -> None:
    read = {}
    for past in (10**4, 10**6):
        with databases.fresh() as url:
            read[past] = await rows_to_estimate(url, tmp_path, past)
        print(f"{past:>11,} past responses: {read[past]:,} rows read")
    assert abs(read[10**6] - read[10**4]) < 0.2 * read[10**4]
