"""Run a plan: store it, send the unanswered calls, and return the result. Running it again resumes it.

``plan`` makes the plan, and ``session`` sends the calls that have no answer in the store.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.access import GatewayAccess
from auditor.config import Config, Deployment
from auditor.instrument.pool import record_of
from auditor.probes.forecast import SHARE, CallTokens, call_usage, kind_of, stats_of
from auditor.probes.plan import Planned
from auditor.probes.send import CallTarget, Outgoing, Patience, RunBudget, Tally
from auditor.probes.session import open_session, target_of
from auditor.store.engine import transaction
from auditor.store.plans import (
    AnswerStatsByKind,
    Count,
    Spent,
    add_plan,
    answered_positions,
    count_calls,
    read_answer_stats,
    read_spent,
)

#: Gets the deployment, the number of its ended calls, and the number of all.
OnProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLimits:
    """The limits of one plan, including earlier runs. ``None`` means no limit."""

    calls: int | None = None
    usd: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """The result of a plan at one deployment."""

    deployment: str
    planned: int
    before: int  #: answered before this run
    sent: int  #: requests of this run, including repeated ones
    answered: int  #: calls that are answered now
    failed: Mapping[str, int] = field(default_factory=dict)
    stopped: str | None = None  #: why the rest was not sent
    budget_ended: bool = False  #: whether that reason was the budget

    @property
    def remaining(self) -> int:
        """Calls without an answer."""
        return self.planned - self.answered


def default_deployments(config: Config) -> tuple[Deployment, ...]:
    """Return the deployments that are probed by default: all except those that only serve a judge."""
    routed = {entry.name for route in config.routes for entry in route.deployments}
    judging = {judge.deployment for judge in config.judges} - routed
    return tuple(deployment for deployment in config.deployments if deployment.name not in judging)


@dataclass(frozen=True, kw_only=True, slots=True)
class Runner:
    """The dependencies and settings with which plans are run."""

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
        limits: RunLimits = RunLimits(),
        share: float = SHARE,
        on_progress: OnProgress = lambda *_: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> tuple[RunResult, ...]:
        """Send the unanswered calls of a plan to these deployments in parallel, until ``stop`` says to end.

        Raises
        ------
        UsageError
            Another process is sending this plan, a deployment names no model, or the gateway refuses probes.
        AuditError
            The gateway does not answer.
        InputError
            A statement is stored with another text.
        StoreUnavailable
            The store does not answer, or the gateway's spool does not reach it.
        """
        chosen = tuple(deployments)
        targets = [target_of(self.config, deployment, share) for deployment in chosen]
        async with open_session(self.engine, self.access, planned.plan.id, targets, self.patience) as session:
            await store_plan(self.engine, planned, [deployment.name for deployment in chosen], self.now())
            before = await answered_calls(self.engine, planned, chosen)
            budget, stats = await self._means(planned, limits)
            budget.stop = stop
            progress = {
                name: _Progress(name, len(done), planned.instances, on_progress) for name, done in before.items()
            }
            calls = [(target, _outgoing(planned, before[target.deployment], target, stats)) for target in targets]
            tallies = await session.send(calls, budget, lambda name: progress[name].step())
        async with transaction(self.engine) as connection:
            after = await count_calls(connection, planned.plan.id)
        return tuple(
            ended_of(name, planned.instances, len(before[name]), after[name].answered, tally)
            for name, tally in tallies.items()
        )

    async def affordable(
        self, planned: Planned, deployments: Iterable[Deployment], limits: RunLimits
    ) -> tuple[Deployment, ...]:
        """Return the deployments that have an unanswered call and a budget for it."""
        chosen = tuple(deployments)
        answered = await answered_calls(self.engine, planned, chosen)
        budget, stats = await self._means(planned, limits)
        affordable = []
        for deployment in chosen:
            target = target_of(self.config, deployment, SHARE)
            call = next(_outgoing(planned, answered[deployment.name], target, stats), None)
            if call is not None and budget.refuses(call.usd) is None:
                affordable.append(deployment)
        return tuple(affordable)

    async def _means(self, planned: Planned, limits: RunLimits) -> tuple[RunBudget, AnswerStatsByKind]:
        """Read the cost of the plan so far and the statistics of answers."""
        async with transaction(self.engine) as connection:
            spent = await read_spent(connection, planned.plan.id)
            stats = await read_answer_stats(connection)
        return open_budget(limits, self.config.deployments, spent), stats


async def store_plan(engine: AsyncEngine, planned: Planned, deployments: Iterable[str], now: datetime) -> None:
    """Store a plan and its new calls to these deployments.

    Raises
    ------
    InputError
        A statement is stored with another text.
    StoreUnavailable
        The store does not answer.
    """
    records = {statement.id: record_of(statement) for statement in planned.statements}
    async with transaction(engine) as connection:
        stored = await count_calls(connection, planned.plan.id)
        fewer = [name for name in deployments if stored.get(name, Count()).planned < planned.instances]
        calls = chain.from_iterable(planned.calls(name) for name in fewer)
        await add_plan(connection, planned.plan, records, calls, now)


async def answered_calls(
    engine: AsyncEngine, planned: Planned, deployments: Iterable[Deployment]
) -> dict[str, set[int]]:
    """Return the positions of a plan's answered calls, by deployment."""
    async with transaction(engine) as connection:
        return {
            deployment.name: await answered_positions(connection, planned.plan.id, deployment.name)
            for deployment in deployments
        }


class _Progress:
    """A counter of the ended calls of one deployment."""

    def __init__(self, deployment: str, done: int, planned: int, on_progress: OnProgress) -> None:
        self._deployment = deployment
        self._done = done
        self._planned = planned
        self._on_progress = on_progress
        on_progress(deployment, done, planned)

    def step(self) -> None:
        self._done += 1
        self._on_progress(self._deployment, self._done, self._planned)


def open_budget(limits: RunLimits, deployments: Iterable[Deployment], spent: Mapping[str, Spent]) -> RunBudget:
    """Return a plan's budget, less what it has spent; ``deployments`` have the prices."""
    return RunBudget(
        calls_limit=limits.calls,
        usd_limit=limits.usd,
        calls=sum(usage.calls for usage in spent.values()),
        usd=sum(usd_of(deployment, spent[deployment.name]) for deployment in deployments if deployment.name in spent),
    )


def usd_of(deployment: Deployment, spent: Spent) -> float:
    """Return the cost in USD of what a plan has used at a deployment; 0 if it declares no price."""
    used = CallTokens(prompt=spent.prompt_tokens, completion=spent.completion_tokens)
    return used.price_at(deployment) or 0.0


def _outgoing(planned: Planned, answered: set[int], target: CallTarget, stats: AnswerStatsByKind) -> Iterator[Outgoing]:
    """Yield the unanswered calls, each built when it is sent."""
    for call in planned.calls(target.deployment):
        if call.position in answered:
            continue
        item = planned.item(call.position)
        usage = call_usage(item, stats_of(stats, target.deployment, kind_of(item)))
        yield Outgoing(ref=call.ref, messages=item.messages, usd=target.price(usage.prompt, usage.completion))


def ended_of(name: str, planned: int, before: int, after: int, tally: Tally) -> RunResult:
    """Return the result of a plan at one deployment, from the answered calls before and after."""
    return RunResult(
        deployment=name,
        planned=planned,
        before=before,
        sent=tally.sent,
        answered=after,
        failed=dict(sorted(tally.failed.items())),
        stopped=tally.stopped,
        budget_ended=tally.budget_ended,
    )
