"""Logging of a failure that repeats: a few lines once in a while, with the number of those that were left out."""

import logging
import time
from collections.abc import Callable

#: Seconds in which a text is logged once, and the number of different texts that are logged in this time.
EVERY = 30.0
_TEXTS = 3


class RareLog:
    """Writes the same warning at most once in ``EVERY`` seconds.

    >>> now = 0.0
    >>> rare = RareLog(logging.getLogger("example"), clock=lambda: now)
    >>> [rare.warning("no space for %d bytes", 5) for _ in range(3)]
    [True, False, False]
    >>> [rare.warning("no space for %d bytes", size) for size in range(6, 10)]
    [True, True, False, False]
    >>> now = 31.0
    >>> rare.warning("no space for %d bytes", 5)  # the line says that four more were left out
    True
    """

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._until = float("-inf")
        self._texts: set[str] = set()
        self._left_out = 0

    def warning(self, message: str, *values: object) -> bool:
        """Log the message, unless it or too many others were logged a short time ago. Return whether it was logged."""
        now, text = self._clock(), message % values
        if now >= self._until:
            self._until = now + EVERY
            self._texts.clear()
        if text in self._texts or len(self._texts) == _TEXTS:
            self._left_out += 1
            return False
        self._texts.add(text)
        more = f" (and {self._left_out} more failures before)" if self._left_out else ""
        self._left_out = 0
        self._log.warning("%s%s", text, more)
        return True
