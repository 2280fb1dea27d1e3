"""What was used in the last minute, in 64-bit integers that processes can share.

Amounts are added up by the second. The second that is running and the 60 before it count, so an amount counts for at
least 60 and at most 61 seconds: a limit held against `Window.used` holds in every interval of 60 seconds. A process
that is killed in the middle of any of this leaves nothing that the next call would not put right.
"""

from itertools import accumulate

#: Seconds that count.
SPAN = 61
#: Integers that a window takes: the second it was last looked at, and an amount for each second that counts.
CELLS = 1 + SPAN


class Window:
    """A minute of use.

    Parameters
    ----------
    cells
        `CELLS` integers of 64 bits, zeros at first. Whoever shares them with others holds a lock around each call.
    """

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells
        self._amounts = cells[1:]

    def used(self, now: int) -> int:
        """Move on to the second ``now`` and give what counts there."""
        self.move(now)
        return sum(self._amounts)

    def move(self, now: int) -> None:
        """Move on to the second ``now``.

        A ``now`` before the last one is another life of the clock, which begins anew when the machine does: what was
        counted before is over.
        """
        last = self._cells[0]
        if now != last:
            passed = range(last + 1, now + 1) if last < now < last + SPAN else range(SPAN)
            for second in passed:
                self._amounts[second % SPAN] = 0
            self._cells[0] = now

    def add(self, second: int, amount: int) -> None:
        """Count ``amount`` in ``second``, or take back what was counted there, unless that second counts no more."""
        last = self._cells[0]
        if last - SPAN < second <= last:
            self._amounts[second % SPAN] += amount

    def falls_to(self, wanted: int) -> int:
        """Give the second in which at most ``wanted`` (>= 0) counts, when nothing is added until then."""
        last, used = self._cells[0], sum(self._amounts)
        if used <= wanted:
            return last
        seconds = range(last - SPAN + 1, last + 1)
        expired = accumulate(self._amounts[second % SPAN] for second in seconds)
        return next(second + SPAN for second, gone in zip(seconds, expired, strict=True) if used - gone <= wanted)
