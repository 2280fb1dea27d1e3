"""Remove content and facts that are older than the configuration keeps them, repeatedly."""

import asyncio
import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from auditor.config import Config
from auditor.errors import AuditError
from auditor.store.retention import Expired, RetentionBounds, remove_expired
from auditor.work import Work

log = logging.getLogger(__name__)

#: Seconds between two runs.
EVERY: Final = 3600.0


def bounds_of(config: Config, now: datetime) -> RetentionBounds:
    """Return the first days that a configuration keeps at a moment."""
    return RetentionBounds.at(now, config.retention.content, config.retention.facts)


async def repeat_retention(work: Work) -> None:
    """Remove what is due, repeatedly, until cancelled. Any number of processes may do so."""
    complaint = ""
    while True:
        try:
            _tell(await remove_expired(work.engine, bounds_of(work.config, work.clock())))
            complaint = ""
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
