"""Sends a replay's calls through the gateway's door, like a plan of probes but that each names its parent.

``auditor.probes`` has the sender: a share of a deployment's concurrency, pauses on 429, retries. Which calls are
answered is asked of the store alone, after the gateway has shipped what it holds, so that running a replay again sends
only what is missing.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.access import GatewayAccess
from auditor.config import Config, Deployment
from auditor.domain.condition import Task
from auditor.domain.exchange import Origin
from auditor.probes.estimate import SHARE, Usage, call_usage
from auditor.probes.plan import Item
from auditor.probes.purse import Purse
from auditor.probes.send import Outgoing, Target
from auditor.probes.session import open_session, target_of
from auditor.store.engine import reading
from replay.pick import Parent
from replay.rewrite import members_of, messages_of, template_of
from replay.stored import read_answered

#: Tokens of a judge's question beside the answer it reads, and of its verdict: a rule of thumb.
_RUBRIC: Final = 700
_VERDICT: Final = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One parent to be asked in one format."""

    ref: str
    parent: Parent
    task: Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What is still to be sent to a deployment; ``usd`` is ``None`` where it declares no price."""

    deployment: str
    calls: int
    usage: Usage
    usd: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """What came of sending."""

    answered: Mapping[str, UUID]  #: which exchange counts for each call that has its answer
    sent: int  #: requests of this run, repeated ones included
    failed: Mapping[str, int]
    stopped: Mapping[str, str]  #: why the rest was not sent, by deployment


def usage_of(call: Call) -> Usage:
    """Estimate the tokens of one call."""
    return call_usage(Item(statement=call.parent.statement, template=template_of(call.parent, call.task)))


def estimate_calls(calls: Iterable[Call], config: Config) -> tuple[Cost, ...]:
    """Estimate what these calls will take, by deployment."""
    declared = {one.name: one for one in config.deployments}
    usages: dict[str, list[Usage]] = defaultdict(list)
    for call in calls:
        usages[call.parent.deployment].append(usage_of(call))
    return tuple(_cost(declared[name], len(each), _total(each)) for name, each in sorted(usages.items()))


def estimate_judging(answers: int, judges: Sequence[str], config: Config) -> tuple[Cost, ...]:
    """Estimate what it takes to have these many answers read, by the deployment behind each judge."""
    behind = {judge.name: judge.deployment for judge in config.judges if judge.deployment is not None}
    declared = {one.name: one for one in config.deployments}
    usage = Usage(prompt=_RUBRIC * answers, completion=_VERDICT * answers)
    named = [declared[behind[judge]] for judge in judges if judge in behind]
    return tuple(_cost(deployment, answers, usage) for deployment in named if answers)


def _cost(deployment: Deployment, calls: int, usage: Usage) -> Cost:
    return Cost(deployment=deployment.name, calls=calls, usage=usage, usd=usage.price_at(deployment))


def _total(usages: Sequence[Usage]) -> Usage:
    return Usage(prompt=sum(one.prompt for one in usages), completion=sum(one.completion for one in usages))


async def send_calls(
    engine: AsyncEngine,
    config: Config,
    access: GatewayAccess,
    replay_id: str,
    calls: Sequence[Call],
    requests: Mapping[UUID, bytes],
    on_end: Callable[[], None],
) -> Sent:
    """Send the calls that have no answer yet, to all deployments at once.

    Raises
    ------
    UsageError
        Another process is sending this replay, or the gateway refuses it.
    AuditError
        The gateway does not answer, or what it holds does not reach the store.
    """
    declared = {one.name: one for one in config.deployments}
    names = sorted({call.parent.deployment for call in calls})
    targets = {name: target_of(config, declared[name], SHARE, Origin.REPLAY) for name in names}
    refs = [call.ref for call in calls]
    async with open_session(engine, access, replay_id, targets.values()) as session:
        async with reading(engine) as connection:
            before = await read_answered(connection, refs)
        waiting = _by_deployment((call for call in calls if call.ref not in before), targets, requests)
        tallies = await session.send(
            [(targets[name], rest) for name, rest in waiting.items()], Purse(), lambda _: on_end()
        )
    async with reading(engine) as connection:
        answered = await read_answered(connection, refs)
    return Sent(
        answered=answered,
        sent=sum(tally.sent for tally in tallies.values()),
        failed=sum((tally.failed for tally in tallies.values()), Counter()),
        stopped={name: tally.stopped for name, tally in tallies.items() if tally.stopped is not None},
    )


def _by_deployment(
    calls: Iterable[Call], targets: Mapping[str, Target], requests: Mapping[UUID, bytes]
) -> Mapping[str, list[Outgoing]]:
    waiting: dict[str, list[Outgoing]] = defaultdict(list)
    for call in calls:
        parent, usage = call.parent, usage_of(call)
        members: dict[str, Any] = members_of(parent, requests.get(parent.id))
        waiting[parent.deployment].append(
            Outgoing(
                ref=call.ref,
                messages=messages_of(parent, call.task),
                usd=targets[parent.deployment].price(usage.prompt, usage.completion),
                parent=parent.id,
                members=members,
            )
        )
    return waiting
