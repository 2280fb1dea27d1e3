"""A replay from its selection to its document: plan or resume, price, send, code, compare.

``cli`` opens the store, shows the price before anything is spent, and writes what comes out.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.access import GatewayAccess
from auditor.analysis.document import Json
from auditor.config.audits import LEXICON
from auditor.domain.condition import Task
from auditor.domain.exchange import Origin
from auditor.errors import InputError
from auditor.jobs.work import Work
from auditor.live.profiles import Profile, compile_profile
from auditor.store.engine import reading
from replay import stored
from replay.coding import About, Label, coder_of_route, label_all, planned_coder, with_replays
from replay.document import Asked, Replay, make_document
from replay.drawing import Draw
from replay.formats import Format
from replay.pick import Candidate, Parent, missing_for, parent_of_client, parent_of_probe, refusal
from replay.rerun import Call, Cost, Sent, estimate_calls, estimate_judging, send_calls
from replay.rewrite import read_object, read_ref, replay_ref
from replay.selecting import Selection

#: Told what is being done, how much of it is done, and how much there is.
OnProgress = Callable[[str, int, int], None]

_NO_PROPOSITION: Final = "no_proposition"


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What is asked for. The same order is the same replay, which is resumed; ``name`` begins another one."""

    selection: Selection
    formats: tuple[Task, ...]
    name: str = ""

    @property
    def replay_id(self) -> str:
        """The replay's id, a function of what is asked for."""
        told = "\n".join((self.selection.canonical, ",".join(self.formats), self.name))
        return f"rpl-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """A replay that can be sent."""

    id: str
    order: Order
    parents: Mapping[UUID, Parent]
    calls: tuple[Call, ...]
    requests: Mapping[UUID, bytes] = field(repr=False)
    left_out: Mapping[str, int]
    chances: Mapping[float, float]  #: of being drawn, by the probability of having been kept
    resumed: bool
    answered: Mapping[str, UUID]


async def begin(work: Work, order: Order) -> Begun:
    """Find what is to be asked: of a replay that was planned before, exactly the calls that it had.

    Raises
    ------
    InputError
        Nothing that is selected can be asked again; the message says why.
    """
    profiles = _profiles(work)
    async with reading(work.engine) as connection:
        known = await stored.read_replay(connection, order.replay_id)
        picked = await (
            _pick(connection, work, order, profiles) if known is None else _pick_again(connection, work, known)
        )
        requests = await stored.read_requests(connection, [one.id for one in picked.candidates])
    parents, unread = _parents(picked.candidates, requests, profiles)
    left_out = picked.left_out + unread
    calls = _new_calls(order, parents, left_out) if known is None else _planned_calls(known, parents)
    if not calls:
        raise InputError(f"--select {order.selection.canonical or 'all'}: {_nothing(left_out)}")
    async with reading(work.engine) as connection:
        answered = await stored.read_answered(connection, [call.ref for call in calls])
    return Begun(
        id=order.replay_id,
        order=order,
        parents={call.parent.id: call.parent for call in calls},
        calls=tuple(calls),
        requests=requests,
        left_out={reason: n for reason, n in sorted(left_out.items()) if n},
        chances=picked.chances,
        resumed=known is not None,
        answered=answered,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Picked:
    """The exchanges that are to be asked again, the oldest first."""

    candidates: Sequence[Candidate]
    left_out: Counter[str]
    chances: Mapping[float, float]  #: of being drawn, by the probability of having been kept


async def _pick(connection: AsyncConnection, work: Work, order: Order, profiles: Mapping[str, Profile]) -> _Picked:
    """Pick for a new replay: of all that fits the selection and can be asked again, as many as it says."""
    refuse, routes, draw = refusal(work.config), tuple(profiles), Draw[Candidate](order.selection)
    unreadable = await stored.count_unreadable(connection, order.selection, routes)
    left_out = Counter({_NO_PROPOSITION: unreadable})
    async for one in stored.stream_candidates(connection, order.selection, routes):
        reason = refuse(one)
        if reason is None:
            draw.show(one)
        else:
            left_out[reason] += 1
    return _Picked(candidates=_weighted(draw.taken, draw.chances), left_out=left_out, chances=draw.chances)


async def _pick_again(connection: AsyncConnection, work: Work, known: stored.StoredReplay) -> _Picked:
    """Pick what a replay has that was planned before, as far as it is still there."""
    refuse, wanted = refusal(work.config), {read_ref(ref)[0] for ref in known.refs}
    found = await stored.read_parents(connection, wanted)
    left_out = Counter(known.settings["left_out"])
    left_out["gone"] += len(wanted) - len(found)
    left_out.update(reason for one in found if (reason := refuse(one)) is not None)
    kept = sorted((one for one in found if refuse(one) is None), key=lambda one: one.id)
    # Plans of earlier releases do not say: all that they have stand alike.
    chances = dict(known.settings.get("chances", ()))
    return _Picked(candidates=_weighted(kept, chances), left_out=left_out, chances=chances)


def _weighted(candidates: Iterable[Candidate], chances: Mapping[float, float]) -> list[Candidate]:
    return [replace(one, inclusion=one.inclusion * chances.get(one.inclusion, 1.0)) for one in candidates]


def _planned_calls(known: stored.StoredReplay, parents: Mapping[UUID, Parent]) -> list[Call]:
    planned = ((ref, *read_ref(ref)) for ref in known.refs)
    return [Call(ref=ref, parent=parents[parent], task=task) for ref, parent, task in planned if parent in parents]


def _nothing(left_out: Counter[str]) -> str:
    if not +left_out:
        return "no stored exchange fits it"
    reasons = ", ".join(f"{reason.replace('_', ' ')} {n}" for reason, n in sorted((+left_out).items()))
    return f"nothing of it can be asked again ({reasons})"


def _profiles(work: Work) -> Mapping[str, Profile]:
    """Compile the profiles of the routes whose traffic takes a stance on something that is named."""
    audits = {audit.name: audit for audit in work.config.audits if audit.proposition is not None}
    return {route.model: compile_profile(audits[route.audit]) for route in work.config.routes if route.audit in audits}


def _parents(
    candidates: Sequence[Candidate], requests: Mapping[UUID, bytes], profiles: Mapping[str, Profile]
) -> tuple[dict[UUID, Parent], Counter[str]]:
    parents: dict[UUID, Parent] = {}
    unread: Counter[str] = Counter()
    for one in candidates:
        if one.origin is Origin.PROBE:
            parent, reason = parent_of_probe(one), "bad_statement"
        else:
            profile = profiles.get(one.route)
            request = read_object(requests.get(one.id))
            parent = parent_of_client(one, request, profile) if profile is not None else None
            reason = _NO_PROPOSITION
        if parent is None:
            unread[reason] += 1
        else:
            parents[one.id] = parent
    return parents, unread


def _new_calls(order: Order, parents: Mapping[UUID, Parent], left_out: Counter[str]) -> list[Call]:
    """List the calls, every format of a parent next to one another; a parent without any is left out."""
    calls: list[Call] = []
    for parent in parents.values():
        fitting = [task for task in order.formats if missing_for(parent, task) is None]
        if not fitting:
            left_out[missing_for(parent, order.formats[0]) or ""] += 1
        calls += [Call(ref=replay_ref(order.replay_id, parent.id, task), parent=parent, task=task) for task in fitting]
    return calls


async def keep(work: Work, begun: Begun) -> None:
    """Store the plan: from now on the replay is resumed."""
    settings = {
        "select": begun.order.selection.canonical or "all",
        "formats": [str(task) for task in begun.order.formats],
        "name": begun.order.name,
        "seed": work.config.seed,
        "left_out": dict(begun.left_out),
        "chances": sorted(begun.chances.items()),
    }
    calls = [(call.parent, call.task) for call in begun.calls]
    async with reading(work.engine) as connection:
        await stored.add_replay(connection, begun.id, calls, settings, work.clock())


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """What is still to be sent and read."""

    calls: tuple[Cost, ...]
    judging: tuple[Cost, ...]

    @property
    def nothing(self) -> bool:
        """Whether nothing would be spent."""
        return not self.calls and not self.judging


async def price(work: Work, begun: Begun) -> Price:
    """Estimate what is left to be done: calls without an answer, and answers that judges have not read."""
    waiting = [call for call in begun.calls if call.ref not in begun.answered]
    coded = 0
    coder = planned_coder(work)
    ids = [*begun.parents, *begun.answered.values()]
    async with reading(work.engine) as connection:
        for one in {coder.id: coder, **{reader.coder.id: reader.coder for reader in work.readers.values()}}.values():
            for each in (one.id, f"{one.id}/replay"):
                coded += len(await stored.read_codings(connection, each, ids))
    judges = [name for name in work.config.panel.judges if name != LEXICON]
    unread = len(ids) - coded + len(waiting)
    return Price(
        calls=estimate_calls(waiting, work.config), judging=estimate_judging(max(unread, 0), judges, work.config)
    )


async def send(work: Work, begun: Begun, access: GatewayAccess, on_progress: OnProgress) -> Sent:
    """Send what has no answer yet."""
    done = _Counted("asking", len(begun.calls), on_progress)
    done.add(len(begun.answered))
    return await send_calls(
        work.engine, work.config, access, begun.id, begun.calls, begun.requests, lambda: done.add(1)
    )


class _Counted:
    def __init__(self, what: str, total: int, on_progress: OnProgress) -> None:
        self._what, self._total, self._on_progress, self._done = what, total, on_progress, 0

    def add(self, n: int) -> None:
        self._done += n
        self._on_progress(self._what, self._done, self._total)


async def conclude(work: Work, begun: Begun, answered: Mapping[str, UUID], on_progress: OnProgress) -> dict[str, Json]:
    """Code all answers that are not coded yet, and compare them.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; what was coded until then is stored.
    """
    done = _Counted("coding", len(begun.parents) + len(answered), on_progress)
    labels, coders = await _label(work, begun, answered, done)
    asked = [_asked(begun, parent, labels, answered) for parent in begun.parents.values() if parent.id in labels]
    async with reading(work.engine) as connection:
        waiting = [call.ref for call in begun.calls if call.ref not in answered]
        failures = await stored.read_failures(connection, waiting)
    replay = Replay(
        id=begun.id,
        select=begun.order.selection.canonical,
        formats=[Format(task=task) for task in begun.order.formats],
        seed=work.config.seed,
        coders={each: _plain(work.readers[each].coder.description) for each in sorted(coders)},
        left_out=begun.left_out,
        failures=Counter(failures.get(ref, "not_sent") for ref in waiting),
    )
    return make_document(replay, asked)


def _plain(description: Mapping[str, object]) -> Json:
    """Keep of a coder's description who reads, not the whole profile."""
    panel = description.get("panel")
    judges = panel.get("judges", []) if isinstance(panel, dict) else []
    names: list[Json] = [judge["name"] for judge in judges]
    return {"rubric": str(description["rubric"]), "selection": str(description["selection"]), "judges": names}


