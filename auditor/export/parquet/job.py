"""Copy changed days to the folder of ``parquet.directory``, repeatedly."""

import asyncio
import logging
from typing import Final

from auditor.errors import AuditError
from auditor.store.engine import transaction
from auditor.store.expiry import find_expiry
from auditor.work import Work

log = logging.getLogger(__name__)

#: Seconds before the first export, so that a restart does not begin with one, and before a failed one is repeated.
_PAUSE: Final = 60.0


async def repeat_export(work: Work) -> None:
    """Write the Parquet files of days that have changed, repeatedly, until cancelled."""
    wanted = work.config.parquet
    if wanted is None:
        return
    complaint = ""
    while True:
        await asyncio.sleep(_PAUSE)
        try:
            from auditor.export.parquet.days import export_days  # noqa: PLC0415 -- pyarrow is an optional part

            async with transaction(work.engine) as connection:
                expiry = await find_expiry(connection, work.config.retention.content, work.config.retention.facts)
            keep_from = expiry.bounds.facts
            files = await export_days(work.engine, wanted.directory, tuple(work.coders), keep_from=keep_from)
            log.info("parquet: %d of %d files written", sum(file.written for file in files), len(files))
            complaint = ""
        except (AuditError, ModuleNotFoundError) as error:
            if str(error) != complaint:
                log.warning("parquet: %s", error)
            complaint = str(error)
            continue
        except Exception:
            # A failure here must not stop the coding of answers.
            log.exception("parquet: the export failed and is tried again")
            continue
        await asyncio.sleep(max(wanted.every - _PAUSE, 0))
