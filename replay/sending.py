"""Forecast the cost of a replay's open calls and send them through the gateway.

``auditor.probes`` has the sender: a share of a deployment's concurrency, pauses on 429, retries. Here each call names
its parent. Answered calls are read from the store only, after the gateway has shipped its spool, so that a second run
sends only the missing calls.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.access import GatewayAccess
from auditor.config import Config, Deployment
from auditor.config.audits import LEXICON
from auditor.domain.exchange import Origin
from auditor.probes.forecast import SHARE, VOTE, CallTokens, call_usage, judge_deployments
from auditor.probes.plan import PlanItem
from auditor.probes.run import RunLimits
from auditor.probes.send import CallTarget, Outgoing, RunBudget
from auditor.probes.session import open_session, target_of
from auditor.store.engine import transaction
from auditor.work import Work
from replay import store
from replay.calls import Call, RewriteContext, asks_statement, request_body, template_of
from replay.coding import planned_coder
from replay.plan import PreparedReplay
from replay.progress import OnProgress, ProgressCounter
from replay.store import read_answered

#: Assumed characters per token, and tokens of an answer, if the usage of a client's request is unknown.
_CHARACTERS: Final = 4
_ANSWER: Final = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class CallCost:
    """The remaining calls to a deployment; ``usd`` is ``None`` if it declares no price."""

    deployment: str
    calls: int
    usage: CallTokens
    usd: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SendResult:
    """The result of sending."""

    answered: Mapping[str, UUID]  #: the exchange that counts for each answered call
    stopped: Mapping[str, str]  #: the reason why the rest was not sent, by deployment
    budget_ended: bool  #: whether that reason was the budget for all of them


def usage_of(call: Call, request: bytes | None) -> CallTokens:
    """Forecast the tokens of one call; a client's own request is assumed to use as many as the first time."""
    parent = call.parent
    if asks_statement(parent, call.format):
        assert parent.statement is not None
        return call_usage(PlanItem(statement=parent.statement, template=template_of(parent, call.format)))
    return CallTokens(
        prompt=parent.prompt_tokens or len(request or b"") // _CHARACTERS,
        completion=parent.completion_tokens or _ANSWER,
    )


def forecast_calls(calls: Iterable[Call], requests: Mapping[UUID, bytes], config: Config) -> tuple[CallCost, ...]:
    """Forecast the tokens and cost of these calls, by deployment."""
    declared = {deployment.name: deployment for deployment in config.deployments}
    usages: dict[str, list[CallTokens]] = defaultdict(list)
    for call in calls:
        usages[call.deployment].append(usage_of(call, requests.get(call.parent.id)))
    return tuple(
        _cost(
            declared[name],
            len(each),
            CallTokens(
                prompt=sum(tokens.prompt for tokens in each), completion=sum(tokens.completion for tokens in each)
            ),
        )
        for name, each in sorted(usages.items())
    )


def forecast_judging(answers: int, judges: Sequence[str], config: Config) -> tuple[CallCost, ...]:
    """Forecast the cost of judging this number of answers, by the deployment of each judge."""
    deployments = judge_deployments(config)
    usage = CallTokens(prompt=VOTE.prompt * answers, completion=VOTE.completion * answers)
    return tuple(_cost(deployments[judge], answers, usage) for judge in judges if judge in deployments and answers)


def _cost(deployment: Deployment, calls: int, usage: CallTokens) -> CallCost:
    return CallCost(deployment=deployment.name, calls=calls, usage=usage, usd=usage.price_at(deployment))


@dataclass(frozen=True, kw_only=True, slots=True)
class SendOptions:
    """The inputs of calls, and the limits of this run."""

    requests: Mapping[UUID, bytes]  #: the parents' own
    context: RewriteContext
    limits: RunLimits
    concurrency: int | None  #: calls in flight to each deployment; ``None``: a tenth of its declared concurrency


