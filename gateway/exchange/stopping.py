"""What an exchange does that is not done when this process must end."""

import asyncio

from gateway.http import Request

#: The error type of such an exchange.
STOPPED = "gateway_stopped"
STOPPING = "The gateway is stopping."


def survives_cancellation(request: Request) -> bool:
    """Undo the cancellation of a handler whose client is connected, and return True: then this process is stopping."""
    if request.client.is_gone:
        return False
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    return True


async def finish_storing(request: Request, storing: "asyncio.Task[None] | None") -> None:
    """Wait until a large copy is in the spool. A stop of this process does not end this wait, which is short."""
    while storing is not None and not storing.done():
        try:
            await asyncio.wait([storing])
        except asyncio.CancelledError:
            if not survives_cancellation(request):
                raise
