"""A replay's plan: which stored exchanges are asked again, in which formats, and what cannot be asked.

The same order is the same plan. What it has is fixed when it is first sent; ``run`` prices, sends and concludes it.
"""

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

import orjson

from auditor.config import Config
from auditor.config.wording import suggest
from auditor.domain.exchange import Origin
from auditor.errors import InputError, UsageError
from auditor.jobs.work import Work
from auditor.store.engine import reading
from replay import stored
from replay.counted import Counted, OnProgress
from replay.counterfactual import Lexicon
from replay.formats import Format
from replay.pick import Parent, refusal
from replay.picking import Picked, applications_of, parents_of, pick, pick_again
from replay.rewriting.calls import Call, hindrances, read_object, read_ref, replay_ref
from replay.rewriting.own_request import Means
from replay.selecting import Selection


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What is asked for. The same order is the same replay, which is resumed; ``name`` begins another one."""

    selection: Selection
    formats: tuple[Format, ...]  #: as ``formats.read_formats`` puts them in order
    lexicon: Lexicon | None = None  #: there must be one where a format is a swap
    to: str | None = None  #: the deployment to ask instead of those which answered first
    name: str = ""

    @property
    def replay_id(self) -> str:
        """The replay's id, a function of what is asked for."""
        words = self.lexicon.digest if self.lexicon is not None else None
        told = [self.selection.canonical, [each.key for each in self.formats], words, self.to, self.name]
        return f"rpl-{hashlib.sha256(orjson.dumps(told)).hexdigest()[:12]}"


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A replay that can be sent."""

    id: str
    order: Order
    parents: Mapping[UUID, Parent]
    calls: tuple[Call, ...]
    hindered: Mapping[UUID, Mapping[Format, str]]  #: in which formats a parent is not asked, and why
    requests: Mapping[UUID, bytes] = field(repr=False)
    means: Means = field(repr=False)
    left_out: Mapping[str, int]
    chances: Mapping[float, float]  #: of being drawn, by the probability of having been kept
    resumed: bool
    answered: Mapping[str, UUID]

    @cached_property
    def calls_of(self) -> Mapping[UUID, Sequence[Call]]:
        """The calls by their parent."""
        found: dict[UUID, list[Call]] = defaultdict(list)
        for call in self.calls:
            found[call.parent.id].append(call)
        return found

    def count_hindered(self) -> dict[Format, dict[str, int]]:
        """Count the parents that are not asked in each format, by reason."""
        counts = {
            each: Counter(one[each] for one in self.hindered.values() if each in one) for each in self.order.formats
        }
        return {each: dict(sorted(count.items())) for each, count in counts.items() if count}


async def begin(work: Work, order: Order, on_progress: OnProgress) -> Begun:
    """Find what is to be asked: of a replay that was planned before, exactly the calls that it had.

    Raises
    ------
    UsageError
        No deployment has the name that is to be asked.
    InputError
        Nothing that is selected can be asked again; the message says why.
    """
    _check_deployment(work.config, order.to)
    applications = applications_of(work.config)
    known, picked, requests = await _read(work, order, tuple(applications))
    seed = work.config.seed if known is None else known.settings["seed"]
    means = Means(applications=applications, lexicon=order.lexicon, seed=seed)
    parents, unread = parents_of(picked.candidates, requests, applications)
    hindered = await _hindered(parents, order, requests, means, on_progress)
    refs = _every_ref(order, parents) if known is None else known.refs
    calls = tuple(call for ref in refs if (call := _call(ref, order, parents, hindered)) is not None)
    asked = {call.parent.id: call.parent for call in calls}
    left_out = picked.left_out + unread
    left_out.update(next(iter(reasons.values())) for one, reasons in hindered.items() if one not in asked)
    if not calls:
        raise InputError(f"--select {order.selection.canonical or 'all'}: {_nothing(left_out)}")
    async with reading(work.engine) as connection:
        answered = await stored.read_answered(connection, [call.ref for call in calls])
    return Begun(
        id=order.replay_id,
        order=order,
        parents=asked,
        calls=calls,
        hindered={one: hindered[one] for one in asked},
        requests=requests,
        means=means,
        left_out=dict(sorted(left_out.items())),
        chances=picked.chances,
        resumed=known is not None,
        answered=answered,
    )


async def _read(
    work: Work, order: Order, routes: Sequence[str]
) -> tuple[stored.StoredReplay | None, Picked, dict[UUID, bytes]]:
    """Read the plan, where it was made before; the exchanges that are meant; and what they asked."""
    refuse = refusal(work.config, order.to)
    async with reading(work.engine) as connection:
        known = await stored.read_replay(connection, order.replay_id)
        if known is None:
            picked = await pick(connection, order.selection, routes, refuse)
        else:
            picked = await pick_again(connection, known, refuse)
        return known, picked, await stored.read_requests(connection, [one.id for one in picked.candidates])


def _every_ref(order: Order, parents: Iterable[UUID]) -> list[str]:
    """Name every format of every parent, those of a parent next to one another."""
    numbers = range(len(order.formats))
    return [replay_ref(order.replay_id, parent, number) for parent in parents for number in numbers]


def _call(
    ref: str, order: Order, parents: Mapping[UUID, Parent], hindered: Mapping[UUID, Mapping[Format, str]]
) -> Call | None:
    """Make the call of a planned instance; ``None`` where its parent is gone, or cannot be asked so."""
    parent_id, number = read_ref(ref)
    parent, each = parents.get(parent_id), order.formats[number]
    if parent is None or each in hindered[parent_id]:
        return None
    # Whoever answered first is asked by the same route; who is asked instead has another one, or none.
    if order.to is None:
        return Call(ref=ref, parent=parent, format=each, deployment=parent.deployment, model=parent.model)
    return Call(ref=ref, parent=parent, format=each, deployment=order.to)


def _check_deployment(config: Config, name: str | None) -> None:
    declared = [one.name for one in config.deployments]
    if name is not None and name not in declared:
        near = suggest(name, declared) or f"; declared: {', '.join(declared)}"
        raise UsageError(f"--to: no deployment is called {name!r}{near}")


async def _hindered(
    parents: Mapping[UUID, Parent],
    order: Order,
    requests: Mapping[UUID, bytes],
    means: Means,
    on_progress: OnProgress,
) -> dict[UUID, dict[Format, str]]:
    """Find for each parent in which formats it cannot be asked: for swaps, by rewriting its request."""
    done = Counted("planning", len(parents), on_progress)
    found: dict[UUID, dict[Format, str]] = {}
    for one in parents.values():
        # Probes are asked about their statements: what they said is not looked at.
        request = read_object(requests.get(one.id)) if one.origin is Origin.CLIENT else {}
        found[one.id] = hindrances(one, order.formats, request, means)
        done.add(1)
        # A long request takes tens of milliseconds: whoever stops the command does not wait for all of them.
        await asyncio.sleep(0)
    return found


def _nothing(left_out: Counter[str]) -> str:
    if not left_out:
        return "no stored exchange fits it"
    reasons = ", ".join(f"{reason.replace('_', ' ')} {n}" for reason, n in sorted(left_out.items()))
    return f"nothing of it can be asked again ({reasons})"


async def keep(work: Work, begun: Begun) -> None:
    """Store the plan: from now on the replay is resumed."""
    order = begun.order
    settings = {
        "select": order.selection.canonical or "all",
        "formats": [each.key for each in order.formats],
        "lexicon": order.lexicon.digest if order.lexicon is not None else None,
        "to": order.to,
        "name": order.name,
        "seed": begun.means.seed,
        "left_out": dict(begun.left_out),
        "chances": sorted(begun.chances.items()),
    }
    async with reading(work.engine) as connection:
        await stored.add_replay(connection, begun.id, begun.calls, settings, work.clock())
