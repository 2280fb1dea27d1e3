"""How deployments stand: what routing asks, and is told, about all workers of the host together.

A deployment's row holds its breaker and a cell for each worker: how many places the worker holds, and in the upper half
how many of its requests wait for one. Only the worker itself writes its cell, so one that is killed and started again
begins with an empty one.

Requests of one worker get their places in the order in which they came. Between workers there is no order: while
requests wait in several, a place that becomes free is drawn for by the first of each.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import uniform

from gateway import breaker
from gateway.breaker import State, Ticket, Verdict
from gateway.shared import SharedTable

log = logging.getLogger(__name__)

#: The first in line looks for a place that another worker gave up about as often, in seconds.
_LOOK = 0.01
_WAITING = 1 << 32
_HELD = _WAITING - 1


class Turn:
    """A place at a deployment, held until ``end``."""

    __slots__ = ("_free",)

    def __init__(self, free: Callable[[Verdict], None]) -> None:
        self._free: Callable[[Verdict], None] | None = free

    def end(self, verdict: Verdict) -> None:
        """Free the place, and say how the deployment did. Only the first call counts."""
        free, self._free = self._free, None
        if free is not None:
            free(verdict)


class Board:
    """One worker's hand on the board.

    Parameters
    ----------
    path
        The board of the host. A process opens it once.
    worker, workers
        Which worker this is, from 0, out of how many. All of a host say the same number of workers.
    clock
        Nanoseconds, the same for all workers, never going back.
    """

    def __init__(self, path: Path, worker: int, workers: int, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._table = SharedTable(path, breaker.WIDTH + workers)
        self._mine = breaker.WIDTH + worker
        self._clock = clock
        self._lines: dict[str, deque[asyncio.Event]] = {}
        for _, row in self._table.rows():
            row[self._mine] = 0

    def close(self) -> None:
        """Let go of the file."""
        self._table.close()

    def pending(self, deployment: str) -> int:
        """Count the places that are held, over all workers."""
        return _total(self._table.row(deployment)) & _HELD

    def open_for(self, deployment: str) -> float:
        """Say in how many seconds the deployment may be asked again at the latest; 0: now."""
        return breaker.opens_in(self._table.row(deployment), self._clock())

    def states(self) -> Iterator[tuple[str, State]]:
        """List the deployments asked so far, and how their breakers stand."""
        now = self._clock()
        return ((name, breaker.state(row, now)) for name, row in self._table.rows())

    def begin(self, deployment: str, concurrency: int | None, *, counts: bool = True) -> Turn | None:
        """Take a place, if there is one and nobody waits for it, and the breaker admits the request.

        Parameters
        ----------
        concurrency
            Places that all workers have together; None: as many as are asked for.
        counts
            Whether the breaker hears of it. What does not count is refused while the breaker is open, is never the
            trial, and its verdict says nothing.

        Returns
        -------
        The place, or None: ``open_for`` tells whether it was for the breaker.
        """
        return self._take(deployment, concurrency, counts=counts, first=False)

    async def turn(
        self, deployment: str, concurrency: int | None, deadline: float, *, counts: bool = True
    ) -> Turn | None:
        """Take a place as ``begin`` does, or wait for one.

        Parameters
        ----------
        deadline
            The loop's time until which to wait.

        Returns
        -------
        The place, or None as soon as the breaker admits nobody.

        Raises
        ------
        TimeoutError
            There was no place until the deadline.
        """
        if made := self.begin(deployment, concurrency, counts=counts):
            return made
        line = self._lines.setdefault(deployment, deque())
        me = asyncio.Event()
        line.append(me)
        self._table.row(deployment)[self._mine] += _WAITING
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    if line[0] is me:
                        if made := self._take(deployment, concurrency, counts=counts, first=True):
                            return made
                        if self.open_for(deployment):
                            return None
                    await self._look(me, first=line[0] is me)
        finally:
            self._table.row(deployment)[self._mine] -= _WAITING
            line.remove(me)
            if line:
                line[0].set()

    async def _look(self, me: asyncio.Event, *, first: bool) -> None:
        """Wait to be woken. The first in line also wakes by itself, at odd times: each worker has its chance."""
        me.clear()
        alarm = asyncio.get_running_loop().call_later(uniform(0.5, 1.5) * _LOOK, me.set) if first else None  # noqa: S311
        try:
            await me.wait()
        finally:
            if alarm is not None:
                alarm.cancel()

    def _take(self, deployment: str, concurrency: int | None, *, counts: bool, first: bool) -> Turn | None:
        row = self._table.row(deployment)
        if concurrency is None and counts and (ticket := breaker.admit_closed(row)):
            row[self._mine] += 1  # none but this worker writes it
            return Turn(partial(self._end, deployment, ticket))
        with self._table.locked(deployment) as row:
            if concurrency is not None:
                total = _total(row)
                if total & _HELD >= concurrency or (total >= _WAITING and not first):
                    return None
            now = self._clock()
            ticket = breaker.admit(row, now) if counts else None
            if ticket is None and (counts or breaker.state(row, now) is State.OPEN):
                return None
            row[self._mine] += 1
        return Turn(partial(self._end, deployment, ticket))

    def _end(self, deployment: str, ticket: Ticket | None, verdict: Verdict) -> None:
        row = self._table.row(deployment)
        row[self._mine] -= 1
        if ticket is not None and not breaker.says_nothing_new(row, ticket, verdict):
            self._settle(deployment, ticket, verdict)
        line = self._lines.get(deployment)
        # While others wait elsewhere, ours come to look as often as they do, no sooner.
        if line and (len(line) == _total(row) // _WAITING or self.open_for(deployment)):
            line[0].set()

    def _settle(self, deployment: str, ticket: Ticket, verdict: Verdict) -> None:
        now = self._clock()
        with self._table.locked(deployment) as row:
            before = breaker.state(row, now)
            breaker.settle(row, ticket, verdict, now)
            after = breaker.state(row, now)
        if after is not before:
            log.warning("deployment %s: breaker %s", deployment, after.name.lower().replace("_", "-"))


def _total(row: memoryview) -> int:
    return sum(row[breaker.WIDTH :])
