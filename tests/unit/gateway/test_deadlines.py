"""Deadlines: what is in time is not touched, what is late is cancelled, and other people's cancellations are theirs."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.exchange.deadlines import Deadlines


@pytest.fixture
async def deadlines() -> AsyncIterator[Deadlines]:
    yield Deadlines()
    assert this().cancelling() == 0


def this() -> "asyncio.Task[object]":
    task = asyncio.current_task()
    assert task is not None
    return task


def now() -> float:
    return asyncio.get_running_loop().time()


async def later(value: str, seconds: float = 0) -> str:
    await asyncio.sleep(seconds)
    return value


async def test_what_comes_in_time_is_handed_over(deadlines: Deadlines) -> None:
    assert await deadlines.wait(this(), later("here"), now() + 10) == "here"


async def test_what_comes_at_once_is_handed_over_whatever_the_deadline(deadlines: Deadlines) -> None:
    async def at_once() -> str:
        return "here"

    assert await deadlines.wait(this(), at_once(), now() - 1) == "here"


async def test_what_is_late_is_cancelled(deadlines: Deadlines) -> None:
    waiting = asyncio.get_running_loop().create_future()
    began = now()
    with pytest.raises(TimeoutError):
        await deadlines.wait(this(), waiting, began + 0.05)
    assert waiting.cancelled()
    assert now() - began >= 0.05


async def test_an_error_of_what_is_awaited_comes_through(deadlines: Deadlines) -> None:
    async def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await deadlines.wait(this(), fail(), now() + 10)


async def test_one_timer_keeps_the_deadlines_of_many(deadlines: Deadlines) -> None:
    async def wait(seconds: float) -> str:
        try:
            return await deadlines.wait(this(), later("here", 0.1), now() + seconds)
        except TimeoutError:
            return "late"

    assert await asyncio.gather(*map(wait, (10, 0.01, 20, 0.02))) == ["here", "late", "here", "late"]


async def test_whoever_else_cancels_a_task_means_all_of_it(deadlines: Deadlines) -> None:
    async def wait() -> None:
        await deadlines.wait(this(), asyncio.get_running_loop().create_future(), now() + 10)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_task_that_is_late_and_cancelled_by_another_is_cancelled(deadlines: Deadlines) -> None:
    async def stubborn() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            waiting.cancel()
            raise

    async def wait() -> None:
        await deadlines.wait(this(), stubborn(), now())

    waiting = asyncio.create_task(wait())
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert waiting.cancelled()


async def test_what_swallows_its_cancellation_leaves_the_task_as_it_was(deadlines: Deadlines) -> None:
    async def stubborn() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return "all the same"
        return ""

    assert await deadlines.wait(this(), stubborn(), now()) == "all the same"
    assert await deadlines.wait(this(), later("again"), now() + 10) == "again"
