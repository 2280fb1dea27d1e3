"""A minute of amounts, summed per second, in integers that processes share."""

from itertools import accumulate

#: Seconds that count: the current one and the 60 before it.
SPAN = 61
#: Integers of a window: the last second that was seen, and an amount for each second that counts.
CELLS = 1 + SPAN
_EMPTY = memoryview(bytes(8 * SPAN)).cast("q")


class MinuteWindow:
    """The use of the last minute, in 64-bit integers that processes share.

    Amounts are summed per second. The current second and the 60 before it count, so an amount counts for 60 to 61
    seconds, and a limit on `used` holds in every interval of 60 seconds. If a process is killed during a call, the next
    call repairs the state.

    Parameters
    ----------
    cells
        `CELLS` integers of 64 bits, initially zero. Processes that share them hold a lock around each call.
    """

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells
        self._amounts = cells[1:]

    def used(self, now: int) -> int:
        """Advance to the second ``now`` and return the sum."""
        self.move(now)
        return sum(self._amounts)

    def move(self, now: int) -> None:
        """Advance to the second ``now``, and drop what no longer counts.

        A ``now`` before the last one means that the machine and its clock were restarted: all amounts are dropped.
        """
        last = self._cells[0]
        if now != last:
            if last < now < last + SPAN:
                for second in range(last + 1, now + 1):
                    self._amounts[second % SPAN] = 0
            else:
                self._amounts[:] = _EMPTY
            self._cells[0] = now

    def add(self, second: int, amount: int) -> None:
        """Add ``amount`` (which may be negative) to ``second``, unless that second no longer counts."""
        last = self._cells[0]
        if last - SPAN < second <= last:
            self._amounts[second % SPAN] += amount

    def falls_to(self, wanted: int) -> int:
        """Return the second at which the sum falls to ``wanted`` (>= 0), if nothing is added until then."""
        last, used = self._cells[0], sum(self._amounts)
        if used <= wanted:
            return last
        seconds = range(last - SPAN + 1, last + 1)
        expired = accumulate(self._amounts[second % SPAN] for second in seconds)
        return next(second + SPAN for second, gone in zip(seconds, expired, strict=True) if used - gone <= wanted)
