"""How long connections rest, told by a clock that can be put forward."""

import asyncio

import pytest
from support.upstreams.scripted_upstream import scripted_upstream
from support.upstreams.upstream_requests import asking
from typing_extensions import override

HELLO = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


class LeapingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward."""

    ahead = 0.0

    @override
    def time(self) -> float:
        return super().time() + self.ahead


@pytest.mark.parametrize(("seconds", "is_open"), [(20, True), (36, False)])
def test_a_connection_rests_for_half_a_minute(seconds: float, is_open: bool) -> None:
    async def rest() -> bool:
        async with scripted_upstream(lambda _: [HELLO]) as up, asking("own", up.url) as client:
            await client.ask()
            loop.ahead += seconds
            for _ in range(3):  # the loop looks at its timers, and what they close ends
                await asyncio.sleep(0)
            if not is_open:
                await up.until(lambda up: not up.connections)
            await client.ask()
            return up.accepted == 1

    loop = LeapingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(rest()) == is_open


def test_a_connection_that_has_rested_too_long_is_not_used_even_before_it_is_swept_away() -> None:
    async def rest() -> None:
        async with scripted_upstream(lambda _: [HELLO]) as up, asking("own", up.url) as client:
            await client.ask()
            loop.ahead += 31
            await client.ask()  # before the loop has looked at its timers
            assert up.accepted == 2

    loop = LeapingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(rest())
