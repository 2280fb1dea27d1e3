"""Mirror clients' prompts to the peers of routes that allow it, so that deviation is known on real traffic.

Mirroring reads the prompts from the store afterwards; the gateway's workers are not involved. A day's budget becomes
available hour by hour, so that mirrored prompts are spread over the day. A hash of their ids chooses among the waiting
prompts.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

import orjson

from auditor.config.routes import Route
from auditor.domain.exchange import Origin
from auditor.domain.ids import floor_id
from auditor.domain.sampling import rank
from auditor.errors import AuditError
from auditor.probes.forecast import SHARE
from auditor.probes.run import RunLimits, Runner, open_budget
from auditor.probes.send import CallTarget, Outgoing, RunBudget
from auditor.probes.session import PlanHeld, open_session, target_of
from auditor.probes.timed import resting
from auditor.store.engine import transaction
from auditor.store.mirroring import (
    Prompt,
    already_mirrored,
    fresh_prompts,
    pass_over,
    read_mirroring_spent,
    read_prompts,
)

#: The endpoint whose requests any deployment can be asked with.
_ENDPOINT: Final = "chat/completions"
_ROLES: Final = frozenset({"system", "developer", "user", "assistant"})
#: Request members that let a model use tools.
_TOOLS: Final = ("tools", "functions", "tool_choice", "function_call", "web_search_options", "mcp_servers")
#: Values of ``modalities`` that ask for text only.
_WORDS: Final[tuple[object, ...]] = (None, [], ["text"])
#: Request members that are not sent to a peer: delivery, the caller's identity, storage, several answers.
_STAY: Final = frozenset(
    {
        *("model", "stream", "stream_options", "n", "logprobs", "top_logprobs", "modalities", "service_tier"),
        *("user", "safety_identifier", "metadata", "store", "prompt_cache_key", "prompt_cache_retention"),
        *_TOOLS,
    }
)


class MirrorRefusal(StrEnum):
    """The reason why a prompt is not mirrored."""

    NOT_CAPTURED = "not_captured"  #: the route keeps no content, or the content has been deleted
    REDACTED = "redacted"  #: part of it was redacted
    TRUNCATED = "truncated"  #: the stored copy ends at the capture limit
    NOT_A_CHAT = "not_a_chat"
    UNREADABLE = "unreadable"  #: no JSON object with messages
    TOOLS = "tools"
    NOT_TEXT = "not_text"  #: pictures, sound, files


def mirror_of(prompt: Prompt) -> Mapping[str, Any] | MirrorRefusal:
    """Return the members of the request to a peer, except the model, or the reason why there is none.

    Examples
    --------
    >>> from uuid import UUID
    >>> asked = b'{"model": "m", "messages": [{"role": "user", "content": "Why?"}], "temperature": 0, "stream": true}'
    >>> like = dict(id=UUID(int=1), deployment="d", endpoint="chat/completions", truncated=False, redacted=False,
    ...             prompt_tokens=None, completion_tokens=None)
    >>> mirror_of(Prompt(**like, captured=True, request=asked))
    {'messages': [{'role': 'user', 'content': 'Why?'}], 'temperature': 0}
    >>> str(mirror_of(Prompt(**like, captured=False, request=None)))
    'not_captured'
    """
    facts = (
        (MirrorRefusal.NOT_CAPTURED, not prompt.captured or prompt.request is None),
        (MirrorRefusal.REDACTED, prompt.redacted),
        (MirrorRefusal.TRUNCATED, prompt.truncated),
        (MirrorRefusal.NOT_A_CHAT, prompt.endpoint != _ENDPOINT),
    )
    for why, holds in facts:
        if holds:
            return why
    request = _read(prompt.request)
    if request is None:
        return MirrorRefusal.UNREADABLE
    return _why_not(request) or {name: value for name, value in request.items() if name not in _STAY}


def _read(body: bytes | None) -> Mapping[str, Any] | None:
    try:
        request = orjson.loads(body or b"")
    except orjson.JSONDecodeError:
        return None
    messages = request.get("messages") if isinstance(request, dict) else None
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        return None
    return dict(request)


def _why_not(request: Mapping[str, Any]) -> MirrorRefusal | None:
    messages = request["messages"]
    if any(request.get(name) for name in _TOOLS) or any(_is_of_tools(message) for message in messages):
        return MirrorRefusal.TOOLS
    if request.get("modalities") not in _WORDS or request.get("audio"):
        return MirrorRefusal.NOT_TEXT
    return None if all(_is_text(message.get("content")) for message in messages) else MirrorRefusal.NOT_TEXT


def _is_of_tools(message: Mapping[str, Any]) -> bool:
    role = message.get("role")
    by_tool = not isinstance(role, str) or role not in _ROLES
    return by_tool or bool(message.get("tool_calls") or message.get("function_call"))


def _is_text(content: object) -> bool:
    if isinstance(content, str):
        return True
    return isinstance(content, list) and bool(content) and all(map(_is_text_part, content))


def _is_text_part(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


log = logging.getLogger(__name__)

#: Prompts read at a time, and per search of a route.
_AT_ONCE: Final = 100
_MOST: Final = 500
_HOURS: Final = 24
#: Tokens assumed for a prompt and an answer of unknown length.
_UNTOLD: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirrored:
    """The result of mirroring one route."""

    route: str
    prompts: int = 0  #: sent to some peer
    answered: int = 0  #: calls
    left_out: Mapping[str, int] = field(default_factory=dict)  #: prompts that are not mirrored, by reason
    failed: Mapping[str, int] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)  #: why sending stopped, by peer


def mirror_ref(parent: UUID, peer: str) -> str:
    """Return the id of the call that sends a client's prompt to a peer: at most 64 characters, always the same.

    Examples
    --------
    >>> mirror_ref(UUID(int=1), "claude")
    'mirror.00000000000000000000000000000001.3e9017c5ccba1528'
    """
    return f"mirror.{parent.hex}.{blake2b(peer.encode(), digest_size=8).hexdigest()}"


def budget_of(route: Route, now: datetime) -> RunLimits:
    """Return the part of a route's daily budget that is available by now, since midnight (UTC).

    Examples
    --------
    >>> route = Route(model="m", deployments=("d",), mirror={"budget": {"calls": 48, "usd": 2.4}})
    >>> limits = budget_of(route, datetime(2026, 3, 1, 11, 30))
    >>> limits.calls, round(limits.usd, 6)
    (24, 1.2)
    """
    share = (now.hour + 1) / _HOURS
    budget = route.mirror.budget
    return RunLimits(calls=int(budget.calls * share), usd=budget.usd * share)


async def mirror_due(runner: Runner) -> tuple[Mirrored, ...]:
    """Mirror the waiting prompts that may be mirrored now, one route after the other.

    May be called as often as wanted, by any number of processes: a route has one sender at a time.

    Raises
    ------
    AuditError
        A route's prompts could not be sent: the first of those; all were tried.
    """
    done: list[Mirrored] = []
    failures: list[AuditError] = []
    for route in runner.config.routes:
        if not route.peers:
            continue
        try:
            done.append(await _mirror(runner, route))
        except PlanHeld:
            continue
        except AuditError as error:
            failures.append(AuditError(f"{route.model}: {error}"))
    for mirrored in done:
        _tell(mirrored)
    if failures:
        raise failures[0]
    return tuple(done)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Waiting:
    """Waiting prompts in the order of mirroring, with the peers to ask and the number of calls in the budget."""

    prompts: Mapping[UUID, tuple[str, ...]]
    room: int
    budget: RunBudget


async def _mirror(runner: Runner, route: Route) -> Mirrored:
    waiting = await _find(runner, route)
    if not waiting.prompts or waiting.room < 1:
        return Mirrored(route=route.model)
    declared = {deployment.name: deployment for deployment in runner.config.deployments}
    names = sorted({name for peers in waiting.prompts.values() for name in peers})
    targets = {name: target_of(runner.config, declared[name], SHARE, Origin.PEER) for name in names}
    plan = f"mirror {route.model}"
    async with open_session(runner.engine, runner.access, plan, targets.values(), runner.patience) as session:
        waiting = await _find(runner, route)  # again: what was sent before is in the store now
        chosen, left_out = await _choose(runner, route, waiting)
        calls = [(target, list(_outgoing(target, waiting, chosen))) for target in targets.values()]
        tallies = await session.send(calls, waiting.budget)
    return Mirrored(
        route=route.model,
        prompts=len(chosen),
        answered=sum(tally.answered + len(tally.blocked) for tally in tallies.values()),
        left_out=Counter(left_out.values()),
        failed=sum((tally.failed for tally in tallies.values()), Counter()),
        stopped={name: tally.stopped for name, tally in tallies.items() if tally.stopped is not None},
    )


async def _find(runner: Runner, route: Route) -> _Waiting:
    now, peers = runner.now(), runner.config.mirrored(route)
    since = floor_id(now - timedelta(seconds=route.mirror.within))
    midnight = floor_id(now.replace(hour=0, minute=0, second=0, microsecond=0))
    async with transaction(runner.engine) as connection:
        fresh = await fresh_prompts(connection, route.model, since)
        mirrored = await already_mirrored(connection, peers, since)
        spent = await read_mirroring_spent(connection, route.model, midnight)
    willing = [name for name in peers if name not in resting(spent, now)]
    # A fallback's answer is not an answer of these deployments.
    deployments = {entry.name for entry in route.deployments}
    open_to = {key: _open_to(key, name, willing, mirrored) for key, name in fresh.items() if name in deployments}
    ordered = sorted(
        (key for key, names in open_to.items() if names), key=lambda key: rank(runner.config.seed, key.bytes)
    )
    limits = budget_of(route, now)
    budget = open_budget(limits, runner.config.deployments, spent)
    return _Waiting(
        prompts={key: open_to[key] for key in ordered}, room=(limits.calls or 0) - budget.calls, budget=budget
    )


def _open_to(
    key: UUID, answerer: str, willing: Iterable[str], mirrored: Collection[tuple[UUID, str]]
) -> tuple[str, ...]:
    """Return the peers that a prompt may still be sent to, without the deployment that answered the client."""
    return tuple(name for name in willing if name != answerer and (key, name) not in mirrored)


async def _choose(
    runner: Runner, route: Route, waiting: _Waiting
) -> tuple[dict[UUID, tuple[Prompt, Mapping[str, Any]]], dict[UUID, MirrorRefusal]]:
    """Choose as many prompts as the budget allows, each with all its calls; store and return the refusals."""
    chosen: dict[UUID, tuple[Prompt, Mapping[str, Any]]] = {}
    left_out: dict[UUID, MirrorRefusal] = {}
    room = waiting.room
    for ids in _batches(list(waiting.prompts)[:_MOST]):
        async with transaction(runner.engine) as connection:
            prompts = {prompt.id: prompt for prompt in await read_prompts(connection, ids)}
        for key in ids:
            request = mirror_of(prompts[key])
            if isinstance(request, MirrorRefusal):
                left_out[key] = request
            elif len(waiting.prompts[key]) <= room:
                chosen[key] = (prompts[key], request)
                room -= len(waiting.prompts[key])
        if room < 1:
            break
    async with transaction(runner.engine) as connection:
        await pass_over(connection, route.model, left_out, runner.now())
    return chosen, left_out


def _batches(ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    for start in range(0, len(ids), _AT_ONCE):
        yield ids[start : start + _AT_ONCE]


def _outgoing(
    target: CallTarget, waiting: _Waiting, chosen: Mapping[UUID, tuple[Prompt, Mapping[str, Any]]]
) -> Iterator[Outgoing]:
    for key, (prompt, request) in chosen.items():
        if target.deployment in waiting.prompts[key]:
            usd = target.price(prompt.prompt_tokens or _UNTOLD, prompt.completion_tokens or _UNTOLD)
            # The messages go as they came: a member of the request like the others.
            yield Outgoing(ref=mirror_ref(key, target.deployment), messages=(), usd=usd, parent=key, members=request)


def _tell(done: Mirrored) -> None:
    parts = [f"{done.prompts} prompts sent, {done.answered} answers"]
    parts += [f"{n} left out ({why})" for why, n in sorted(done.left_out.items())]
    parts += [f"{n} failed ({why})" for why, n in sorted(done.failed.items())]
    parts += [f"{name} stopped: {why}" for name, why in sorted(done.stopped.items())]
    if done.prompts or done.left_out:
        log.info("mirroring %s: %s", done.route, ", ".join(parts))
