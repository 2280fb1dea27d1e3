"""Do what people start in the console, one run after the other, until it ends or somebody stops it.

Audits are sent here; ``auditor.jobs.replays`` runs replays in the same way.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from auditor.access import gateway_access
from auditor.errors import AuditError, StoreUnavailable
from auditor.probes.choice import PlanChoice, choose_deployments, plan_choice
from auditor.probes.run import Runner, RunResult
from auditor.probes.session import PlanHeld
from auditor.probes.timed import describe
from auditor.store.console_runs import ConsoleRun, RunKind, RunState, begin_run, end_run, read_runs
from auditor.store.engine import transaction
from auditor.work import Work

log = logging.getLogger(__name__)

#: Seconds between two looks for a run that was started or stopped.
_EVERY: Final = 1.0


async def repeat_runs(work: Work, kind: RunKind, do: Callable[[Work, ConsoleRun], Awaitable[None]]) -> None:
    """Do the open runs of a kind, one after the other, repeatedly, until cancelled."""
    complaint = ""
    while True:
        try:
            async with transaction(work.engine) as connection:
                waiting = [run for run in (await read_runs(connection, kind)).values() if run.is_open]
            for run in waiting:
                await do(work, run)
            complaint = ""
        except StoreUnavailable as error:
            if str(error) != complaint:
                log.warning("started %ss wait: %s", kind, error)
            complaint = str(error)
        await asyncio.sleep(_EVERY)


async def wait_for_stop(work: Work, kind: RunKind, run_id: str) -> None:
    """Wait until somebody stops the run."""
    stopped = False
    while not stopped:
        await asyncio.sleep(_EVERY)
        with contextlib.suppress(StoreUnavailable):
            async with transaction(work.engine) as connection:
                stopped = (await read_runs(connection, kind))[run_id].state is RunState.STOPPING


async def repeat_audits(work: Work) -> None:
    """Send started plans, repeatedly, until cancelled. Any number of processes may: each plan has one sender."""
    await repeat_runs(work, RunKind.AUDIT, _send)


async def _send(work: Work, run: ConsoleRun) -> None:
    """Send one plan. What goes wrong is kept for the page, and the run can be started again there."""
    result: dict[str, Any]
    try:
        if run.state is RunState.STOPPING:
            stopped, result = True, {}
        else:
            stopped, ended = await _run(work, run)
            result = {deployment_run.deployment: describe(deployment_run) for deployment_run in ended}
    except PlanHeld:
        return  # another process sends it
    except StoreUnavailable:
        raise
    except AuditError as error:
        stopped, result = False, {"error": str(error)}
    async with transaction(work.engine) as connection:
        await end_run(connection, RunKind.AUDIT, run.id, RunState.STOPPED if stopped else RunState.ENDED, result)
    log.info("audit %s: %s", run.id, "; ".join(f"{name}: {text}" for name, text in result.items()) or "stopped")


async def _run(work: Work, run: ConsoleRun) -> tuple[bool, tuple[RunResult, ...]]:
    choice = PlanChoice.of_json(run.choice)
    planned = plan_choice(work.config, choice)
    if planned.plan.id != run.id:
        raise AuditError("this release asks other questions for this choice; plan the audit again")
    deployments = choose_deployments(work.config, choice.deployments)
    runner = Runner(engine=work.engine, config=work.config, access=gateway_access(work.config), now=work.clock)
    async with transaction(work.engine) as connection:
        await begin_run(connection, RunKind.AUDIT, run.id)
    stopping = asyncio.create_task(wait_for_stop(work, RunKind.AUDIT, run.id))
    try:
        ended = await runner.run(planned, deployments, limits=choice.limits, share=choice.share, stop=stopping.done)
        return stopping.done(), ended
    finally:
        stopping.cancel()
