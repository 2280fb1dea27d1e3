"""Close past days and update drift monitoring with them, each day in its own transaction.

A day of a coder closes when it has been over for ``GRACE`` and all its exchanges have been coded. So an unavailable
judge only delays monitoring. Later arrivals are counted as late. Any number of processes may run this; one at a time
does the work.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config
from auditor.domain.estimate import Insufficient
from auditor.domain.ids import id_time
from auditor.errors import AuditError
from auditor.estimation.drift import reference_days
from auditor.findings import DetectedChange, finding_id, open_finding, reference_id
from auditor.monitor.decision import Promise
from auditor.monitor.drift import DriftState, change_since, level_of, start_drift, state_json, state_of, summary
from auditor.monitor.passes import PAGING, WATCHED, Pass, finding_refusal, usable
from auditor.monitor.references import Reference, ReferenceSet, fit_references, references_json, references_of
from auditor.store.engine import transaction
from auditor.store.findings import read_finding
from auditor.store.monitor import (
    ClosedDay,
    StoredWatch,
    close_day,
    count_late,
    count_passes,
    drop_watches,
    lock_watching,
    mark_watched,
    next_to_close,
    read_watches,
    unwatched_day,
    write_watches,
)
from auditor.store.queue import ESTIMATE, ask_for
from auditor.store.references import StoredReference, add_reference, fill_reference, references_in_force
from auditor.store.uncoded import CodingScope, oldest_uncoded
from auditor.work import Work

log = logging.getLogger(__name__)

#: Seconds between two checks.
EVERY: Final = 60.0
#: The time to wait for answers that reach the store late.
GRACE: Final = timedelta(hours=1)


async def repeat_watching(work: Work) -> None:
    """Monitor past days, repeatedly, until cancelled."""
    complaint = ""
    while True:
        try:
            if await watch_days(work):
                async with transaction(work.engine) as connection:
                    await ask_for(connection, ESTIMATE, f"{ESTIMATE}:monitor:{int(time.time())}")
            complaint = ""
        except AuditError as error:
            if str(error) != complaint:
                log.warning("monitor: %s", error)
            complaint = str(error)
        except Exception:
            # A failure with one day must not stop the coding of answers.
            log.exception("monitor: a day could not be processed")
        await asyncio.sleep(EVERY)


async def watch_days(work: Work) -> int:
    """Close and process past days, and return their number.

    Raises
    ------
    StoreUnavailable
        The store does not answer; days that were processed stay processed.
    """
    watched = 0
    for scope in work.scopes():
        if scope.routes is not None:  # client traffic has no condition, so it cannot be paired
            continue
        while await _watch_next_day(work, scope):
            watched += 1
    return watched


async def _watch_next_day(work: Work, scope: CodingScope) -> bool:
    async with transaction(work.engine) as connection:
        if not await lock_watching(connection):
            return False
        closed = await unwatched_day(connection, scope.coder) or await _close(connection, scope, work.clock())
        if closed is None:
            return False
        await watch_day(connection, work.config, closed)
        await mark_watched(connection, closed)
        return True


async def _close(connection: AsyncConnection, scope: CodingScope, now: datetime) -> ClosedDay | None:
    day = await next_to_close(connection, scope.coder)
    if day is None or now < _end(day) + GRACE:
        return None
    waiting = await oldest_uncoded(connection, scope)
    if waiting is not None and id_time(waiting) < _end(day):
        return None
    closed = ClosedDay(coder=scope.coder, day=day, closed_at=now)
    await close_day(connection, closed)
    for late, number in (await count_late(connection, scope.coder, day)).items():
        log.warning("monitor: %d answers of %s were coded after that day had been processed", number, late)
    return closed


def _end(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)


Rows = Sequence[Mapping[str, Any]]
#: Number of days whose passes give the size of a change.
WINDOW: Final = 7
_DAY: Final = 86_400.0


def promise_of(config: Config) -> Promise:
    """Return the false-alarm promise for each deployment. A day has one pass, so the horizon is in days."""
    monitor = config.monitor
    return Promise(alpha=monitor.alpha, horizon=max(1, ceil(monitor.horizon / _DAY)), series=len(PAGING))


def restored(stored: StoredWatch, fitted: ReferenceSet, promise: Promise) -> DriftState:
    """Restore a drift state from the store."""
    reference = fitted.references[stored.metric]
    assert isinstance(reference, Reference)  # without a reference there is no state
    assert stored.state is not None
    return state_of(stored.state, reference, fitted.anchor_reference(stored.metric), promise)


async def watch_day(connection: AsyncConnection, config: Config, closed: ClosedDay) -> None:
    """Update drift monitoring with one day. Days are processed in order, each once, in its own transaction."""
    day = _Day(connection=connection, config=config, closed=closed)
    await day.read()
    for deployment in sorted(day.references):
        await day.follow(deployment)


@dataclass(kw_only=True, slots=True)
class _Day:
    """One day of all deployments, as coded by one coder."""

    connection: AsyncConnection
    config: Config
    closed: ClosedDay
    rows: dict[str, Rows] = field(default_factory=dict)
    references: dict[str, StoredReference] = field(default_factory=dict)
    watches: dict[str, list[StoredWatch]] = field(default_factory=dict)

    async def read(self) -> None:
        coder, day = self.closed.coder, self.closed.day
        self.rows = _by_deployment(await count_passes(self.connection, coder, day, day))
        self.references = await references_in_force(self.connection, coder, self.closed.closed_at)
        for name in sorted(set(self.rows) - set(self.references)):
            at = self.closed.closed_at
            first = StoredReference(
                id=reference_id(coder, name, day, "first"), coder=coder, deployment=name, since=day, accepted_at=at
            )
            await add_reference(self.connection, first)
            self.references[name] = first
        self.watches = defaultdict(list)
        for watch in await read_watches(self.connection, coder):
            self.watches[watch.deployment].append(watch)

    async def follow(self, deployment: str) -> None:
        reference = self.references[deployment]
        if any(watch.reference_id != reference.id for watch in self.watches[deployment]):
            await drop_watches(self.connection, self.closed.coder, deployment)
            self.watches[deployment] = []
        if reference.content is None:
            await self._gather(reference)
        elif deployment in self.rows:
            await self._move_on(reference, references_of(reference.content))

    async def _gather(self, reference: StoredReference) -> None:
        """Fit a reference once its days are complete: the newest ones, if it was accepted later."""
        today, span = self.closed.day, timedelta(days=reference_days(self.config) - 1)
        if today - span < reference.since:
            return
        anchor = self.config.monitor.anchor if self.config.monitor.anchor != reference.deployment else None
        names = [reference.deployment, *([anchor] if anchor else [])]
        counted = await count_passes(self.connection, self.closed.coder, today - span, today, names)
        rows = _by_deployment(counted)
        fitted = await asyncio.to_thread(
            fit_references,
            rows.get(reference.deployment, ()),
            promise_of(self.config),
            margin=self.config.monitor.margin,
            anchor=anchor,
            anchor_rows=rows.get(anchor or "", ()),
        )
        if isinstance(fitted, Insufficient):
            log.debug("%s is not monitored yet: %s", reference.deployment, fitted.reason)
            return
        await fill_reference(self.connection, reference.id, today, references_json(fitted))
        begun = {metric: self._begun(reference, fitted, metric) for metric in fitted.references}
        await self._keep(reference, begun)

    def _begun(self, reference: StoredReference, fitted: ReferenceSet, metric: str) -> DriftState | Insufficient:
        fitted_reference = fitted.references[metric]
        if isinstance(fitted_reference, Insufficient):
            return fitted_reference
        return start_drift(
            fitted_reference,
            promise_of(self.config),
            series=f"{reference.id}/{metric}",
            seed=self.config.seed,
            margin=self.config.monitor.margin,
            anchor=fitted.anchor_reference(metric),
        )

    async def _move_on(self, reference: StoredReference, fitted: ReferenceSet) -> None:
        promise = promise_of(self.config)
        moved = {}
        for stored in (watch for watch in self.watches[reference.deployment] if watch.state is not None):
            metric = stored.metric
            passed = fitted.grid.read(self.rows[reference.deployment], metric)
            if usable(passed, metric):
                beside = self._beside(fitted, metric)
                moved[metric] = restored(stored, fitted, promise).update(passed, beside)
        await self._keep(reference, moved)
        for metric in (name for name in WATCHED if name in moved):
            await self._tell(reference, fitted, metric, moved[metric])

    def _beside(self, fitted: ReferenceSet, metric: str) -> Pass | None:
        """Read the anchor's pass of the same day."""
        passed = fitted.grid.read(self.rows.get(fitted.anchor or "", ()), metric)
        return passed if usable(passed, metric) else None

    async def _keep(self, reference: StoredReference, watches: Mapping[str, DriftState | Insufficient]) -> None:
        stored = [self._stored(reference, metric, watch) for metric, watch in watches.items()]
        await write_watches(self.connection, stored)

    def _stored(self, reference: StoredReference, metric: str, watch: DriftState | Insufficient) -> StoredWatch:
        if isinstance(watch, Insufficient):
            state, shown = None, {"missing": watch.reason}
        else:
            state = state_json(watch)
            shown = summary(watch, metric, is_anchor=self._is_anchor(reference), refused=self._refused(metric))
        return StoredWatch(
            coder=reference.coder, deployment=reference.deployment, metric=metric, reference_id=reference.id,
            through=self.closed.day, state=state, summary=shown,
        )  # fmt: skip

    def _is_anchor(self, reference: StoredReference) -> bool:
        return reference.deployment == self.config.monitor.anchor

    def _refused(self, metric: str) -> Insufficient | None:
        """Return why the configuration's panel, which is the coder's, supports no finding on a measure."""
        return finding_refusal(metric, self.config.panel.judges)

    async def _tell(self, reference: StoredReference, fitted: ReferenceSet, metric: str, watch: DriftState) -> None:
        """Open a finding where the series has reached a level for the first time since its reference."""
        level = level_of(watch, metric, is_anchor=self._is_anchor(reference), refused=self._refused(metric))
        if level is None:
            return
        assert reference.until is not None  # it is fitted
        name = finding_id(reference, metric, level)
        if await read_finding(self.connection, name) is not None:
            return
        since = max(reference.until + timedelta(days=1), self.closed.day - timedelta(days=WINDOW - 1))
        rows = await count_passes(self.connection, self.closed.coder, since, self.closed.day, [reference.deployment])
        change = change_since(watch.reference, fitted.grid.read(rows, metric), metric)
        detected = DetectedChange(
            reference=reference, metric=metric, level=level, closed=self.closed, window_since=since, change=change,
            watch=watch,
        )  # fmt: skip
        await open_finding(self.connection, self.config, detected)


def _by_deployment(rows: Rows) -> dict[str, Rows]:
    by_deployment: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_deployment[row["deployment"]].append(row)
    return dict(by_deployment)