async def _label(
    work: Work, begun: Begun, answered: Mapping[str, UUID], done: _Counted
) -> tuple[dict[UUID, Label], set[str]]:
    """Give the labels of parents and replays by exchange, and the coders that made them."""
    coder = planned_coder(work)
    probes = [parent.id for parent in begun.parents.values() if parent.origin is Origin.PROBE]
    replays = [
        answered[call.ref] for call in begun.calls if call.ref in answered and call.parent.origin is Origin.PROBE
    ]
    labels = await label_all(work, coder, [*probes, *replays], done.add)
    used = {coder.id} if probes else set()
    clients = [parent for parent in begun.parents.values() if parent.origin is Origin.CLIENT]
    for route in sorted({parent.route for parent in clients}):
        traffic = coder_of_route(work, route)
        if traffic is None:
            continue
        own = [parent.id for parent in clients if parent.route == route]
        labels |= await label_all(work, traffic, own, done.add)
        about = {
            answered[call.ref]: About(parent=call.parent, task=call.task, label=labels[call.parent.id])
            for call in begun.calls
            if call.ref in answered and call.parent.id in own and call.parent.id in labels
        }
        wider, replaying = await with_replays(work, traffic, about)
        labels |= await label_all(wider, replaying, list(about), done.add)
        used.add(traffic.id)
    return labels, used


def _asked(begun: Begun, parent: Parent, labels: Mapping[UUID, Label], answered: Mapping[str, UUID]) -> Asked:
    replays: dict[Format, Label | str | None] = {}
    for task in begun.order.formats:
        reason = missing_for(parent, task)
        exchange = answered.get(replay_ref(begun.id, parent.id, task))
        replays[Format(task=task)] = reason or (labels.get(exchange, "gone") if exchange is not None else None)
    return Asked(parent=parent, label=labels[parent.id], replays=replays)
