"""Send the plans that people start in the console, one after the other, until they end or somebody stops them."""

import asyncio
import contextlib
import logging
from typing import Any, Final

from auditor.access import gateway_access
from auditor.errors import AuditError, StoreUnavailable
from auditor.jobs.work import Work
from auditor.probes.choice import PlanChoice, choose_deployments, plan_choice
from auditor.probes.run import Runner, RunResult
from auditor.probes.session import PlanHeld
from auditor.probes.timed import describe
from auditor.store.audit_runs import AuditRun, RunState, begin_run, end_run, read_runs
from auditor.store.engine import transaction

log = logging.getLogger(__name__)

#: Seconds between two looks for a run that was started or stopped.
_EVERY: Final = 1.0


async def repeat_audits(work: Work) -> None:
    """Send started plans, repeatedly, until cancelled. Any number of processes may: each plan has one sender."""
    complaint = ""
    while True:
        try:
            async with transaction(work.engine) as connection:
                waiting = [run for run in (await read_runs(connection)).values() if run.is_open]
            for run in waiting:
                with contextlib.suppress(PlanHeld):  # another process sends it
                    await _send(work, run)
            complaint = ""
        except StoreUnavailable as error:
            if str(error) != complaint:
                log.warning("started audits wait: %s", error)
            complaint = str(error)
        await asyncio.sleep(_EVERY)


async def _send(work: Work, run: AuditRun) -> None:
    """Send one plan. What goes wrong is kept for the page, and the run can be started again there."""
    result: dict[str, Any]
    try:
        if run.state is RunState.STOPPING:
            stopped, result = True, {}
        else:
            stopped, ended = await _run(work, run)
            result = {one.deployment: describe(one) for one in ended}
    except (PlanHeld, StoreUnavailable):
        raise
    except AuditError as error:
        stopped, result = False, {"error": str(error)}
    async with transaction(work.engine) as connection:
        await end_run(connection, run.plan_id, RunState.STOPPED if stopped else RunState.ENDED, result)
    log.info("audit %s: %s", run.plan_id, "; ".join(f"{name}: {text}" for name, text in result.items()) or "stopped")


async def _run(work: Work, run: AuditRun) -> tuple[bool, tuple[RunResult, ...]]:
    choice = PlanChoice.of_json(run.choice)
    planned = plan_choice(work.config, choice)
    if planned.plan.id != run.plan_id:
        raise AuditError("this release asks other questions for this choice; plan the audit again")
    deployments = choose_deployments(work.config, choice.deployments)
    runner = Runner(engine=work.engine, config=work.config, access=gateway_access(work.config), now=work.clock)
    async with transaction(work.engine) as connection:
        await begin_run(connection, run.plan_id)
    stop = asyncio.Event()
    watching = asyncio.create_task(_watch(work, run.plan_id, stop))
    try:
        ended = await runner.run(planned, deployments, limits=choice.limits, share=choice.share, stop=stop.is_set)
    finally:
        watching.cancel()
    return stop.is_set(), ended


async def _watch(work: Work, plan_id: str, stop: asyncio.Event) -> None:
    """Set ``stop`` when somebody stops the run."""
    while not stop.is_set():
        await asyncio.sleep(_EVERY)
        with contextlib.suppress(StoreUnavailable):
            async with transaction(work.engine) as connection:
                if (await read_runs(connection))[plan_id].state is RunState.STOPPING:
                    stop.set()
