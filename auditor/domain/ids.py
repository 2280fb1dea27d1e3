"""Exchange ids: version 7 UUIDs (RFC 9562), which sort by time, so that a day of exchanges is one range of ids.

The store partitions by that range; nothing else in the project takes an id apart.
"""

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from secrets import randbits
from uuid import UUID

_VERSION = 7 << 76
_VARIANT = 0b10 << 62
_RANDOM_BITS = 74
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Random bytes of the system are read for this many ids at once, ten for each: 19 of their 20 hexadecimal digits follow
#: the version in its text, and two bits of the fourth digit are the variant.
_IDS_PER_READ = 256
_KEPT = int.from_bytes(bytes.fromhex("fff3" + 16 * "f") * _IDS_PER_READ)
_SET = int.from_bytes(bytes.fromhex("0008" + 16 * "0") * _IDS_PER_READ)
_DIGITS = re.compile("(.{3})(.{4})(.{12}).")


def new_id(unix_ms: int, random_bits: Callable[[int], int] = randbits) -> UUID:
    """Return the id of an exchange that began ``unix_ms`` milliseconds after 1970 (UTC)."""
    bits = random_bits(_RANDOM_BITS)
    return UUID(int=(unix_ms << 80) | _VERSION | (bits >> 62 << 64) | _VARIANT | (bits & ((1 << 62) - 1)))


def new_id_text(unix_ms: int) -> str:
    """Return the text of a new id, as ``str(new_id(unix_ms))`` in a quarter of the time: a client waits for it.

    ``unix_ms`` is in [0, 2**48).
    """
    global _unused, _latest  # noqa: PLW0603 -- the generator of this process
    for rest in _unused:  # one step of an iterator: no other thread gets the same
        latest_ms, beginning = _latest
        if latest_ms != unix_ms:
            beginning = "%08x-%04x-7" % (unix_ms >> 16, unix_ms & 0xFFFF)  # noqa: UP031 -- in half the time
            _latest = unix_ms, beginning
        return beginning + rest
    _unused = iter(_random_rests())
    return new_id_text(unix_ms)


def _random_rests() -> list[str]:
    """Return what follows the version in the texts of some ids."""
    size = _IDS_PER_READ * 10
    bits = int.from_bytes(os.urandom(size)) & _KEPT | _SET
    return _DIGITS.sub(r"\1-\2-\3 ", bits.to_bytes(size).hex()).split()


def _forget_unused() -> None:
    global _unused  # noqa: PLW0603 -- the generator of this process
    _unused = iter(())


_unused: Iterator[str] = iter(())
#: The millisecond of the latest id, and its text.
_latest = (-1, "")
# A forked process must not repeat the ids of its parent.
os.register_at_fork(after_in_child=_forget_unused)


def id_time(exchange_id: UUID) -> datetime:
    """Read back when it began, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=exchange_id.int >> 80)


def day_bounds(day: date) -> tuple[UUID, UUID]:
    """Return the half-open range of ids ``[low, high)`` that begin on ``day`` (UTC)."""
    start = datetime.combine(day, time(), UTC)
    return floor_id(start), floor_id(start + timedelta(days=1))


def floor_id(moment: datetime) -> UUID:
    """Return the lowest id of an exchange that begins at ``moment``, to the millisecond; none began before 1970."""
    return UUID(int=max(0, (moment - _EPOCH) // timedelta(milliseconds=1)) << 80)
