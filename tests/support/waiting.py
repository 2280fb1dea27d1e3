"""Wait for what a test expects, instead of for a fixed time."""

import asyncio
import time
from collections.abc import Awaitable, Callable

#: Seconds for what takes a moment on an idle machine.
PATIENCE = 30.0


async def eventually(holds: Callable[[], bool | Awaitable[bool]], patience: float = PATIENCE) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + patience
    while True:
        held = holds()
        if not isinstance(held, bool):
            held = await held
        if held:
            return
        assert time.monotonic() < deadline, f"{holds.__qualname__} did not come to hold in {patience:g} s"
        await asyncio.sleep(0.02)


def wait_until(holds: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait until something holds, in a test without an event loop."""
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, f"{holds.__qualname__} did not come to hold in {patience:g} s"
        time.sleep(0.02)
