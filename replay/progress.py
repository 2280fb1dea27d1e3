"""Report the progress of a step to a callback."""

from collections.abc import Callable

#: Gets the name of the step, the amount done, and the total.
OnProgress = Callable[[str, int, int], None]


class ProgressCounter:
    """A counter that reports the progress of a step."""

    def __init__(self, what: str, total: int, on_progress: OnProgress) -> None:
        self._what, self._total, self._on_progress, self._done = what, total, on_progress, 0

    def add(self, n: int) -> None:
        """Report ``n`` more as done."""
        self._done += n
        self._on_progress(self._what, self._done, self._total)
