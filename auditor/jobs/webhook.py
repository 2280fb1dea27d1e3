"""Post the events of findings to the webhook, signed, and repeat until they are delivered. No job waits for it.

The receiver checks ``x-biasmeter-signature``, the HMAC-SHA256 of the body with the shared secret. It may get a body
twice, with the same ``idempotency-key``.
"""

import asyncio
import hmac
import logging
from datetime import timedelta
from typing import Final

import httpx2
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Webhook
from auditor.errors import StoreUnavailable
from auditor.store.engine import transaction
from auditor.store.findings import Delivery, record_delivered, record_failed, take_due
from auditor.work import Work

log = logging.getLogger(__name__)

#: Seconds between two checks.
EVERY: Final = 5.0
#: Pause after the first failure; it doubles after each further one.
FIRST_PAUSE: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = timedelta(hours=1)
#: Deliveries older than this are given up.
LONGEST: Final = timedelta(days=3)
_TIMEOUT: Final = 10.0


async def repeat_posting(work: Work) -> None:
    """Post due deliveries, repeatedly, until cancelled."""
    async with httpx2.AsyncClient(timeout=_TIMEOUT) as client:
        while True:
            try:
                while work.config.monitor.webhook is not None and await post_next(work, client):
                    pass
            except StoreUnavailable as error:
                log.debug("webhook: %s", error)
            await asyncio.sleep(EVERY)


async def post_next(work: Work, client: httpx2.AsyncClient) -> bool:
    """Post one due delivery, and return whether there was one.

    Raises
    ------
    StoreUnavailable
        The store does not answer. The same delivery is posted again later.
    """
    webhook = work.config.monitor.webhook
    assert webhook is not None  # deliveries exist only with a webhook
    async with transaction(work.engine) as connection:
        delivery = await take_due(connection, work.clock(), LONGEST)
        if delivery is None:
            return False
        error = await _post(client, webhook, delivery)
        await _keep(connection, work, delivery, error)
        return True


async def _keep(connection: AsyncConnection, work: Work, delivery: Delivery, error: str | None) -> None:
    now = work.clock()
    if error is None:
        await record_delivered(connection, delivery, now)
        return
    # Logs may be public, and the address itself often is a secret.
    log.warning("webhook: %s (%s): %s", delivery.finding_id, delivery.state, error)
    pause = min(FIRST_PAUSE * 2 ** min(delivery.attempts, 20), LONGEST_PAUSE)
    await record_failed(connection, delivery, error, now + pause)


async def _post(client: httpx2.AsyncClient, webhook: Webhook, delivery: Delivery) -> str | None:
    """Post once, and return what went wrong."""
    headers = {
        "content-type": "application/json",
        "idempotency-key": f"{delivery.finding_id}:{delivery.state}",
        "x-biasmeter-timestamp": delivery.created_at.isoformat(),
    }
    if webhook.secret is not None:
        headers["x-biasmeter-signature"] = f"sha256={signature(webhook.secret.get_secret_value(), delivery.body)}"
    try:
        answer = await client.post(webhook.url.get_secret_value(), content=delivery.body, headers=headers)
    except httpx2.HTTPError as error:
        return type(error).__name__
    return None if answer.is_success else f"status {answer.status_code}"


def signature(secret: str, body: bytes) -> str:
    """Sign a body: HMAC-SHA256, in hexadecimal.

    >>> signature("key", b"The quick brown fox jumps over the lazy dog")
    'f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8'
    """
    return hmac.new(secret.encode(), body, "sha256").hexdigest()
