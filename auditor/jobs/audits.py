"""Send the plans that people start in the console, one after the other, until they end or somebody stops them."""

import asyncio
import logging
from typing import Any

from auditor.access import gateway_access
from auditor.errors import AuditError, StoreUnavailable
from auditor.jobs.console_runs import repeat_runs, wait_for_stop
from auditor.probes.choice import PlanChoice, choose_deployments, plan_choice
from auditor.probes.run import Runner, RunResult
from auditor.probes.session import PlanHeld
from auditor.probes.timed import describe
from auditor.store.console_runs import ConsoleRun, RunKind, RunState, begin_run, end_run
from auditor.store.engine import transaction
from auditor.work import Work

log = logging.getLogger(__name__)


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
            result = {one.deployment: describe(one) for one in ended}
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
