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
from collections.abc import Callable, Iterator, Mapping, Sized
from pathlib import Path
from random import uniform

import msgspec

from gateway.routing import breaker
from gateway.routing.breaker import BreakerState, BreakerVerdict, Ticket
from gateway.shared import SharedTable

log = logging.getLogger(__name__)

#: Seconds between two checks by the first waiting request for slots that other workers released.
_LOOK = 0.01
_WAITING = 1 << 32
_HELD = _WAITING - 1


class Slot(msgspec.Struct, eq=False):
    """A slot of a deployment, held until `release`."""

    _slots: "DeploymentSlots"
    _deployment: str
    ticket: Ticket | None  #: of the breaker; None: the request does not affect it
    _is_held: bool = True

    def release(self, verdict: BreakerVerdict) -> None:
        """Release the slot with a verdict on the deployment. Only the first call counts."""
        if self._is_held:
            self._is_held = False
            self._slots.end(self._deployment, self.ticket, verdict)


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
        self._own_cell = breaker.WIDTH + worker
        self._clock = clock
        self._lines: dict[str, deque[asyncio.Event]] = {}
        self._accesses: dict[tuple[str, int | None], DeploymentAccess] = {}
        for _, row in self._table.rows():
            row[self._own_cell] = 0

    def close(self) -> None:
        """Close the file."""
        self._table.close()

    def pending(self, deployment: str) -> int:
        """Return the number of slots that all workers hold."""
        return _total(self._table.row(deployment)) & _HELD

    def seconds_until_open(self, deployment: str) -> float:
        """Return the seconds until the breaker admits a request at the latest; 0 means now."""
        return breaker.seconds_until_open(self._table.row(deployment), self._clock())

    def states(self) -> Iterator[tuple[str, BreakerState]]:
        """Iterate over the deployments used so far and the states of their breakers."""
        now = self._clock()
        return ((name, breaker.state(row, now)) for name, row in self._table.rows())

    def access(self, deployment: str, concurrency: int | None) -> "DeploymentAccess":
        """Return the access to one deployment, for callers that ask it often. It is the same for all of them."""
        access = self._accesses.get((deployment, concurrency))
        if access is None:
            row = self._table.row(deployment)  # its memory never moves
            access = DeploymentAccess(self, deployment, concurrency, row, self._own_cell, self._lines)
            self._accesses[deployment, concurrency] = access
        return access

    def try_acquire(self, deployment: str, concurrency: int | None, *, counts: bool = True) -> Slot | None:
        """Acquire a slot if one is free, no request waits for it, and the breaker admits the request.

        Parameters
        ----------
        concurrency
            The slots of all workers together; None means unlimited.
        counts
            Whether the request affects the breaker. One that does not is refused while the breaker is open, is never
            the trial, and its verdict is ignored.

        Returns
        -------
        The slot, or None. If the breaker is the reason, ``seconds_until_open`` is above 0.
        """
        if concurrency is None and counts:
            row = self._table.row(deployment)
            if ticket := breaker.admit_closed(row):
                row[self._own_cell] += 1  # only this worker writes it
                return Slot(self, deployment, ticket)
        return self._take(deployment, concurrency, counts=counts, first=False)

    async def acquire(
        self, deployment: str, concurrency: int | None, deadline: float, *, counts: bool = True
    ) -> Slot | None:
        """Acquire a slot as `try_acquire` does, or wait for one.

        Parameters
        ----------
        deadline
            The loop's time until which to wait.

        Returns
        -------
        The slot, or None as soon as the breaker is open.

        Raises
        ------
        TimeoutError
            No slot became free before the deadline.
        """
        if made := self.try_acquire(deployment, concurrency, counts=counts):
            return made
        line = self._lines.setdefault(deployment, deque())
        me = asyncio.Event()
        line.append(me)
        self._table.row(deployment)[self._own_cell] += _WAITING
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    if line[0] is me:
                        if made := self._take(deployment, concurrency, counts=counts, first=True):
                            return made
                        if self.seconds_until_open(deployment):
                            return None
                    await self._look(me, first=line[0] is me)
        finally:
            self._table.row(deployment)[self._own_cell] -= _WAITING
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

    def _take(self, deployment: str, concurrency: int | None, *, counts: bool, first: bool) -> Slot | None:
        with self._table.locked(deployment) as row:
            if concurrency is not None:
                total = _total(row)
                if total & _HELD >= concurrency or (total >= _WAITING and not first):
                    return None
            now = self._clock()
            ticket = breaker.admit(row, now) if counts else None
            if ticket is None and (counts or breaker.state(row, now) is BreakerState.OPEN):
                return None
            row[self._own_cell] += 1
        return Slot(self, deployment, ticket)

    def end(self, deployment: str, ticket: Ticket | None, verdict: BreakerVerdict) -> None:
        """Release a slot that was taken with this ticket. Called by `Slot.release`."""
        row = self._table.row(deployment)
        row[self._own_cell] -= 1
        if ticket is not None and not breaker.says_nothing_new(row, ticket, verdict):
            self._settle(deployment, ticket, verdict)
        line = self._lines.get(deployment)
        # While requests of other workers wait, ours only poll as often as they do.
        if line and (len(line) == _total(row) // _WAITING or self.seconds_until_open(deployment)):
            line[0].set()

    def _settle(self, deployment: str, ticket: Ticket, verdict: BreakerVerdict) -> None:
        now = self._clock()
        with self._table.locked(deployment) as row:
            before = breaker.state(row, now)
            breaker.settle(row, ticket, verdict, now)
            after = breaker.state(row, now)
        if after is not before:
            log.warning("deployment %s: breaker %s", deployment, after.name.lower().replace("_", "-"))


class DeploymentAccess:
    """One deployment, for a caller that asks it often: usually without a lock and a `Slot`.

    Parameters
    ----------
    slots
        Those of all deployments.
    deployment
        Its name.
    concurrency
        The slots of all workers together; None means unlimited.
    row, own_cell
        The row of the deployment, and the cell in it that only this worker writes.
    lines
        The requests of this worker that wait for a slot, by deployment.
    """

    __slots__ = ("_cells", "_concurrency", "_deployment", "_lines", "_own_cell", "_row", "_slots")

    def __init__(
        self,
        slots: DeploymentSlots,
        deployment: str,
        concurrency: int | None,
        row: memoryview,
        own_cell: int,
        lines: Mapping[str, Sized],
    ) -> None:
        self._slots = slots
        self._deployment = deployment
        self._concurrency = concurrency
        self._row = row
        self._cells = row[breaker.WIDTH :]
        self._own_cell = own_cell
        self._lines = lines

    def pending(self) -> int:
        """Return the number of slots that all workers hold."""
        return sum(self._cells) & _HELD

    def take(self) -> Ticket | None:
        """Take a slot as `DeploymentSlots.try_acquire` does; it is held until `release`, or in the object of `slot`."""
        if self._concurrency is None and (ticket := breaker.admit_closed(self._row)):
            self._row[self._own_cell] += 1
            return ticket
        slot = self._slots.try_acquire(self._deployment, self._concurrency)
        return None if slot is None else slot.ticket

    def release(self, ticket: Ticket, verdict: BreakerVerdict) -> None:
        """Release a slot with a verdict on the deployment."""
        if self._lines or not breaker.says_nothing_new(self._row, ticket, verdict):
            self._slots.end(self._deployment, ticket, verdict)
        else:
            self._row[self._own_cell] -= 1

    def slot(self, ticket: Ticket) -> Slot:
        """Return the slot that was taken with this ticket."""
        return Slot(self._slots, self._deployment, ticket)


def _total(row: memoryview) -> int:
    return sum(row[breaker.WIDTH :])
