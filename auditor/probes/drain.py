"""Waiting until the gateway has shipped what it holds: what the store does not know yet may be answered already.

Before a plan is resumed, and after it was sent, so that what is missing then is really missing.
"""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Final

import httpx

from auditor.access import GatewayAccess
from auditor.errors import AuditError, StoreUnavailable

_SERIES: Final = re.compile(r"^tiltmeter_spool_(bytes|oldest_seconds)(?:\{\})? (\S+)$", re.MULTILINE)
_LOOK_EVERY: Final = 0.2
#: Seconds after which a spool that does not empty is taken to be stuck.
PATIENCE: Final = 60.0
#: Clocks and rounding between a record's time and ours.
_SLACK: Final = 0.5


async def wait_until_shipped(
    client: httpx.AsyncClient,
    access: GatewayAccess,
    patience: float = PATIENCE,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until all that the gateway had recorded when this was called is in the store.

    Clients go on meanwhile, so the spool need not be empty: it is enough that its oldest record is younger than this
    call.

    Raises
    ------
    StoreUnavailable
        The spool does not empty: the store is away, or the shipper.
    AuditError
        The gateway does not answer.
    """
    began = clock()
    while True:
        size, age = await _read_backlog(client, access)
        waited = clock() - began
        if size == 0 or (age is not None and age + _SLACK < waited):
            return
        if waited > patience:
            raise StoreUnavailable(
                f"{size:.0f} bytes wait in the spool of the gateway at {access.url} and do not reach the store"
            )
        await asyncio.sleep(_LOOK_EVERY)


async def _read_backlog(client: httpx.AsyncClient, access: GatewayAccess) -> tuple[float, float | None]:
    url = access.url.removesuffix("/").removesuffix("/v1") + "/metrics"
    try:
        answer = await client.get(url)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise AuditError(
            f"the gateway at {access.url} does not answer: {type(error).__name__} {error}".strip()
        ) from error
    found = {name: float(value) for name, value in _SERIES.findall(answer.text)}
    if "bytes" not in found:
        raise AuditError(f"{url} does not name tiltmeter_spool_bytes; is this a tiltmeter gateway?")
    return found["bytes"], found.get("oldest_seconds")
