"""Watching one closed day: references begun and fitted, states moved on by the day's pass, findings opened."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import ceil
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config
from auditor.domain.estimate import Insufficient
from auditor.jobs.findings import Found, finding_id, open_finding, reference_id
from auditor.monitor.account import change_since, level_of, told
from auditor.monitor.decision import Promise
from auditor.monitor.panels import usable
from auditor.monitor.passes import PAGING, WATCHED, Pass
from auditor.monitor.reference import Reference
from auditor.monitor.reference_set import ReferenceSet, fit_set, set_json, set_of
from auditor.monitor.state import watch_json, watch_of
from auditor.monitor.watch import Watch, begin
from auditor.store.findings import read_finding
from auditor.store.monitor import (
    ClosedDay,
    StoredWatch,
    count_passes,
    drop_watches,
    read_watches,
    write_watches,
)
from auditor.store.references import StoredReference, add_reference, fill_reference, references_in_force

log = logging.getLogger(__name__)

Rows = Sequence[Mapping[str, Any]]
#: Days whose passes together say how large a change is.
WINDOW: Final = 7
_DAY: Final = 86_400.0


def promise_of(config: Config) -> Promise:
    """Give the configuration's promise to each deployment. A day has one pass, so the horizon is in days."""
    monitor = config.monitor
    return Promise(alpha=monitor.alpha, horizon=max(1, ceil(monitor.horizon / _DAY)), series=len(PAGING))


def reference_days(config: Config) -> int:
    """Give the number of days whose passes make a reference."""
    return max(1, ceil(config.monitor.reference / _DAY))


def restored(stored: StoredWatch, fitted: ReferenceSet, promise: Promise) -> Watch:
    """Read a watch as it was stored."""
    reference = fitted.own[stored.metric]
    assert isinstance(reference, Reference)  # what has none has no state either
    assert stored.state is not None
    return watch_of(stored.state, reference, fitted.anchor_reference(stored.metric), promise)


async def watch_day(connection: AsyncConnection, config: Config, closed: ClosedDay) -> None:
    """Watch what was answered on a day. Days come one after the other, each once, in a transaction of its own."""
    day = _Day(connection=connection, config=config, closed=closed)
    await day.read()
    for deployment in sorted(day.references):
        await day.follow(deployment)


@dataclass(kw_only=True, slots=True)
class _Day:
    """One day of all deployments, as one coder read them."""

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
            await self._move_on(reference, set_of(reference.content))

    async def _gather(self, reference: StoredReference) -> None:
        """Fit a reference once it has its days: the newest ones, where it was accepted later than that."""
        today, span = self.closed.day, timedelta(days=reference_days(self.config) - 1)
        if today - span < reference.since:
            return
        anchor = self.config.monitor.anchor if self.config.monitor.anchor != reference.deployment else None
        names = [reference.deployment, *([anchor] if anchor else [])]
        counted = await count_passes(self.connection, self.closed.coder, today - span, today, names)
        rows = _by_deployment(counted)
        fitted = await asyncio.to_thread(
            fit_set,
            rows.get(reference.deployment, ()),
            promise_of(self.config),
            margin=self.config.monitor.margin,
            anchor=anchor,
            anchor_rows=rows.get(anchor or "", ()),
        )
        if isinstance(fitted, Insufficient):
            log.debug("%s is not watched yet: %s", reference.deployment, fitted.reason)
            return
        await fill_reference(self.connection, reference.id, today, set_json(fitted))
        begun = {metric: self._begun(reference, fitted, metric) for metric in fitted.own}
        await self._keep(reference, begun)

    def _begun(self, reference: StoredReference, fitted: ReferenceSet, metric: str) -> Watch | Insufficient:
        own = fitted.own[metric]
        if isinstance(own, Insufficient):
            return own
        return begin(
            own,
            promise_of(self.config),
            series=f"{reference.id}/{metric}",
            seed=self.config.seed,
            margin=self.config.monitor.margin,
            anchor=fitted.anchor_reference(metric),
        )

    async def _move_on(self, reference: StoredReference, fitted: ReferenceSet) -> None:
        promise = promise_of(self.config)
        moved = {}
        for stored in (one for one in self.watches[reference.deployment] if one.state is not None):
            metric = stored.metric
            own = fitted.panel.read(self.rows[reference.deployment], metric)
            if usable(own, metric):
                beside = self._beside(fitted, metric)
                moved[metric] = restored(stored, fitted, promise).after(own, beside)
        await self._keep(reference, moved)
        for metric in (name for name in WATCHED if name in moved):
            await self._tell(reference, fitted, metric, moved[metric])

    def _beside(self, fitted: ReferenceSet, metric: str) -> Pass | None:
        """Read the anchor's pass of the same day."""
        found = fitted.panel.read(self.rows.get(fitted.anchor or "", ()), metric)
        return found if usable(found, metric) else None

    async def _keep(self, reference: StoredReference, watches: Mapping[str, Watch | Insufficient]) -> None:
        stored = [self._stored(reference, metric, watch) for metric, watch in watches.items()]
        await write_watches(self.connection, stored)

    def _stored(self, reference: StoredReference, metric: str, watch: Watch | Insufficient) -> StoredWatch:
        if isinstance(watch, Insufficient):
            state, shown = None, {"missing": watch.reason}
        else:
            state, shown = watch_json(watch), told(watch, metric, is_anchor=self._is_anchor(reference))
        return StoredWatch(
            coder=reference.coder, deployment=reference.deployment, metric=metric, reference_id=reference.id,
            through=self.closed.day, state=state, told=shown,
        )  # fmt: skip

    def _is_anchor(self, reference: StoredReference) -> bool:
        return reference.deployment == self.config.monitor.anchor

    async def _tell(self, reference: StoredReference, fitted: ReferenceSet, metric: str, watch: Watch) -> None:
        """Open a finding where the series has reached a level for the first time since its reference."""
        level = level_of(watch, metric, is_anchor=self._is_anchor(reference))
        if level is None:
            return
        assert reference.until is not None  # it is fitted
        name = finding_id(reference, metric, level)
        if await read_finding(self.connection, name) is not None:
            return
        since = max(reference.until + timedelta(days=1), self.closed.day - timedelta(days=WINDOW - 1))
        rows = await count_passes(self.connection, self.closed.coder, since, self.closed.day, [reference.deployment])
        change = change_since(watch.reference, fitted.panel.read(rows, metric), metric)
        found = Found(
            reference=reference, metric=metric, level=level, closed=self.closed, window_since=since, change=change,
            watch=watch,
        )  # fmt: skip
        await open_finding(self.connection, self.config, found)


def _by_deployment(rows: Rows) -> dict[str, Rows]:
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["deployment"]].append(row)
    return dict(found)
