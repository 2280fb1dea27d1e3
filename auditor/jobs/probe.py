"""Probe: the plans that the configuration repeats, sent when due. A pass has one sender, whoever comes first."""

import asyncio
import logging
from typing import Final

from auditor.access import gateway_access
from auditor.errors import AuditError
from auditor.jobs.work import Work
from auditor.probes.run import Runner
from auditor.probes.timed import run_due

log = logging.getLogger(__name__)

#: How often the passes are looked at.
EVERY: Final = 60.0


async def repeat_probes(work: Work) -> None:
    """Run what is due, again and again, until cancelled. It is no job: a pass may last for hours."""
    complaint = ""
    while True:
        try:
            if work.config.probes:
                runner = Runner(engine=work.engine, config=work.config, access=gateway_access(work.config))
                await run_due(runner, next(scope.coder for scope in work.scopes() if scope.routes is None))
            complaint = ""
        except AuditError as error:
            if str(error) != complaint:
                log.warning("probes wait: %s", error)
            complaint = str(error)
        await asyncio.sleep(EVERY)
