"""Webhook: posts what has happened to findings, signed, and again until it has arrived. No job waits for it.

The receiver checks ``x-tiltmeter-signature``, the HMAC-SHA256 of the body with the shared secret, and may see a body
twice: ``idempotency-key`` then is the same.
"""

import asyncio
import hmac
import logging
from datetime import timedelta
from typing import Final

import httpx
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Webhook
from auditor.errors import StoreUnavailable
from auditor.jobs.work import Work
from auditor.store.deliveries import Delivery, keep_delivered, keep_failed, take_due
from auditor.store.engine import reading

log = logging.getLogger(__name__)

#: Seconds between looks.
EVERY: Final = 5.0
#: After a failure the next attempt is so far off, then twice, and so on.
FIRST_PAUSE: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = timedelta(hours=1)
#: What has not arrived for so long is given up.
LONGEST: Final = timedelta(days=3)
_TIMEOUT: Final = 10.0


async def repeat_posting(work: Work) -> None:
    """Post what is due, again and again, until cancelled."""
    async with httpx.AsyncClient(timeout=_TIMEOUT) as client:
        while True:
            try:
                while work.config.monitor.webhook is not None and await post_next(work, client):
                    pass
            except StoreUnavailable as error:
                log.debug("webhook: %s", error)
            await asyncio.sleep(EVERY)


async def post_next(work: Work, client: httpx.AsyncClient) -> bool:
    """Post one delivery that is due; say whether there was one.

    Raises
    ------
    StoreUnavailable
        The store does not answer. What was posted meanwhile is posted again.
    """
    webhook = work.config.monitor.webhook
    assert webhook is not None  # who posts has somewhere to post to
    async with reading(work.engine) as connection:
        delivery = await take_due(connection, work.clock(), LONGEST)
        if delivery is None:
            return False
        error = await _post(client, webhook, delivery)
        await _keep(connection, work, delivery, error)
        return True


async def _keep(connection: AsyncConnection, work: Work, delivery: Delivery, error: str | None) -> None:
    now = work.clock()
    if error is None:
        await keep_delivered(connection, delivery, now)
        return
    # Anybody may see a log, and the address itself often is a secret.
    log.warning("webhook: %s (%s): %s", delivery.finding_id, delivery.state, error)
    pause = min(FIRST_PAUSE * 2 ** min(delivery.attempts, 20), LONGEST_PAUSE)
    await keep_failed(connection, delivery, error, now + pause)


async def _post(client: httpx.AsyncClient, webhook: Webhook, delivery: Delivery) -> str | None:
    """Post once; give what went wrong."""
    headers = {
        "content-type": "application/json",
        "idempotency-key": f"{delivery.finding_id}:{delivery.state}",
        "x-tiltmeter-timestamp": delivery.created_at.isoformat(),
    }
    if webhook.secret is not None:
        headers["x-tiltmeter-signature"] = f"sha256={signature(webhook.secret.get_secret_value(), delivery.body)}"
    try:
        answer = await client.post(webhook.url.get_secret_value(), content=delivery.body, headers=headers)
    except httpx.HTTPError as error:
        return type(error).__name__
    return None if answer.is_success else f"status {answer.status_code}"


def signature(secret: str, body: bytes) -> str:
    """Sign a body: HMAC-SHA256, in hexadecimal.

    >>> signature("key", b"The quick brown fox jumps over the lazy dog")
    'f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8'
    """
    return hmac.new(secret.encode(), body, "sha256").hexdigest()
