"""Compute random numbers as functions of a key, without state, so that the same question gets the same answer."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_SCALE = float(2**53)


def digest(*key: object) -> bytes:
    """Return 16 bytes that depend on every part of ``key`` and on their order."""
    state = hashlib.blake2b(digest_size=16)
    for part in key:
        raw = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        state.update(len(raw).to_bytes(8, "big"))
        state.update(raw)
    return state.digest()


def uniform(*key: object) -> float:
    """Return a number in (0, 1), uniform over keys: 53 bits, never the ends, so that quantile functions stay finite.

    >>> uniform("a", 1) == uniform("a", 1), uniform("a", 1) == uniform("a1")
    (True, False)
    """
    return ((int.from_bytes(digest(*key)[:8], "big") >> 11) + 0.5) / _SCALE


def pick(options: Sequence[T], *key: object) -> T:
    """Choose one of ``options``, uniform over keys."""
    return options[int(uniform(*key) * len(options))]


def index_at(cumulative: Sequence[float], u: float) -> int:
    """Find the cell of a cumulative distribution that contains ``u``; rounding at the end gives the last cell."""
    for index, edge in enumerate(cumulative):
        if u < edge:
            return index
    return len(cumulative) - 1
