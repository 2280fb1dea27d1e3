"""Remove content and facts that are older than the configuration keeps them, repeatedly."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from auditor.errors import AuditError
from auditor.export.process_series import HELD_DAYS
from auditor.store.engine import transaction
from auditor.store.expiry import HeldDays, find_expiry
from auditor.store.lifetimes import Lifetime
from auditor.store.retention import Expired, remove_expired
from auditor.work import Work

log = logging.getLogger(__name__)

#: Seconds between two runs.
EVERY: Final = 3600.0


async def repeat_retention(work: Work) -> None:
    """Remove what is due, repeatedly, until cancelled. Any number of processes may do so."""
    complaint = ""
    retention = work.config.retention
    while True:
        try:
            async with transaction(work.engine) as connection:
                expiry = await find_expiry(connection, retention.content, retention.facts)
            _tell(await remove_expired(work.engine, expiry.bounds))
            _count_held(expiry.held)
            held = "; ".join(map(str, expiry.held))
            if held and held != complaint:
                log.warning("retention: %s", held)
            complaint = held
        except AuditError as error:
            if str(error) != complaint:
                log.warning("retention: %s", error)
            complaint = str(error)
        except Exception:
            # A failure here must not stop the coding of answers.
            log.exception("retention failed and is tried again")
        await asyncio.sleep(EVERY)


def _tell(removed: Iterable[Expired]) -> None:
    for expired in removed:
        if expired.blocked:
            log.warning("retention: %s is in use and is dropped later", expired.what)
        else:
            log.info("retention: %s, %d rows older than %s", expired.what, expired.rows, expired.before)


def _count_held(held: Iterable[HeldDays]) -> None:
    days = {entry.lifetime: entry.days for entry in held}
    for lifetime in (Lifetime.CONTENT, Lifetime.FACTS):
        HELD_DAYS.labels(lifetime).set(days.get(lifetime, 0))
