"""Deterministic sampling: a seed and a key decide whether an exchange is kept, not load or chance."""

from collections.abc import Mapping
from hashlib import blake2b

_RANGE = 1 << 64


def sampled(seed: int, key: bytes, rate: float) -> bool:
    """Decide whether ``key`` (an exchange id or a cluster) belongs to the sampled share ``rate`` in [0, 1].

    Samples are nested: what is kept at a rate is kept at every higher one with the same seed.
    """
    if rate >= 1:
        return True
    if rate <= 0:
        return False
    return rank(seed, key) < rate * _RANGE


def rank(seed: int, key: bytes) -> int:
    """Return the place of ``key`` in a random order given by the seed."""
    return int.from_bytes(blake2b(key, digest_size=8, key=seed.to_bytes(16, "big", signed=True)).digest(), "big")


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Share out ``n`` places evenly over strata; one that is smaller than its share is taken whole.

    Parameters
    ----------
    sizes
        Number of units in each stratum.
    n
        Places, at least one a stratum.

    Returns
    -------
    dict
        Places by stratum, each at most the stratum's size. They sum to ``n``, or to all there is.

    Raises
    ------
    ValueError
        There are more strata than places: some would be drawn by nobody, and stay unknown.

    Examples
    --------
    >>> allocate({"a": 3, "b": 50, "c": 90}, 24)
    {'a': 3, 'b': 11, 'c': 10}
    """
    left = min(n, sum(sizes.values()))
    if len(sizes) > n:
        raise ValueError(f"{len(sizes)} strata, and {n} to draw")
    takes: dict[str, int] = {}
    smallest_first = sorted(sizes, key=lambda name: (sizes[name], name))
    for place, name in enumerate(smallest_first):
        takes[name] = min(sizes[name], -(-left // (len(sizes) - place)))
        left -= takes[name]
    return {name: takes[name] for name in sorted(takes)}
