"""The window of a minute against a plain log of what was used when."""

import random
from collections import deque
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.limits.minute_window import CELLS, SPAN, MinuteWindow

SECOND = 1_000_000_000


def cells() -> memoryview:
    return memoryview(bytearray(8 * CELLS)).cast("q")


class Log:
    """The same from a list of every amount with its second."""

    def __init__(self) -> None:
        self.now = 0
        self.entries: list[tuple[int, int]] = []

    def used(self, now: int) -> int:
        self.entries = [one for one in self.entries if now - SPAN < one[0]] if now >= self.now else []
        self.now = now
        return sum(amount for _, amount in self.entries)

    def add(self, second: int, amount: int) -> None:
        if self.now - SPAN < second <= self.now:
            self.entries.append((second, amount))

    def falls_to(self, wanted: int) -> int:
        moment = self.now
        while sum(amount for second, amount in self.entries if moment - SPAN < second) > wanted:
            moment += 1
        return moment


class WindowMachine(RuleBasedStateMachine):
    """Any steps of the clock, also back; amounts added, and taken back from a second in which they were added."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = cells()
        self.window, self.log = MinuteWindow(self.cells), Log()
        self.added: list[tuple[int, int]] = []

    def move(self, now: int) -> None:
        if now < self.log.now:
            self.added.clear()  # nobody lives through a restart of the machine
        assert self.window.used(now) == self.log.used(now)

    @rule(step=st.one_of(st.integers(0, 3), st.integers(0, 200), st.integers(10**6, 10**9)))
    def time_passes(self, step: int) -> None:
        self.move(self.log.now + step)

    @rule(step=st.one_of(st.integers(1, 100), st.integers(1, 10**9)))
    def the_clock_begins_anew(self, step: int) -> None:
        self.move(max(0, self.log.now - step))

    @rule(amount=st.integers(0, 1 << 32))
    def something_is_used(self, amount: int) -> None:
        for one in (self.window, self.log):
            one.add(self.log.now, amount)
        self.added.append((self.log.now, amount))

    @rule(data=st.data())
    def a_part_is_taken_back(self, data: st.DataObject) -> None:
        if self.added:
            second, amount = self.added.pop(data.draw(st.integers(0, len(self.added) - 1)))
            part = data.draw(st.integers(0, amount))
            for one in (self.window, self.log):
                one.add(second, -part)

    @rule(wanted=st.one_of(st.just(0), st.integers(0, 1 << 34)))
    def it_is_asked_when_there_is_room(self, wanted: int) -> None:
        assert self.window.falls_to(wanted) == self.log.falls_to(wanted)

    @rule()
    def another_process_looks(self) -> None:
        self.window = MinuteWindow(self.cells)

    @invariant()
    def they_agree_and_no_second_is_negative(self) -> None:
        assert self.window.used(self.log.now) == self.log.used(self.log.now)
        assert min(self.cells) >= 0


TestWindow = WindowMachine.TestCase


@pytest.mark.parametrize(("seed", "limit"), [(1, 1), (2, 60), (3, 600)])
def test_no_sixty_seconds_see_more_than_the_limit_and_no_room_is_kept_for_longer_than_a_second(
    seed: int, limit: int
) -> None:
    """10^5 random steps of a clock in nanoseconds: now crowded, now quiet, now on the second."""
    chance = random.Random(seed)
    window, now, admitted = MinuteWindow(cells()), 0, deque[int]()
    refused = 0
    for _ in range(100_000):
        now += chance.choice((0, 1, chance.randrange(60 * SECOND // limit), chance.randrange(60 * SECOND // limit)))
        if chance.random() < 0.01:
            now += -now % SECOND
        if chance.random() < 0.0001:
            now += chance.randrange(100 * SECOND)
        while admitted and now - admitted[0] >= 61 * SECOND:
            admitted.popleft()
        if window.used(now // SECOND) < limit:
            window.add(now // SECOND, 1)
            admitted.append(now)
            assert len(admitted) <= limit or now - admitted[-limit - 1] >= 60 * SECOND
        else:
            refused += 1
            # What was admitted less than 61 seconds ago is reason enough.
            assert len(admitted) >= limit
    assert refused > 10_000


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 50)), min_size=1, max_size=20), st.integers(0, 300))
def test_a_process_killed_while_it_moves_the_window_on_is_made_good(steps: list[tuple[int, int]], cut: int) -> None:
    """The next to look finds the same, wherever the writing stopped."""
    shared = cells()
    window, log = MinuteWindow(shared), Log()
    for step, amount in steps:
        now = log.now + step
        assert window.used(now) == log.used(now)
        window.add(now, amount)
        log.add(now, amount)
    now = log.now + 1 + cut // 4
    stopped = MinuteWindow(_StopsAfter(shared, cut % SPAN))  # type: ignore[arg-type]
    with suppress(InterruptedError):
        stopped.used(now)
    assert window.used(now) == log.used(now)


class _StopsAfter:
    """Cells whose writer dies after so many writes."""

    def __init__(self, under: memoryview, writes: int) -> None:
        self.under, self.left = under, [writes]

    def __getitem__(self, index: int | slice) -> object:
        if isinstance(index, int):
            return self.under[index]
        part = _StopsAfter(self.under[index], 0)
        part.left = self.left
        return part

    def __setitem__(self, index: int, value: int) -> None:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise InterruptedError
        self.under[index] = value

    def __iter__(self) -> object:
        return iter(self.under)
