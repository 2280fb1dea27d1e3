"""Monitor: closes the days that are over and watches them, one after the other, each in a transaction of its own.

A day of a coder closes once it has been over for ``GRACE`` and everything asked on it has been read: a judge that
cannot be asked holds the watch up, and changes nothing of it. What comes later is counted as late. Any number of
processes may look; one at a time does the work.
"""

import asyncio
import logging
import time
from datetime import UTC, date, datetime, timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.domain.ids import id_time
from auditor.errors import AuditError
from auditor.jobs.watching import watch_day
from auditor.jobs.work import Work
from auditor.store.codings import Scope, find_uncoded
from auditor.store.engine import reading
from auditor.store.monitor import (
    ClosedDay,
    close_day,
    count_late,
    lock_watching,
    mark_watched,
    next_to_close,
    unwatched_day,
)
from auditor.store.queue import ESTIMATE, ask_for

log = logging.getLogger(__name__)

#: Seconds between looks.
EVERY: Final = 60.0
#: For answers that reach the store late.
GRACE: Final = timedelta(hours=1)


async def repeat_watching(work: Work) -> None:
    """Watch the days that are over, again and again, until cancelled."""
    complaint = ""
    while True:
        try:
            if await watch_days(work):
                async with reading(work.engine) as connection:
                    await ask_for(connection, ESTIMATE, f"{ESTIMATE}:monitor:{int(time.time())}")
            complaint = ""
        except AuditError as error:
            if str(error) != complaint:
                log.warning("monitor: %s", error)
            complaint = str(error)
        except Exception:
            # Whatever is wrong with one day, reading answers goes on.
            log.exception("monitor: a day could not be watched")
        await asyncio.sleep(EVERY)


async def watch_days(work: Work) -> int:
    """Close and watch what is over; give how many days were watched.

    Raises
    ------
    StoreUnavailable
        The store does not answer; the days that were watched stay so.
    """
    watched = 0
    for scope in work.scopes():
        if scope.routes is not None:  # traffic is asked under no condition: there is nothing to pair it with
            continue
        while await _one_day(work, scope):
            watched += 1
    return watched


async def _one_day(work: Work, scope: Scope) -> bool:
    async with reading(work.engine) as connection:
        if not await lock_watching(connection):
            return False
        closed = await unwatched_day(connection, scope.coder) or await _close(connection, scope, work.clock())
        if closed is None:
            return False
        await watch_day(connection, work.config, closed)
        await mark_watched(connection, closed)
        return True


async def _close(connection: AsyncConnection, scope: Scope, now: datetime) -> ClosedDay | None:
    day = await next_to_close(connection, scope.coder)
    if day is None or now < _end(day) + GRACE:
        return None
    waiting = await find_uncoded(connection, scope, 1)
    if waiting and id_time(waiting[0]) < _end(day):
        return None
    closed = ClosedDay(coder=scope.coder, day=day, closed_at=now)
    await close_day(connection, closed)
    for late, number in (await count_late(connection, scope.coder, day)).items():
        log.warning("monitor: %d answers of %s were read after that day had been watched", number, late)
    return closed


def _end(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
