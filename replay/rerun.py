"""Sends a replay's calls through the gateway's door, like a plan of probes but that each names its parent.

``auditor.probes`` has the sender: a share of a deployment's concurrency, pauses on 429, retries. Which calls are
answered is asked of the store alone, after the gateway has shipped what it holds, so that running a replay again sends
only what is missing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.access import GatewayAccess
from auditor.config import Config, Deployment
from auditor.domain.exchange import Origin
from auditor.probes.estimate import SHARE, Usage, call_usage
from auditor.probes.plan import Item
from auditor.probes.purse import Purse
from auditor.probes.run import Limits
from auditor.probes.send import Outgoing, Target
from auditor.probes.session import open_session, target_of
from auditor.store.engine import reading
from replay.rewriting.calls import Call, body_of, puts_statement, template_of
from replay.rewriting.own_request import Means
from replay.stored import read_answered

#: Tokens of a judge's question beside the answer it reads, and of its verdict: a rule of thumb.
_RUBRIC: Final = 700
_VERDICT: Final = 60
#: Characters a token, and tokens of an answer, where nobody has told how many a client's request takes.
_CHARACTERS: Final = 4
_ANSWER: Final = 300


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
    stopped: Mapping[str, str]  #: why the rest was not sent, by deployment
    budget_ended: bool  #: and that it was the budget, for all of them


def usage_of(call: Call, request: bytes | None) -> Usage:
    """Estimate the tokens of one call; a client's own request takes about what it took."""
    parent = call.parent
    if puts_statement(parent, call.format):
        assert parent.statement is not None
        return call_usage(Item(statement=parent.statement, template=template_of(parent, call.format)))
    return Usage(
        prompt=parent.prompt_tokens or len(request or b"") // _CHARACTERS,
        completion=parent.completion_tokens or _ANSWER,
    )


def estimate_calls(calls: Iterable[Call], requests: Mapping[UUID, bytes], config: Config) -> tuple[Cost, ...]:
    """Estimate what these calls will take, by deployment."""
    declared = {one.name: one for one in config.deployments}
    usages: dict[str, list[Usage]] = defaultdict(list)
    for call in calls:
        usages[call.deployment].append(usage_of(call, requests.get(call.parent.id)))
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Sending:
    """How calls are sent: from what they are made, and within which limits, which hold for this run alone."""

    requests: Mapping[UUID, bytes]  #: the parents' own
    means: Means
    limits: Limits
    concurrency: int | None  #: calls in flight to each deployment; ``None``: a tenth of what it declares


async def send_calls(
    engine: AsyncEngine,
    config: Config,
    access: GatewayAccess,
    replay_id: str,
    calls: Sequence[Call],
    sending: Sending,
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
    names = {call.deployment for call in calls}
    targets = {one.name: _target(config, one, sending.concurrency) for one in config.deployments if one.name in names}
    purse = Purse(calls_limit=sending.limits.calls, usd_limit=sending.limits.usd)
    refs = [call.ref for call in calls]
    async with open_session(engine, access, replay_id, targets.values()) as session:
        async with reading(engine) as connection:
            before = await read_answered(connection, refs)
        waiting = [call for call in calls if call.ref not in before]
        outgoing = [(target, _outgoing(waiting, target, sending)) for target in targets.values()]
        tallies = await session.send(outgoing, purse, lambda _: on_end())
    async with reading(engine) as connection:
        answered = await read_answered(connection, refs)
    stopped = {name: tally for name, tally in tallies.items() if tally.stopped is not None}
    return Sent(
        answered=answered,
        stopped={name: tally.stopped or "" for name, tally in stopped.items()},
        budget_ended=bool(stopped) and all(tally.budget_ended for tally in stopped.values()),
    )


def _target(config: Config, deployment: Deployment, concurrency: int | None) -> Target:
    target = target_of(config, deployment, SHARE, Origin.REPLAY)
    if concurrency is None:
        return target
    return replace(target, in_flight=min(concurrency, deployment.concurrency or concurrency))


def _outgoing(calls: Iterable[Call], target: Target, sending: Sending) -> Iterator[Outgoing]:
    """Put one deployment's calls together, each when it is its turn."""
    for call in calls:
        if call.deployment != target.deployment:
            continue
        request = sending.requests.get(call.parent.id)
        usage = usage_of(call, request)
        yield Outgoing(
            ref=call.ref,
            messages=(),  # they are among the members
            usd=target.price(usage.prompt, usage.completion),
            parent=call.parent.id,
            members=body_of(call, request, sending.means),
        )
