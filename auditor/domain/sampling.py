"""Deterministic sampling: whether an exchange is kept depends on a seed and a key, never on load or on chance."""

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
    digest = blake2b(key, digest_size=8, key=seed.to_bytes(16, "big", signed=True)).digest()
    return int.from_bytes(digest, "big") < rate * _RANGE
