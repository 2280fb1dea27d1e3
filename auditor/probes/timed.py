"""Probes that the configuration repeats: which of them are due, and running one pass of each.

Passes are counted from 1970 in steps of ``every``, so any process finds the same pass without a memory of its own; one
that is complete, or has used up its budget, costs a few queries. Within a pass each deployment has a time of its own:
they are not all probed at once. The auditor's jobs call ``run_due`` now and then.
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
from auditor.instrument.pool import shipped_pool
from auditor.probes.blocks import make_blocks
from auditor.probes.plan import Asked, Planned, make_plan
from auditor.probes.run import Ended, Limits, Runner, default_deployments
from auditor.probes.session import PlanHeld
from auditor.probes.target import stages
from auditor.store.engine import reading
from auditor.store.plans import Count, Spent, count_calls, read_spent

log = logging.getLogger(__name__)

#: A deployment whose latest call of the pass failed is left alone for so long.
REST: Final = timedelta(minutes=10)
#: Deployments begin within this part of the interval; the rest is left to those that begin last.
SPREAD: Final = 0.75


@dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """One pass of one configured probe."""

    probe: Probe
    asked: Asked
    planned: Planned
    before: Planned  #: the pass before it
    deployments: tuple[Deployment, ...]
    waiting: frozenset[str]  #: those whose time in this pass has not come yet

    @property
    def limits(self) -> Limits:
        """What the whole pass may use."""
        return Limits(calls=self.probe.budget.calls, usd=self.probe.budget.usd)


def delay(seed: int, probe: Probe, deployment: str) -> float:
    """Give the seconds from the beginning of a pass until a deployment's time: the same in every pass.

    So a deployment's passes lie ``every`` apart, at one time of the day, and each within one interval of the calendar.

    Examples
    --------
    >>> daily = Probe(plan="sentinel")
    >>> [round(delay(0, daily, name) / 3600, 1) for name in ("gpt-4o-eu", "gpt-4o-us", "claude")]
    [4.1, 3.0, 5.9]
    """
    digest = blake2b(f"{seed}\x1f{probe.plan}\x1f{deployment}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 * SPREAD * probe.every


def current_pass(config: Config, probe: Probe, now: datetime) -> Due:
    """Give the pass of a configured probe that belongs to this moment."""
    number, elapsed = divmod(now.timestamp(), probe.every)
    asked = Asked(design=Design(probe.plan), statements=shipped_pool(), seed=config.seed, number=int(number))
    declared = {one.name: one for one in config.deployments}
    probed = (
        default_deployments(config) if ALL in probe.deployments else tuple(declared[name] for name in probe.deployments)
    )
    return Due(
        probe=probe,
        asked=asked,
        planned=_plan(probe, asked),
        before=_plan(probe, replace(asked, number=asked.number - 1)),
        deployments=probed,
        waiting=frozenset(one.name for one in probed if delay(config.seed, probe, one.name) > elapsed),
    )


def _plan(probe: Probe, asked: Asked) -> Planned:
    return make_plan(asked) if probe.half_width is None else make_blocks(asked, probe.half_width)


async def run_due(runner: Runner, coder: str | None = None) -> tuple[Ended, ...]:
    """Run what is open of the current pass of every configured probe, one probe after the other.

    What cannot be run now is logged and left for the next call; what another process is running is left to it. May be
    called as often as wanted, by any number of processes: a pass has one runner at a time.

    Parameters
    ----------
    runner
        What plans are run with.
    coder
        Whose readings say when a rate is known; without one, probes with a ``half_width`` are left alone.
    """
    ended: list[Ended] = []
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


async def _stages(runner: Runner, due: Due, coder: str | None) -> Sequence[tuple[Planned, Sequence[Deployment]]]:
    """Give what is to be asked now, and of whom; much of it may be answered."""
    if due.probe.half_width is None:
        return [(due.planned, due.deployments)]
    return [] if coder is None else await stages(runner, due.probe, due.asked, due.deployments, coder)


async def _run(runner: Runner, due: Due, planned: Planned, deployments: Sequence[Deployment]) -> tuple[Ended, ...]:
    chosen = await _open(runner, due, planned, deployments)
    if not chosen:
        return ()
    ended = await runner.run(planned, chosen, limits=due.limits, share=due.probe.share)
    for one in ended:
        log.info("probe %s at %s: %s", planned.plan.name, one.deployment, describe(one))
    return ended


async def _open(
    runner: Runner, due: Due, planned: Planned, deployments: Sequence[Deployment]
) -> tuple[Deployment, ...]:
    """Give the deployments that have calls left that the budget holds, whose time has come, and that did not just fail.

    One that the pass before did not ask does not wait for its time: what is new is probed at once.
    """
    async with reading(runner.engine) as connection:
        counted = await count_calls(connection, planned.plan.id)
        spent = await read_spent(connection, planned.plan.id)
        before = await count_calls(connection, due.before.plan.id) if due.waiting else {}
    left_alone = resting(spent, runner.now()) | (due.waiting & set(before))
    left = [
        one
        for one in deployments
        if one.name not in left_alone and counted.get(one.name, Count()).answered < planned.instances
    ]
    return await runner.affordable(planned, left, due.limits) if left else ()


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
