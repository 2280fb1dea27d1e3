"""Concurrency slots and circuit breakers of deployments, shared by all workers of a host.

The row of a deployment holds its breaker and one cell per worker: the lower half is the number of slots that the worker
holds, the upper half the number of its requests that wait for one. Only the worker itself writes its cell. A restarted
worker begins with an empty cell.

Requests of one worker get slots in the order of their arrival. There is no order between workers: the first request of
each worker competes for a slot that becomes free.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from random import uniform

from gateway.routing import breaker
from gateway.routing.breaker import BreakerState, BreakerVerdict, Ticket
from gateway.shared import SharedTable

log = logging.getLogger(__name__)

#: Seconds between two checks by the first waiting request for slots that other workers released.
_LOOK = 0.01
_WAITING = 1 << 32
_HELD = _WAITING - 1


class DeploymentSlots:
    """One worker's access to the slots and breakers of all deployments.

    Parameters
    ----------
    path
        The shared file of the host. A process opens it once.
    worker, workers
        The number of this worker, from 0, and how many there are. It is the same for all workers of a host.
    clock
        Nanoseconds, the same for all workers, never going back.
    """

    def __init__(self, path: Path, worker: int, workers: int, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._table = SharedTable(path, breaker.WIDTH + workers)
        self._worker_cell = breaker.WIDTH + worker
        self._clock = clock
        #: The requests of this worker that wait for a slot.
        self._lines: dict[str, deque[asyncio.Event]] = {}
        for _, row in self._table.rows():
            row[self._worker_cell] = 0

    def close(self) -> None:
        """Close the file."""
        self._table.close()

    def pending(self, deployment: str) -> int:
        """Return the number of slots that all workers hold."""
        return _total(self._table.row(deployment)) & _HELD

    def seconds_until_open(self, deployment: str, caller: int) -> float:
        """Return the seconds until the breaker admits a request of a caller at the latest; 0 means now."""
        return breaker.seconds_until_open(self._table.row(deployment), self._clock(), caller)

    def states(self) -> Iterator[tuple[str, BreakerState]]:
        """Iterate over the deployments used so far and the states of their breakers."""
        now = self._clock()
        return ((name, breaker.state(row, now)) for name, row in self._table.rows())

    def access(
        self, deployment: str, concurrency: int | None, caller: int, *, counts: bool = True
    ) -> "DeploymentAccess":
        """Return the access to one deployment for the requests of one caller.

        Parameters
        ----------
        concurrency
            The slots of all workers together; None means unlimited.
        caller
            The number of the caller (`gateway.routing.breaker.caller_of`).
        counts
            Whether the requests affect the breaker. One that does not is refused while the breaker is open, is never
            the trial, and its verdict is ignored.
        """
        row = self._table.row(deployment)  # its memory never moves
        line = self._lines.setdefault(deployment, deque())
        return DeploymentAccess(
            self._table,
            deployment,
            concurrency,
            row,
            self._worker_cell,
            line,
            self._clock,
            caller=caller,
            counts=counts,
        )


class DeploymentAccess:
    """One worker's access to the slots and the breaker of one deployment, for one caller, usually without a lock.

    Parameters
    ----------
    table
        The rows of all deployments.
    deployment
        Name of the deployment.
    concurrency
        The slots of all workers together; None means unlimited.
    row, worker_cell
        The row of the deployment, and the cell in it that only this worker writes.
    line
        The requests of this worker that wait for a slot.
    clock
        Clock of the `DeploymentSlots`.
    caller
        The number of the caller.
    counts
        Whether the requests affect the breaker, as in `DeploymentSlots.access`.
    """

    __slots__ = ("_caller", "_cells", "_clock", "_concurrency", "_counts", "_line", "_row", "_table", "_takes_at_once",
                 "_worker_cell", "deployment")  # fmt: skip

    def __init__(  # noqa: PLR0913 -- what all deployments share, and what is its own
        self,
        table: SharedTable,
        deployment: str,
        concurrency: int | None,
        row: memoryview,
        worker_cell: int,
        line: "deque[asyncio.Event]",
        clock: Callable[[], int],
        *,
        caller: int,
        counts: bool,
    ) -> None:
        self._caller = caller
        self._counts = counts
        self._takes_at_once = concurrency is None and counts  # while the breaker is closed
        self._table = table
        self.deployment = deployment
        self._concurrency = concurrency
        self._row = row
        self._cells = row[breaker.WIDTH :]
        self._worker_cell = worker_cell
        self._line = line
        self._clock = clock

    def pending(self) -> int:
        """Return the number of slots that all workers hold."""
        return sum(self._cells) & _HELD

    def seconds_until_open(self) -> float:
        """Return the seconds until the breaker admits a request at the latest; 0 means now."""
        return breaker.seconds_until_open(self._row, self._clock(), self._caller)

    def take(self) -> Ticket | None:
        """Take a slot if one is free, no request waits for it, and the breaker admits the request.

        Returns
        -------
        What `release` needs, or None. If the breaker is the reason, `seconds_until_open` is above 0.
        """
        if self._takes_at_once and (ticket := breaker.admit_closed(self._row, self._caller)):
            self._row[self._worker_cell] += 1  # only this worker writes it
            return ticket
        return self._take(first=False)

    async def wait(self, deadline: float) -> Ticket | None:
        """Take a slot as `take` does, or wait for one.

        Parameters
        ----------
        deadline
            The loop's time until which to wait.

        Returns
        -------
        What `release` needs, or None as soon as the breaker is open.

        Raises
        ------
        TimeoutError
            No slot became free before the deadline.
        """
        if ticket := self.take():
            return ticket
        line, me = self._line, asyncio.Event()
        line.append(me)
        self._row[self._worker_cell] += _WAITING
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    if line[0] is me:
                        if ticket := self._take(first=True):
                            return ticket
                        if self.seconds_until_open():
                            return None
                    await self._look(me, first=line[0] is me)
        finally:
            self._row[self._worker_cell] -= _WAITING
            line.remove(me)
            if line:
                line[0].set()

    async def _look(self, me: asyncio.Event, *, first: bool) -> None:
        """Wait to be woken. The first in line also wakes at random intervals, so that each worker has a chance."""
        me.clear()
        alarm = asyncio.get_running_loop().call_later(uniform(0.5, 1.5) * _LOOK, me.set) if first else None  # noqa: S311
        try:
            await me.wait()
        finally:
            if alarm is not None:
                alarm.cancel()

    def _take(self, *, first: bool) -> Ticket | None:
        with self._table.locked(self.deployment) as row:
            if self._concurrency is not None:
                total = _total(row)
                if total & _HELD >= self._concurrency or (total >= _WAITING and not first):
                    return None
            now = self._clock()
            ticket = breaker.admit(row, now, self._caller) if self._counts else breaker.UNCOUNTED
            if ticket is None or (not self._counts and breaker.is_open(row, now, self._caller)):
                return None
            row[self._worker_cell] += 1
        return ticket

    def release(self, ticket: Ticket, verdict: BreakerVerdict) -> None:
        """Release a slot, once, with a verdict on the deployment."""
        row, line = self._row, self._line
        row[self._worker_cell] -= 1
        if not breaker.changes_nothing(row, ticket, verdict) and ticket is not breaker.UNCOUNTED:
            self._settle(ticket, verdict)
        # While requests of other workers wait, ours only poll as often as they do.
        if line and (len(line) == sum(self._cells) // _WAITING or self.seconds_until_open()):
            line[0].set()

    def _settle(self, ticket: Ticket, verdict: BreakerVerdict) -> None:
        now = self._clock()
        with self._table.locked(self.deployment) as row:
            before = breaker.state(row, now)
            breaker.settle(row, ticket, verdict, now)
            after, is_for_one = breaker.state(row, now), breaker.is_for_one_caller(row)
        if after is not before:
            scope = " for one client key" if is_for_one else ""
            log.warning("deployment %s: breaker %s%s", self.deployment, after.name.lower().replace("_", "-"), scope)


def _total(row: memoryview) -> int:
    return sum(row[breaker.WIDTH :])
