"""Find the due probes of the configuration, and run one pass of each.

Passes are counted from 1970 in steps of ``every``, so all processes find the same pass without stored state. A pass
that is complete or has used its budget costs a few queries. Within a pass each deployment has its own start time, so
that they are not all probed at once. The auditor's jobs call ``run_due`` at intervals.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from auditor.config import Config, Deployment, Probe
from auditor.config.audits import ALL
from auditor.errors import AuditError, UsageError
from auditor.instrument.designs import Design
from auditor.instrument.pool import pool_of_design
from auditor.probes.blocks import make_blocks, stages
from auditor.probes.plan import Planned, PlanSpec, make_plan
from auditor.probes.run import RunLimits, Runner, RunResult, default_deployments
from auditor.probes.session import PlanHeld
from auditor.store.engine import transaction
from auditor.store.plans import Count, Spent, count_calls, read_spent

log = logging.getLogger(__name__)

#: Pause for a deployment after a failed call of the pass.
REST: Final = timedelta(minutes=10)
#: Deployments start within this part of the interval; the rest is time for those that start last.
SPREAD: Final = 0.75


@dataclass(frozen=True, kw_only=True, slots=True)
class DuePass:
    """One pass of one configured probe."""

    probe: Probe
    spec: PlanSpec
    planned: Planned
    before: Planned  #: the pass before it
    deployments: tuple[Deployment, ...]
    waiting: frozenset[str]  #: deployments whose start time in this pass has not come yet

    @property
    def limits(self) -> RunLimits:
        """The limits of the whole pass."""
        return RunLimits(calls=self.probe.budget.calls, usd=self.probe.budget.usd)


def delay(seed: int, probe: Probe, deployment: str) -> float:
    """Return the seconds from the start of a pass to the start of a deployment, the same in every pass.

    So a deployment's passes start ``every`` apart, and each start is within its interval of the calendar.

    Examples
    --------
    >>> daily = Probe(plan="sentinel")
    >>> [round(delay(0, daily, name) / 3600, 1) for name in ("gpt-4o-eu", "gpt-4o-us", "claude")]
    [4.1, 3.0, 5.9]
    """
    digest = blake2b(f"{seed}\x1f{probe.plan}\x1f{deployment}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 * SPREAD * probe.every


def current_pass(config: Config, probe: Probe, now: datetime) -> DuePass:
    """Return the pass of a configured probe at this moment."""
    number, elapsed = divmod(now.timestamp(), probe.every)
    spec = PlanSpec(
        design=Design(probe.plan),
        statements=pool_of_design(probe.plan, probe.statements),
        seed=config.seed,
        number=int(number),
    )
    declared = {deployment.name: deployment for deployment in config.deployments}
    probed = (
        default_deployments(config) if ALL in probe.deployments else tuple(declared[name] for name in probe.deployments)
    )
    return DuePass(
        probe=probe,
        spec=spec,
        planned=_plan(probe, spec),
        before=_plan(probe, replace(spec, number=spec.number - 1)),
        deployments=probed,
        waiting=frozenset(
            deployment.name for deployment in probed if delay(config.seed, probe, deployment.name) > elapsed
        ),
    )


def _plan(probe: Probe, spec: PlanSpec) -> Planned:
    return make_plan(spec) if probe.half_width is None else make_blocks(spec, probe.half_width)


async def run_due(runner: Runner, coder: str | None = None) -> tuple[RunResult, ...]:
    """Run the open calls of the current pass of every configured probe, one probe after the other.

    A probe that cannot be run now is logged and left for the next call. A pass has one runner at a time, so any number
    of processes may call this at any time.

    Parameters
    ----------
    runner
        Runner of the plans.
    coder
        The coder whose codings show when a rate is known. Without one, probes with a ``half_width`` are skipped.
    """
    ended: list[RunResult] = []
    for probe in runner.config.probes:
        due = current_pass(runner.config, probe, runner.now())
        try:
            for planned, deployments in await _stages(runner, due, coder):
                ended += await _run(runner, due, planned, deployments)
        except PlanHeld:
            log.debug("probe %s is run by another process", due.planned.plan.name)
        except (AuditError, UsageError) as error:
            log.warning("probe %s: %s", due.planned.plan.name, error)
    return tuple(ended)


async def _stages(runner: Runner, due: DuePass, coder: str | None) -> Sequence[tuple[Planned, Sequence[Deployment]]]:
    """Return the plans to ask now and their deployments. Parts may be answered already."""
    if due.probe.half_width is None:
        return [(due.planned, due.deployments)]
    return [] if coder is None else await stages(runner, due.probe, due.spec, due.deployments, coder)


async def _run(
    runner: Runner, due: DuePass, planned: Planned, deployments: Sequence[Deployment]
) -> tuple[RunResult, ...]:
    chosen = await _open(runner, due, planned, deployments)
    if not chosen:
        return ()
    ended = await runner.run(planned, chosen, limits=due.limits, share=due.probe.share)
    for result in ended:
        log.info("probe %s at %s: %s", planned.plan.name, result.deployment, describe(result))
    return ended


async def _open(
    runner: Runner, due: DuePass, planned: Planned, deployments: Sequence[Deployment]
) -> tuple[Deployment, ...]:
    """Return the deployments that are due, have affordable calls left, and did not just fail.

    A deployment that the previous pass did not ask is due at once.
    """
    async with transaction(runner.engine) as connection:
        counted = await count_calls(connection, planned.plan.id)
        spent = await read_spent(connection, planned.plan.id)
        before = await count_calls(connection, due.before.plan.id) if due.waiting else {}
    left_alone = resting(spent, runner.now()) | (due.waiting & set(before))
    left = [
        deployment
        for deployment in deployments
        if deployment.name not in left_alone and counted.get(deployment.name, Count()).answered < planned.instances
    ]
    return await runner.affordable(planned, left, due.limits) if left else ()


def resting(spent: Mapping[str, Spent], now: datetime) -> set[str]:
    """Return the deployments whose latest call of a plan has just failed."""
    return {
        name
        for name, usage in spent.items()
        if usage.last_at and not usage.last_complete and now - usage.last_at < REST
    }


def describe(ended: RunResult) -> str:
    """Describe the result of a plan at one deployment in one line."""
    parts = [f"{ended.answered} of {ended.planned} answered"]
    parts += [f"{count} failed ({why})" for why, count in ended.failed.items()]
    if ended.stopped:
        parts.append(f"stopped: {ended.stopped}")
    return ", ".join(parts)
