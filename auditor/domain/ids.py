"""Exchange ids: version 7 UUIDs (RFC 9562), which sort by time, so that a day of exchanges is one range of ids.

The store partitions by that range; nothing else in the project takes an id apart.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from secrets import randbits
from uuid import UUID

_VERSION = 7 << 76
_VARIANT = 0b10 << 62
_RANDOM_BITS = 74
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def new_id(unix_ms: int, random_bits: Callable[[int], int] = randbits) -> UUID:
    """Return the id of an exchange that began ``unix_ms`` milliseconds after 1970 (UTC)."""
    bits = random_bits(_RANDOM_BITS)
    return UUID(int=(unix_ms << 80) | _VERSION | (bits >> 62 << 64) | _VARIANT | (bits & ((1 << 62) - 1)))


def id_time(exchange_id: UUID) -> datetime:
    """Read back when it began, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=exchange_id.int >> 80)


def day_bounds(day: date) -> tuple[UUID, UUID]:
    """Return the half-open range of ids ``[low, high)`` that begin on ``day`` (UTC)."""
    start = datetime.combine(day, time(), UTC)
    return floor_id(start), floor_id(start + timedelta(days=1))


def floor_id(moment: datetime) -> UUID:
    """Return the lowest id of an exchange that begins at ``moment``, to the millisecond."""
    return UUID(int=(moment - _EPOCH) // timedelta(milliseconds=1) << 80)
