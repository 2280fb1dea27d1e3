"""How much of something is done, told as it goes on to whoever shows it."""

from collections.abc import Callable

#: Told what is being done, how much of it is done, and how much there is.
OnProgress = Callable[[str, int, int], None]


class Counted:
    """Tells how much of something is done."""

    def __init__(self, what: str, total: int, on_progress: OnProgress) -> None:
        self._what, self._total, self._on_progress, self._done = what, total, on_progress, 0

    def add(self, n: int) -> None:
        """Tell that so many more are done."""
        self._done += n
        self._on_progress(self._what, self._done, self._total)