async def send_calls(
    engine: AsyncEngine,
    config: Config,
    access: GatewayAccess,
    replay_id: str,
    calls: Sequence[Call],
    sending: SendOptions,
    on_end: Callable[[], None],
) -> SendResult:
    """Send the unanswered calls, to all deployments in parallel.

    Raises
    ------
    UsageError
        Another process is sending this replay, or the gateway refuses it.
    AuditError
        The gateway does not answer, or its spool does not reach the store.
    """
    names = {call.deployment for call in calls}
    targets = {
        deployment.name: _target(config, deployment, sending.concurrency)
        for deployment in config.deployments
        if deployment.name in names
    }
    budget = RunBudget(calls_limit=sending.limits.calls, usd_limit=sending.limits.usd)
    refs = [call.ref for call in calls]
    async with open_session(engine, access, replay_id, targets.values()) as session:
        async with transaction(engine) as connection:
            before = await read_answered(connection, refs)
        waiting = [call for call in calls if call.ref not in before]
        outgoing = [(target, _outgoing(waiting, target, sending)) for target in targets.values()]
        tallies = await session.send(outgoing, budget, lambda _: on_end())
    async with transaction(engine) as connection:
        answered = await read_answered(connection, refs)
    stopped = {name: tally for name, tally in tallies.items() if tally.stopped is not None}
    return SendResult(
        answered=answered,
        stopped={name: tally.stopped or "" for name, tally in stopped.items()},
        budget_ended=bool(stopped) and all(tally.budget_ended for tally in stopped.values()),
    )


def _target(config: Config, deployment: Deployment, concurrency: int | None) -> CallTarget:
    target = target_of(config, deployment, SHARE, Origin.REPLAY)
    if concurrency is None:
        return target
    return replace(target, in_flight=min(concurrency, deployment.concurrency or concurrency))


def _outgoing(calls: Iterable[Call], target: CallTarget, sending: SendOptions) -> Iterator[Outgoing]:
    """Build one deployment's calls, each when it is sent."""
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
            members=request_body(call, request, sending.context),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayCost:
    """The remaining calls, and the answers to judge."""

    calls: tuple[CallCost, ...]
    judging: tuple[CallCost, ...]

    @property
    def nothing(self) -> bool:
        """Whether the cost is zero."""
        return not self.calls and not self.judging


async def forecast_cost(work: Work, prepared: PreparedReplay) -> ReplayCost:
    """Forecast the remaining work: unanswered calls, and answers that judges have not read."""
    waiting = [call for call in prepared.calls if call.ref not in prepared.answered]
    coded = 0
    coder = planned_coder(work)
    ids = [*prepared.parents, *prepared.answered.values()]
    async with transaction(work.engine) as connection:
        for coder_id in {coder.id, *(entry.coder.id for entry in work.coders.values())}:
            for stored_id in (coder_id, f"{coder_id}/replay"):
                coded += len(await store.read_codings(connection, stored_id, ids))
    judges = [name for name in work.config.panel.judges if name != LEXICON]
    unread = len(ids) - coded + len(waiting)
    return ReplayCost(
        calls=forecast_calls(waiting, prepared.requests, work.config),
        judging=forecast_judging(max(unread, 0), judges, work.config),
    )


async def send(
    work: Work,
    prepared: PreparedReplay,
    access: GatewayAccess,
    on_progress: OnProgress,
    limits: RunLimits,
    concurrency: int | None = None,
) -> SendResult:
    """Send the unanswered calls within this run's limits. ``concurrency`` applies to each deployment."""
    done = ProgressCounter("asking", len(prepared.calls), on_progress)
    done.add(len(prepared.answered))
    sending = SendOptions(requests=prepared.requests, context=prepared.context, limits=limits, concurrency=concurrency)
    return await send_calls(work.engine, work.config, access, prepared.id, prepared.calls, sending, lambda: done.add(1))


def cost_json(prepared: PreparedReplay, cost: ReplayCost) -> dict[str, Any]:
    """Return what a replay would ask and what that costs, as JSON values."""
    return {
        "replay": prepared.id,
        "resumed": prepared.resumed,
        "parents": len(prepared.parents),
        "calls": len(prepared.calls),
        "answered": len(prepared.answered),
        "left_out": dict(prepared.left_out),
        "not_asked": {each.key: reasons for each, reasons in prepared.count_blocked().items()},
        "to_send": [_cost_json(call_cost) for call_cost in cost.calls],
        "to_judge": [_cost_json(call_cost) for call_cost in cost.judging],
    }


def _cost_json(cost: CallCost) -> dict[str, Any]:
    return {
        "deployment": cost.deployment,
        "calls": cost.calls,
        "prompt_tokens": cost.usage.prompt,
        "completion_tokens": cost.usage.completion,
        "usd": cost.usd,
    }
