"""Exchange ids: they sort by time, give it back, and days tile them without a gap."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from uuid import RFC_4122, UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auditor.domain.ids import day_bounds, floor_id, id_time, new_id, new_id_text

LAST_MS = 253_402_300_799_999  # the last millisecond of the year 9999
MILLISECONDS = st.integers(0, LAST_MS)
DAYS = st.dates(date(1970, 1, 1), date(9999, 12, 30))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(MILLISECONDS)
@example(0)
@example(LAST_MS)
def test_an_id_gives_its_time_back_to_the_millisecond(unix_ms: int) -> None:
    assert id_time(new_id(unix_ms)) == EPOCH + timedelta(milliseconds=unix_ms)


@given(MILLISECONDS, st.integers(0, 2**74 - 1))
@example(0, 0)
@example(LAST_MS, 2**74 - 1)
def test_an_id_is_a_version_7_uuid_whatever_the_random_bits(unix_ms: int, bits: int) -> None:
    made = new_id(unix_ms, lambda _: bits)
    assert made.version == 7
    assert made.variant == RFC_4122
    assert made.int >> 80 == unix_ms
    assert UUID(str(made)) == made


def test_all_74_random_bits_are_used_and_none_twice() -> None:
    base = new_id(1, lambda _: 0).int
    changed = [new_id(1, lambda _, bit=bit: 1 << bit).int ^ base for bit in range(74)]
    assert all(one.bit_count() == 1 for one in changed)
    assert len(set(changed)) == 74


def test_the_generator_is_asked_for_what_is_needed() -> None:
    asked: list[int] = []
    new_id(0, lambda count: asked.append(count) or 0)
    assert asked == [74]


@given(MILLISECONDS, MILLISECONDS, st.integers(0, 2**74 - 1), st.integers(0, 2**74 - 1))
def test_ids_sort_by_time(one: int, other: int, bits: int, other_bits: int) -> None:
    first, second = new_id(one, lambda _: bits), new_id(other, lambda _: other_bits)
    if one != other:
        assert (first < second) == (one < other)
        # PostgreSQL and text sort them alike.
        assert (first.bytes < second.bytes) == (str(first) < str(second)) == (one < other)


def test_ids_of_one_millisecond_differ() -> None:
    assert len({new_id(1_700_000_000_000) for _ in range(10_000)}) == 10_000


@given(MILLISECONDS)
@example(0)
@example(LAST_MS)
@example(2**48 - 1)
def test_the_text_of_a_new_id_is_that_of_a_version_7_uuid(unix_ms: int) -> None:
    text = new_id_text(unix_ms)
    made = UUID(text)
    assert str(made) == text
    assert (made.version, made.variant, made.int >> 80) == (7, RFC_4122, unix_ms)


def test_all_74_bits_of_texts_are_random() -> None:
    made = [UUID(new_id_text(1)).int for _ in range(10_000)]
    assert len(set(made)) == len(made)
    ones = [sum(one >> place & 1 for one in made) for place in range(80)]
    constant = {place for place, count in enumerate(ones) if count in {0, len(made)}}
    assert constant == {62, 63, 76, 77, 78, 79}  # the variant and the version
    # Six standard deviations: one run in 7 million fails for each of 74 bits.
    assert all(abs(ones[place] - 5000) < 300 for place in range(80) if place not in constant)


FORKS = """
import os, sys
from auditor.domain.ids import new_id_text

def write(n):
    os.write(1, "".join(new_id_text(1) + "\\n" for _ in range(n)).encode())

write(3)
children = [os.fork() for _ in range(3)]
write(700)
if children[-1]:
    for child in children:
        if child:
            os.waitpid(child, 0)
"""


def test_forked_processes_make_other_ids_than_their_parent() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, check=True, timeout=60)
    made = done.stdout.split()
    # Three forks in a row are eight processes, each of which inherited what was left of the random bytes.
    assert len(made) >= 3 + 8 * 700
    assert len(set(made)) == len(made)


def test_threads_make_different_ids() -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: [new_id_text(1) for _ in range(2000)], range(4)))
    assert len(set(chain(*made))) == 8000


def test_no_exchange_began_before_1970() -> None:
    assert floor_id(datetime(1926, 12, 23, tzinfo=UTC)) == UUID(int=0)
    assert day_bounds(date(1926, 12, 23)) == (UUID(int=0), UUID(int=0))


@given(MILLISECONDS, st.integers(0, 2**74 - 1))
@example(86_399_999, 2**74 - 1)
@example(86_400_000, 0)
@example(1_772_323_199_999, 2**74 - 1)
def test_an_id_lies_in_the_bounds_of_its_day_and_no_other(unix_ms: int, bits: int) -> None:
    made = new_id(min(unix_ms, LAST_MS - 86_400_000), lambda _: bits)
    day = id_time(made).date()
    low, high = day_bounds(day)
    assert low <= made < high
    before, after = day - timedelta(days=1), day + timedelta(days=1)
    if before >= EPOCH.date():
        assert made >= day_bounds(before)[1]
    if after < date(9999, 12, 31):
        assert made < day_bounds(after)[0]


@given(DAYS)
@example(date(2024, 2, 29))
@example(date(1999, 12, 31))
def test_days_tile_the_ids(day: date) -> None:
    low, high = day_bounds(day)
    assert low < high
    if day < date(9999, 12, 30):
        assert high == day_bounds(day + timedelta(days=1))[0]
    assert id_time(low) == datetime(day.year, day.month, day.day, tzinfo=UTC)
    assert (high.int - low.int) >> 80 == 86_400_000


@pytest.mark.parametrize("unix_ms", [-1, 2**48])
def test_a_time_that_no_id_can_hold_is_an_error(unix_ms: int) -> None:
    with pytest.raises(ValueError, match="int is out of range"):
        new_id(unix_ms)


def test_a_time_beyond_the_calendar_is_an_overflow() -> None:
    """The shipper sets such a row aside."""
    with pytest.raises(OverflowError):
        id_time(UUID(int=2**128 - 1))
