"""Mirroring: clients' prompts of routes that allow it go to the route's peers; deviation is then known on real traffic.

All of it happens afterwards and from the store: what is still to be mirrored is found there, and the gateway's workers
know nothing of it. A day's budget is let out by the hour, so that what is mirrored is spread over the day; among the
prompts that wait, a hash of their ids decides.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from auditor.config.models import Route
from auditor.domain.exchange import Origin
from auditor.domain.ids import floor_id
from auditor.domain.sampling import rank
from auditor.errors import AuditError
from auditor.peers.mirrored import Why, mirror_of
from auditor.probes.estimate import SHARE
from auditor.probes.purse import Purse
from auditor.probes.run import Limits, Runner, purse_of
from auditor.probes.send import Outgoing, Target
from auditor.probes.session import PlanHeld, open_session, target_of
from auditor.probes.timed import resting
from auditor.store.engine import reading
from auditor.store.mirroring import (
    Prompt,
    asked_already,
    fresh_prompts,
    pass_over,
    read_mirroring_spent,
    read_prompts,
)

log = logging.getLogger(__name__)

#: Prompts that are read at a time, and in one look at a route.
_AT_ONCE: Final = 100
_MOST: Final = 500
_HOURS: Final = 24
#: Tokens that are set aside for a prompt and an answer whose own were not told.
_UNTOLD: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirrored:
    """What came of looking at one route."""

    route: str
    prompts: int = 0  #: sent to some peer
    answered: int = 0  #: calls
    left_out: Mapping[str, int] = field(default_factory=dict)  #: prompts that are not mirrored, by reason
    failed: Mapping[str, int] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)  #: why the rest was not sent, by peer


def mirror_ref(parent: UUID, peer: str) -> str:
    """Name the call that asks a peer what a client asked: at most 64 characters, and always the same.

    Examples
    --------
    >>> mirror_ref(UUID(int=1), "claude")
    'mirror.00000000000000000000000000000001.3e9017c5ccba1528'
    """
    return f"mirror.{parent.hex}.{blake2b(peer.encode(), digest_size=8).hexdigest()}"


def budget_of(route: Route, now: datetime) -> Limits:
    """Give what a route's mirroring may have used by now, since midnight (UTC).

    Examples
    --------
    >>> route = Route(model="m", deployments=("d",), mirror={"budget": {"calls": 48, "usd": 2.4}})
    >>> limits = budget_of(route, datetime(2026, 3, 1, 11, 30))
    >>> limits.calls, round(limits.usd, 6)
    (24, 1.2)
    """
    share = (now.hour + 1) / _HOURS
    budget = route.mirror.budget
    return Limits(calls=int(budget.calls * share), usd=budget.usd * share)


async def mirror_due(runner: Runner) -> tuple[Mirrored, ...]:
    """Mirror what waits and may be mirrored now, one route after the other.

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
    for one in done:
        _tell(one)
    if failures:
        raise failures[0]
    return tuple(done)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Waiting:
    """Prompts in the order they may be mirrored in, with the peers to be asked, and the calls there is room for."""

    prompts: Mapping[UUID, tuple[str, ...]]
    room: int
    purse: Purse


async def _mirror(runner: Runner, route: Route) -> Mirrored:
    waiting = await _find(runner, route)
    if not waiting.prompts or waiting.room < 1:
        return Mirrored(route=route.model)
    declared = {one.name: one for one in runner.config.deployments}
    names = sorted({name for peers in waiting.prompts.values() for name in peers})
    targets = {name: target_of(runner.config, declared[name], SHARE, Origin.PEER) for name in names}
    plan = f"mirror {route.model}"
    async with open_session(runner.engine, runner.access, plan, targets.values(), runner.patience) as session:
        waiting = await _find(runner, route)  # again: what was sent before is in the store now
        chosen, left_out = await _choose(runner, route, waiting)
        calls = [(target, list(_outgoing(target, waiting, chosen))) for target in targets.values()]
        tallies = await session.send(calls, waiting.purse)
    return Mirrored(
        route=route.model,
        prompts=len(chosen),
        answered=sum(one.answered + len(one.blocked) for one in tallies.values()),
        left_out=Counter(left_out.values()),
        failed=sum((one.failed for one in tallies.values()), Counter()),
        stopped={name: one.stopped for name, one in tallies.items() if one.stopped is not None},
    )


async def _find(runner: Runner, route: Route) -> _Waiting:
    now, peers = runner.now(), runner.config.mirrored(route)
    since = floor_id(now - timedelta(seconds=route.mirror.within))
    midnight = floor_id(now.replace(hour=0, minute=0, second=0, microsecond=0))
    async with reading(runner.engine) as connection:
        fresh = await fresh_prompts(connection, route.model, since)
        asked = await asked_already(connection, peers, since)
        spent = await read_mirroring_spent(connection, route.model, midnight)
    willing = [name for name in peers if name not in resting(spent, now)]
    own = {one.name for one in route.deployments}  # what a fallback answered says nothing of them
    open_to = {key: _open_to(key, name, willing, asked) for key, name in fresh.items() if name in own}
    ordered = sorted(
        (key for key, names in open_to.items() if names), key=lambda key: rank(runner.config.seed, key.bytes)
    )
    limits = budget_of(route, now)
    purse = purse_of(limits, runner.config.deployments, spent)
    return _Waiting(prompts={key: open_to[key] for key in ordered}, room=(limits.calls or 0) - purse.calls, purse=purse)


def _open_to(key: UUID, answerer: str, willing: Iterable[str], asked: Collection[tuple[UUID, str]]) -> tuple[str, ...]:
    """Name the peers that a prompt may still go to; who answered the client is no peer of itself."""
    return tuple(name for name in willing if name != answerer and (key, name) not in asked)


async def _choose(
    runner: Runner, route: Route, waiting: _Waiting
) -> tuple[dict[UUID, tuple[Prompt, Mapping[str, Any]]], dict[UUID, Why]]:
    """Take as many prompts as there is room for, all their calls or none; say why others are not mirrored at all."""
    chosen: dict[UUID, tuple[Prompt, Mapping[str, Any]]] = {}
    left_out: dict[UUID, Why] = {}
    room = waiting.room
    for ids in _batches(list(waiting.prompts)[:_MOST]):
        async with reading(runner.engine) as connection:
            prompts = {one.id: one for one in await read_prompts(connection, ids)}
        for key in ids:
            request = mirror_of(prompts[key])
            if isinstance(request, Why):
                left_out[key] = request
            elif len(waiting.prompts[key]) <= room:
                chosen[key] = (prompts[key], request)
                room -= len(waiting.prompts[key])
        if room < 1:
            break
    async with reading(runner.engine) as connection:
        await pass_over(connection, route.model, left_out, runner.now())
    return chosen, left_out


def _batches(ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    for start in range(0, len(ids), _AT_ONCE):
        yield ids[start : start + _AT_ONCE]


def _outgoing(
    target: Target, waiting: _Waiting, chosen: Mapping[UUID, tuple[Prompt, Mapping[str, Any]]]
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
