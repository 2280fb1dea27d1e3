"""What pages read does not grow with the exchanges of other deployments. Times are in ``tests/benchmarks``."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp
from support.servers.auditor_api import serving
from support.stores.audited_store import fetch
from support.stores.databases import Databases
from support.stores.great_fleet_store import PAGES, fill, fleet_config, later
from support.stores.window_reads import rows_read

#: The pages of the fleet and of deployments. Of lists of answers, plans differ between small and large tables.
OF_ONE = [page for page in PAGES if not page.startswith("/answers")]
#: Those with numbers of every deployment.
OF_ALL = ("/", "/?window=7d&sort=ir", "/audits/plan?design=sentinel", "/audits/bulk-all", "/health")


#: Some of both kinds, for `make test`.
SOME = (*OF_ALL, "/deployments/deployment-007", "/audits/bulk-deployment-007", "/review")


async def test_pages_read_no_more_rows_when_there_are_more_exchanges(
    tmp_path: Path, databases: Databases, thorough: bool
) -> None:
    """Twice the deployments with as many exchanges each: the fleet has twice the rows, one deployment as many."""
    pages = OF_ONE if thorough else SOME
    reads = {}
    for deployments in (10, 20):
        with databases.fresh() as url:
            reads[deployments] = await _reads(url, tmp_path, pages, deployments, 200 * deployments)
    for page in pages:
        # Pages of one deployment also read the counts of all, a row for each day: twice as many of these.
        allowed = 2.2 if page in OF_ALL else 1.5
        assert reads[20][page] <= allowed * reads[10][page] + 100, (page, reads)
    # The page of the fleet reads rows of estimates and counts, and none of the 4,000 exchanges.
    assert reads[20]["/"] < 2000
    # What a plan takes is told by sums of earlier answers, and what an audit has used by its own.
    assert reads[20]["/audits/plan?design=sentinel"] < 500
    assert reads[20]["/audits/bulk-deployment-007"] < 1000


async def _reads(url: str, folder: Path, pages: Sequence[str], deployments: int, exchanges: int) -> Mapping[str, int]:
    config = fleet_config(folder, deployments)
    await fill(url, config, exchanges)
    # Of small tables PostgreSQL reads all rows even if it could use an index; without one it still has to.
    await fetch(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET enable_seqscan = off")
    found = {}
    for page in pages:
        before = await rows_read(url)
        async with (
            serving(url, config, later) as address,
            aiohttp.ClientSession() as client,
            client.get(f"http://{address}{page}") as answer,
        ):
            assert answer.status == 200
        found[page] = await rows_read(url) - before
    return found
