"""Probes that the configuration repeats: which of them are due, and running one pass of each.

Passes are counted from 1970 in steps of ``every``, so any process finds the same pass without a memory of its own; one
that is complete, or has used up its budget, costs a few queries. The auditor's jobs call ``run_due`` now and then.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from auditor.config import Config, Deployment, Probe
from auditor.config.audits import ALL
from auditor.errors import AuditError, UsageError
from auditor.instrument.designs import Design
from auditor.instrument.pool import shipped_pool
from auditor.probes.plan import Asked, Planned, make_plan
from auditor.probes.run import Ended, Limits, Runner, default_deployments
from auditor.store.engine import reading
from auditor.store.plans import Count, Spent, count_calls, read_spent

log = logging.getLogger(__name__)

#: A deployment whose latest call of the pass failed is left alone for so long.
REST: Final = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """One pass of one configured probe."""

    probe: Probe
    planned: Planned
    deployments: tuple[Deployment, ...]


def current_passes(config: Config, now: datetime) -> tuple[Due, ...]:
    """Give the pass of each configured probe that belongs to this moment."""
    declared = {one.name: one for one in config.deployments}
    return tuple(
        Due(
            probe=probe,
            planned=make_plan(
                Asked(
                    design=Design(probe.plan),
                    statements=shipped_pool(),
                    seed=config.seed,
                    number=int(now.timestamp() // probe.every),
                )
            ),
            deployments=default_deployments(config)
            if ALL in probe.deployments
            else tuple(declared[name] for name in probe.deployments),
        )
        for probe in config.probes
    )


async def run_due(runner: Runner) -> tuple[Ended, ...]:
    """Run what is open of the current pass of every configured probe, one probe after the other.

    What cannot be run now is logged and left for the next call. May be called as often as wanted, by any number of
    processes: a pass has one runner at a time.
    """
    ended: list[Ended] = []
    for due in current_passes(runner.config, runner.now()):
        try:
            ended += await _run(runner, due)
        except (AuditError, UsageError) as error:
            log.warning("probe %s: %s", due.planned.plan.name, error)
    return tuple(ended)


async def _run(runner: Runner, due: Due) -> tuple[Ended, ...]:
    deployments = await _open(runner, due)
    if not deployments:
        return ()
    budget = due.probe.budget
    limits = Limits(calls=budget.calls, usd=budget.usd)
    ended = await runner.run(due.planned, deployments, limits=limits, share=due.probe.share)
    for one in ended:
        log.info("probe %s at %s: %s", due.planned.plan.name, one.deployment, describe(one))
    return ended


async def _open(runner: Runner, due: Due) -> tuple[Deployment, ...]:
    """Give the deployments that have calls without an answer, and have not just failed."""
    plan_id = due.planned.plan.id
    async with reading(runner.engine) as connection:
        counted = await count_calls(connection, plan_id)
        spent = await read_spent(connection, plan_id)
    used = sum(one.calls for one in spent.values())
    if used >= due.probe.budget.calls:
        return ()
    left_alone = resting(spent, runner.now())
    return tuple(
        one
        for one in due.deployments
        if one.name not in left_alone and counted.get(one.name, Count()).answered < due.planned.instances
    )


def resting(spent: Mapping[str, Spent], now: datetime) -> set[str]:
    """Name the deployments whose latest call of a plan has just failed."""
    return {name for name, one in spent.items() if one.last_at and not one.last_complete and now - one.last_at < REST}


def describe(ended: Ended) -> str:
    """Say in one line what came of a plan at one deployment."""
    parts = [f"{ended.answered} of {ended.planned} answered"]
    parts += [f"{count} failed ({why})" for why, count in ended.failed.items()]
    if ended.stopped:
        parts.append(f"stopped: {ended.stopped}")
    return ", ".join(parts)
