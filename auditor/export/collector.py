"""Send exchanges as spans and codings as events to the OTLP collector of the configuration. No job waits for it.

A coding is sent in the transaction that removes it from the waiting ones: once, or again after a failure in between.
The collector's answer decides as the OTLP specification says: 429, 502, 503 and 504 are tried again, and what it
refuses otherwise is dropped.
"""

import asyncio
import logging
from typing import Final

import httpx2

from auditor.config.audits import OtelExport
from auditor.config.network import plain_headers
from auditor.errors import AuditError, StoreUnavailable
from auditor.store.engine import transaction
from auditor.store.unsent import forget_unsent, take_unsent
from auditor.work import Work

log = logging.getLogger(__name__)

#: Seconds between two checks.
EVERY: Final = 5.0
_LONGEST_PAUSE: Final = 300.0
_TIMEOUT: Final = 10.0
#: Codings of one request.
_BATCH: Final = 500
#: Statuses after which the same request is sent again.
_AGAIN: Final = frozenset({429, 502, 503, 504})


class CollectorError(AuditError):
    """The collector does not answer, or asks to be asked again."""


async def repeat_sending(work: Work) -> None:
    """Send waiting codings, repeatedly, until cancelled."""
    wanted = work.config.otel
    if wanted is None:
        return
    pause, complaint = EVERY, ""
    async with httpx2.AsyncClient(timeout=_TIMEOUT, trust_env=False) as client:
        while True:
            try:
                while await send_some(work, wanted, client):
                    pass
                pause, complaint = EVERY, ""
            except StoreUnavailable as error:
                log.debug("otel: %s", error)
            except ModuleNotFoundError:
                log.warning("otel: codings wait: run: pip install 'biasmeter[otel]', and restart the auditor")
                return
            except CollectorError as error:
                if str(error) != complaint:
                    log.warning("otel: %s", error)
                pause, complaint = min(2 * pause, _LONGEST_PAUSE), str(error)
            await asyncio.sleep(pause)


async def send_some(work: Work, settings: OtelExport, client: httpx2.AsyncClient) -> bool:
    """Send a batch of waiting codings, and return whether there was one.

    Raises
    ------
    CollectorError
        The batch waits.
    StoreUnavailable
        The store does not answer.
    ModuleNotFoundError
        The extra ``otel`` is not installed.
    """
    from auditor.export.otlp import logs_request, trace_request  # noqa: PLC0415 -- part of the extra otel

    vendors = {
        deployment.name: deployment.vendor for deployment in work.config.deployments if deployment.vendor is not None
    }
    async with transaction(work.engine) as connection:
        codings, keys = await take_unsent(connection, _BATCH)
        if not keys:
            return False
        if codings:
            spans = trace_request(codings, vendors)
            if spans is not None:
                await _post(client, settings, "traces", spans)
            await _post(client, settings, "logs", logs_request(codings))
        await forget_unsent(connection, keys)
    return True


async def _post(client: httpx2.AsyncClient, settings: OtelExport, signal: str, content: bytes) -> None:
    headers = {"content-type": "application/x-protobuf", **plain_headers(settings.headers)}
    try:
        answer = await client.post(f"{settings.endpoint}/v1/{signal}", content=content, headers=headers)
    except httpx2.HTTPError as error:
        raise CollectorError(f"{settings.endpoint}: {type(error).__name__}") from None
    if answer.status_code in _AGAIN:
        raise CollectorError(f"{settings.endpoint}: HTTP {answer.status_code}")
    if answer.status_code >= 300:
        log.warning("otel: the collector refuses %s with HTTP %d; they are dropped", signal, answer.status_code)
