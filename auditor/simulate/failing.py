"""Which attempts fail, and how: drawn anew for every attempt at the same request, so that trying again can help."""

from collections import OrderedDict
from typing import Final, Literal

from auditor.simulate.chance import uniform
from auditor.simulate.model import Failures

Failure = Literal["rate_limited", "server_error", "cut"]

#: Requests remembered; past that the oldest starts anew.
_REMEMBERED: Final = 1_000_000


class Counter:
    """How often a key has been seen, for the latest million keys."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, int] = OrderedDict()

    def next(self, key: bytes) -> int:
        """Count one more; the first time gives 0."""
        count = self._seen.pop(key, 0)
        self._seen[key] = count + 1
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return count

    def now(self, key: bytes) -> int:
        """Tell how often a key has been counted."""
        return self._seen.get(key, 0)


def failure_of(failures: Failures, *key: object) -> Failure | None:
    """Draw how one attempt fails, ``None`` where it does not."""
    u = uniform(*key, "failure")
    kinds: tuple[tuple[Failure, float], ...] = (
        ("rate_limited", failures.rate_limited),
        ("server_error", failures.server_error),
        ("cut", failures.cut),
    )
    for kind, share in kinds:
        if u < share:
            return kind
        u -= share
    return None


def is_slow(failures: Failures, *key: object) -> bool:
    """Draw whether one attempt's first token is slow."""
    return uniform(*key, "slow") < failures.slow
