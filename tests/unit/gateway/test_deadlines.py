"""Deadlines: who is in time hears nothing, who is late is told once, and an error of one costs no other."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from support.waiting import eventually
from typing_extensions import override

from gateway.exchange.deadlines import Deadlines, Waiting


class Wait(Waiting):
    """Waits, and counts how often its time has come."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.told = 0
        self.error: Exception | None = None
        self._then = then

    def on_due(self) -> None:
        self.told += 1
        self._then()

    def broken(self, error: Exception) -> None:
        self.error = error


@pytest.fixture
async def deadlines() -> AsyncIterator[Deadlines]:
    made = Deadlines()
    yield made
    assert not made._due


async def looks(deadlines: Deadlines) -> None:
    """Wait until the deadlines have been checked."""
    mark = Wait()
    deadlines.watch(mark, deadlines.now())
    await eventually(lambda: mark.told > 0)
    deadlines.forget(mark)


async def test_who_is_late_is_told_until_it_is_forgotten(deadlines: Deadlines) -> None:
    late = Wait()
    deadlines.watch(late, deadlines.now() - 1)
    await looks(deadlines)
    assert late.told >= 1
    deadlines.forget(late)
    told = late.told
    await looks(deadlines)
    assert late.told == told


async def test_who_is_in_time_hears_nothing(deadlines: Deadlines) -> None:
    early, moved = Wait(), Wait()
    deadlines.watch(early, deadlines.now() + 60)
    deadlines.watch(moved, deadlines.now() - 1)
    deadlines.watch(moved, deadlines.now() + 60)  # the later time counts
    await looks(deadlines)
    assert (early.told, moved.told) == (0, 0)
    deadlines.forget(early)
    deadlines.forget(moved)


async def test_who_is_forgotten_by_another_in_the_same_check_hears_nothing(deadlines: Deadlines) -> None:
    second = Wait()
    first = Wait(lambda: deadlines.forget(second))
    deadlines.watch(first, deadlines.now() - 1)
    deadlines.watch(second, deadlines.now() - 1)
    await looks(deadlines)
    assert (first.told >= 1, second.told) == (True, 0)
    deadlines.forget(first)


async def test_an_error_is_told_to_the_one_that_raised_it(deadlines: Deadlines) -> None:
    def fail() -> None:
        raise RuntimeError("a fault of the gateway")

    failing, other = Wait(fail), Wait()
    deadlines.watch(failing, deadlines.now() - 1)
    deadlines.watch(other, deadlines.now() - 1)
    await looks(deadlines)
    assert isinstance(failing.error, RuntimeError)
    assert (other.told >= 1, other.error) == (True, None)
    deadlines.forget(failing)
    deadlines.forget(other)


async def test_without_anyone_who_waits_nothing_is_checked(deadlines: Deadlines) -> None:
    await looks(deadlines)
    await eventually(lambda: not deadlines._is_checking)
    assert asyncio.get_running_loop().is_running()


async def test_an_error_of_the_end_of_one_ends_no_other_and_no_later_check(deadlines: Deadlines) -> None:
    class Unbreakable(Wait):
        @override
        def broken(self, error: Exception) -> None:
            raise error

    def fail() -> None:
        raise RuntimeError("a fault of the gateway")

    other = Wait()
    for waiting in (Unbreakable(fail), other):
        deadlines.watch(waiting, deadlines.now() - 1)
    await looks(deadlines)
    assert other.told >= 1
    told = other.told
    await looks(deadlines)
    assert other.told > told
    deadlines.forget(other)
