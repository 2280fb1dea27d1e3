"""Runs a plan: stores it, sends what has no answer yet, and tells what came of it. Running it again resumes it.

``plan`` makes the plan, ``session`` sends what of it the store lacks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.access import GatewayAccess
from auditor.config import Config, Deployment
from auditor.instrument.pool import record_of
from auditor.probes.estimate import SHARE, Usage, call_usage, habit_of, kind_of
from auditor.probes.plan import Planned
from auditor.probes.purse import Purse
from auditor.probes.send import Outgoing, Patience, Tally, Target
from auditor.probes.session import open_session, target_of
from auditor.store.engine import reading
from auditor.store.habits import Habits, read_habits
from auditor.store.plans import (
    Count,
    Spent,
    add_plan,
    answered_positions,
    count_calls,
    read_spent,
)

#: Told the deployment, how many of its calls have ended, and how many there are.
OnProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The most that one plan may use, runs before this one included. ``None`` limits nothing."""

    calls: int | None = None
    usd: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What came of a plan at one deployment."""

    deployment: str
    planned: int
    before: int  #: answered before this run
    sent: int  #: requests of this run, repeated ones included
    answered: int  #: calls that have their answer now
    failed: Mapping[str, int] = field(default_factory=dict)
    stopped: str | None = None  #: why the rest was not sent
    budget_ended: bool = False  #: and that it was the budget

    @property
    def remaining(self) -> int:
        """Calls without an answer."""
        return self.planned - self.answered


def default_deployments(config: Config) -> tuple[Deployment, ...]:
    """Give the deployments that are probed unless some are named: all but those that only serve a judge."""
    routed = {one.name for route in config.routes for one in route.deployments}
    judging = {one.deployment for one in config.judges} - routed
    return tuple(one for one in config.deployments if one.name not in judging)


@dataclass(frozen=True, kw_only=True, slots=True)
class Runner:
    """What plans are run with."""

    engine: AsyncEngine
    config: Config
    access: GatewayAccess
    patience: Patience = field(default_factory=Patience)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def run(
        self,
        planned: Planned,
        deployments: Iterable[Deployment],
        *,
        limits: Limits = Limits(),
        share: float = SHARE,
        on_progress: OnProgress = lambda *_: None,
    ) -> tuple[Ended, ...]:
        """Send what is still unanswered of a plan to these deployments, all of them at once.

        Raises
        ------
        UsageError
            Another process is sending this plan, a deployment names no model, or the gateway refuses probes.
        AuditError
            The gateway does not answer.
        InputError
            A statement is stored with other words.
        StoreUnavailable
            The store does not answer, or what the gateway holds does not reach it.
        """
        chosen = tuple(deployments)
        targets = [target_of(self.config, one, share) for one in chosen]
        async with open_session(self.engine, self.access, planned.plan.id, targets, self.patience) as session:
            await self._store(planned, [one.name for one in chosen])
            before = await self._answered(planned, chosen)
            purse, habits = await self._means(planned, limits)
            told = {name: _Progress(name, len(done), planned.instances, on_progress) for name, done in before.items()}
            calls = [(target, _outgoing(planned, before[target.deployment], target, habits)) for target in targets]
            tallies = await session.send(calls, purse, lambda name: told[name].step())
        async with reading(self.engine) as connection:
            after = await count_calls(connection, planned.plan.id)
        return tuple(
            ended_of(name, planned.instances, len(before[name]), after[name].answered, tally)
            for name, tally in tallies.items()
        )

    async def affordable(
        self, planned: Planned, deployments: Iterable[Deployment], limits: Limits
    ) -> tuple[Deployment, ...]:
        """Give those of the deployments that have a call without an answer, and whose next call the limits hold."""
        chosen = tuple(deployments)
        answered = await self._answered(planned, chosen)
        purse, habits = await self._means(planned, limits)
        found = []
        for one in chosen:
            target = target_of(self.config, one, SHARE)
            call = next(_outgoing(planned, answered[one.name], target, habits), None)
            if call is not None and purse.refuses(call.usd) is None:
                found.append(one)
        return tuple(found)

    async def _store(self, planned: Planned, deployments: list[str]) -> None:
        """Store the plan, and the calls of those who joined it now, or whose plan has more of them by now."""
        records = {one.id: record_of(one) for one in planned.statements}
        async with reading(self.engine) as connection:
            stored = await count_calls(connection, planned.plan.id)
            fewer = [name for name in deployments if stored.get(name, Count()).planned < planned.instances]
            calls = chain.from_iterable(planned.calls(name) for name in fewer)
            await add_plan(connection, planned.plan, records, calls, self.now())

    async def _answered(self, planned: Planned, deployments: tuple[Deployment, ...]) -> dict[str, set[int]]:
        async with reading(self.engine) as connection:
            return {one.name: await answered_positions(connection, planned.plan.id, one.name) for one in deployments}

    async def _means(self, planned: Planned, limits: Limits) -> tuple[Purse, Habits]:
        """Read what the plan has cost so far, whoever was asked, and what an answer takes."""
        async with reading(self.engine) as connection:
            spent = await read_spent(connection, planned.plan.id)
            habits = await read_habits(connection)
        return purse_of(limits, self.config.deployments, spent), habits


class _Progress:
    """Counts the ended calls of one deployment."""

    def __init__(self, deployment: str, done: int, planned: int, on_progress: OnProgress) -> None:
        self._deployment = deployment
        self._done = done
        self._planned = planned
        self._on_progress = on_progress
        on_progress(deployment, done, planned)

    def step(self) -> None:
        self._done += 1
        self._on_progress(self._deployment, self._done, self._planned)


def purse_of(limits: Limits, deployments: Iterable[Deployment], spent: Mapping[str, Spent]) -> Purse:
    """Open a plan's purse, less all that was spent on it; ``deployments`` say what their calls cost."""
    return Purse(
        calls_limit=limits.calls,
        usd_limit=limits.usd,
        calls=sum(one.calls for one in spent.values()),
        usd=sum(usd_of(one, spent[one.name]) for one in deployments if one.name in spent),
    )


def usd_of(deployment: Deployment, spent: Spent) -> float:
    """Price what a deployment was sent; 0 where it declares no price."""
    used = Usage(prompt=spent.prompt_tokens, completion=spent.completion_tokens)
    return used.price_at(deployment) or 0.0


def _outgoing(planned: Planned, answered: set[int], target: Target, habits: Habits) -> Iterator[Outgoing]:
    """Put the calls without an answer together, one after the other as they are sent."""
    for call in planned.calls(target.deployment):
        if call.position in answered:
            continue
        item = planned.item(call.position)
        usage = call_usage(item, habit_of(habits, target.deployment, kind_of(item)))
        yield Outgoing(ref=call.ref, messages=item.messages, usd=target.price(usage.prompt, usage.completion))


def ended_of(name: str, planned: int, before: int, after: int, tally: Tally) -> Ended:
    """Say what came of a plan at one deployment, of which so many calls were answered before and are after."""
    return Ended(
        deployment=name,
        planned=planned,
        before=before,
        sent=tally.sent,
        answered=after,
        failed=dict(sorted(tally.failed.items())),
        stopped=tally.stopped,
        budget_ended=tally.budget_ended,
    )
