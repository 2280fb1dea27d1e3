"""Ask the judges of the panel to label the anchor texts, on a schedule or on request, and store the labels."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.access import GatewayAccess, gateway_access
from auditor.coding.coders import needs_gateway
from auditor.config import Config
from auditor.domain.exchange import Origin
from auditor.errors import AuditError
from auditor.estimation.snapshots import ALL, Snapshot
from auditor.reliability.anchors import ANCHOR_SET, AnchorResult, anchor_coder, anchor_judges, ask_anchors, compare
from auditor.store.anchors import AnchorRun, add_run, newest_run_at, read_runs
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow
from auditor.work import Clock, Work

log = logging.getLogger(__name__)

#: Seconds between two checks for due judges.
EVERY: Final = 60.0
#: One process asks at a time; the next then finds that nothing is due.
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('biasmeter anchors'))"
#: The flag of a judge that agrees with the anchors less than at first.
DROPPED: Final = "dropped"


async def repeat_anchors(work: Work) -> None:
    """Ask due judges, repeatedly, until cancelled. Without an interval in the configuration none is asked."""
    complaint = ""
    while True:
        try:
            if work.config.panel.anchors is not None:
                await _ask_due(work, timedelta(seconds=work.config.panel.anchors))
            complaint = ""
        except AuditError as error:
            if str(error) != complaint:
                log.warning("anchors wait: %s", error)
            complaint = str(error)
        await asyncio.sleep(EVERY)


async def _ask_due(work: Work, every: timedelta) -> None:
    through = gateway_access(work.config) if needs_gateway(work.config) else None
    if await ask_judges(work.engine, work.config, work.clock, through=through, every=every):
        async with transaction(work.engine) as connection:
            for line in dropped_lines(await read_standings(connection)):
                log.warning("%s", line)


async def ask_judges(
    engine: AsyncEngine,
    config: Config,
    clock: Clock,
    *,
    through: GatewayAccess | None = None,
    every: timedelta | None = None,
) -> int:
    """Ask each judge of the panel to label the anchors, and return how many were asked.

    Parameters
    ----------
    engine, config, clock
        The store of the runs, the panel, and the time.
    through
        The gateway; without it judges are asked at their deployments.
    every
        Judges that were asked more recently than this are skipped.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; the runs of those before it are kept.
    StoreUnavailable
        The store does not answer.
    """
    runs = 0
    async with anchor_judges(config, through) as panel:
        for judges in panel:
            coder = anchor_coder(judges)
            async with transaction(engine) as connection:
                await connection.execute(text(_LOCK))
                newest = await newest_run_at(connection, coder, ANCHOR_SET)
                now = clock()
                if every is not None and newest is not None and now - newest < every:
                    continue
                labels = await ask_anchors(judges)
                run = AnchorRun(judge=judges[0].name, coder=coder, anchor_set=ANCHOR_SET, at=now, labels=labels)
                await add_run(connection, run)
                runs += 1
    return runs


async def read_standings(connection: AsyncConnection) -> dict[str, tuple[AnchorRun, AnchorResult]]:
    """Return each judge's newest run and its comparison with the first run, by judge name."""
    runs = await read_runs(connection, ANCHOR_SET)
    return {judge: (newest, compare(first.labels, newest.labels)) for judge, (first, newest) in runs.items()}


def dropped_lines(standings: Mapping[str, tuple[AnchorRun, AnchorResult]]) -> Iterator[str]:
    """Yield a line for each judge whose agreement has dropped."""
    for judge, (_, result) in standings.items():
        if result.dropped:
            yield (
                f"judge {judge!r} agrees with {result.agreed} of {result.n} anchors, at first with "
                f"{result.first_agreed} (p = {result.p:.2g}): the instrument has moved"
            )


async def anchor_rows(connection: AsyncConnection, snapshot: Snapshot, window: str) -> list[EstimateRow]:
    """Return a row for each judge that has been asked."""
    return [_row(snapshot, window, run, result) for run, result in (await read_standings(connection)).values()]


def _row(snapshot: Snapshot, window: str, run: AnchorRun, result: AnchorResult) -> EstimateRow:
    moved: Mapping[str, object] = {
        "first_agreed": result.first_agreed / result.n,
        "same": result.same / result.n,
        "p": result.p,
    }
    return EstimateRow(
        as_of=snapshot.as_of, deployment=None, origin=Origin.JUDGE.value, rubric=run.anchor_set, condition=ALL,
        window=window, since=run.at, coder=run.coder, metric="judge_anchor_agreement",
        detail={"judge": run.judge, **moved}, value=result.agreed / result.n, low=result.low, high=result.high,
        n=result.n, method="clopper_pearson", flags=(DROPPED,) if result.dropped else (), seed=snapshot.seed,
    )  # fmt: skip
