"""Quotations: the few answers to probes that a report shows, read from the store."""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.analysis.rows import TASKS
from auditor.domain.exchange import Origin
from auditor.live.quotations import Quotations, choose_cases, count_asked, make_swings, widest
from auditor.live.tallies import Row
from auditor.metrics.joint import FREE_TASKS
from auditor.store.cases import find_answers, find_divergent, read_votes
from auditor.store.codings import read_again
from auditor.store.period import Period


async def read_quotations(connection: AsyncConnection, coder: str, period: Period, rows: Sequence[Row]) -> Quotations:
    """Read what a report quotes of the answers to probes that a coder has read.

    Parameters
    ----------
    rows
        Its counts of the period, as ``auditor.store.period.count_period`` gives them.
    """
    divergent = await find_divergent(connection, coder, period)
    counts = count_asked(row for row in rows if row["origin"] == Origin.PROBE)
    swings = widest(counts)
    asked = [(deployment, cluster) for deployment, (cluster, _) in swings.items()]
    found = sorted(
        await find_answers(connection, coder, period, asked, FREE_TASKS), key=lambda row: TASKS.index(row["task"])
    )
    ids = [row["exchange_id"] for row in (*divergent, *found)]
    answers = {stored.facts["id"]: stored for stored in await read_again(connection, ids)}
    votes = await read_votes(connection, coder, [row["exchange_id"] for row in divergent])
    return Quotations(
        cases=choose_cases(divergent, answers, votes), swings=tuple(make_swings(swings, counts, found, answers))
    )
