"""The plan of a replay: which stored exchanges are asked again, in which formats, and what cannot be asked.

The same specification gives the same plan. The plan is fixed when it is first sent. ``sending`` estimates the cost and
sends it, ``results`` compares the answers.
"""

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final
from uuid import UUID

import orjson
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.coding.profiles import compile_profile
from auditor.config import Audit, Config
from auditor.config.problems import suggest
from auditor.domain.exchange import Origin
from auditor.errors import InputError, UsageError
from auditor.store.engine import transaction
from auditor.work import Work
from replay import store
from replay.calls import Call, RewriteContext, find_blockers, read_object, read_ref, replay_ref
from replay.counterfactual.lexicon import SwapLexicon, read_lexicon
from replay.counterfactual.swap import read_swap
from replay.formats import ReplayFormat, read_formats
from replay.parents import Parent, ReplayCandidate, RouteProfile, parent_of_client, parent_of_probe, refusal
from replay.progress import OnProgress, ProgressCounter
from replay.selection import ExchangeSelection, SampleDraw, read_selection

#: The formats of a replay that names none and swaps nothing.
_FORMATS: Final = "CTO,SC"
_NO_PROFILE: Final = "no_profile"
_NO_PROPOSITION: Final = "no_proposition"


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectedExchanges:
    """The exchanges to ask again, the oldest first."""

    candidates: Sequence[ReplayCandidate]
    left_out: Counter[str]
    chances: Mapping[float, float]  #: probability of being drawn, by the probability of having been kept


async def select_exchanges(
    connection: AsyncConnection,
    selection: ExchangeSelection,
    routes: Sequence[str],
    refuse: Callable[[ReplayCandidate], str | None],
) -> SelectedExchanges:
    """Select the exchanges of a new replay: a draw from all that match the selection and can be asked again.

    Parameters
    ----------
    connection
        Connection to the store.
    selection
        The selection of exchanges.
    routes
        The routes with an audit profile.
    refuse
        Returns the reason why an exchange cannot be asked again, or ``None`` (``parents.refusal``).
    """
    draw = SampleDraw[ReplayCandidate](selection)
    left_out = Counter({_NO_PROFILE: await store.count_unreadable(connection, selection, routes)})
    async for candidate in store.stream_candidates(connection, selection, routes):
        reason = refuse(candidate)
        if reason is None:
            draw.show(candidate)
        else:
            left_out[reason] += 1
    return SelectedExchanges(candidates=_weighted(draw.taken, draw.chances), left_out=left_out, chances=draw.chances)


async def reselect_exchanges(
    connection: AsyncConnection, known: store.StoredReplay, refuse: Callable[[ReplayCandidate], str | None]
) -> SelectedExchanges:
    """Select the exchanges of a replay that was planned before, as far as they are still stored."""
    wanted = {read_ref(ref)[0] for ref in known.refs}
    stored = await store.read_parents(connection, wanted)
    left_out = Counter(known.settings["left_out"])
    left_out["gone"] += len(wanted) - len(stored)
    left_out.update(reason for candidate in stored if (reason := refuse(candidate)) is not None)
    kept = sorted((candidate for candidate in stored if refuse(candidate) is None), key=lambda candidate: candidate.id)
    chances = dict(known.settings["chances"])
    return SelectedExchanges(candidates=_weighted(kept, chances), left_out=left_out, chances=chances)


def _weighted(candidates: Iterable[ReplayCandidate], chances: Mapping[float, float]) -> list[ReplayCandidate]:
    return [
        replace(candidate, inclusion=candidate.inclusion * chances.get(candidate.inclusion, 1.0))
        for candidate in candidates
    ]


def applications_of(config: Config) -> Mapping[str, RouteProfile]:
    """Compile the audit profiles of the routes that have one. Traffic without a profile is not replayed."""
    audits = {audit.name: _application(audit) for audit in config.audits}
    return {route.model: audits[route.audit] for route in config.routes if route.audit is not None}


def _application(audit: Audit) -> RouteProfile:
    listed = audit.selection.options if audit.selection is not None else None
    return RouteProfile(
        profile=compile_profile(audit), takes_stance=audit.proposition is not None, options=listed or ()
    )


def parents_of(
    candidates: Sequence[ReplayCandidate], requests: Mapping[UUID, bytes], applications: Mapping[str, RouteProfile]
) -> tuple[dict[UUID, Parent], Counter[str]]:
    """Make parents of candidates, and count the refused ones by reason."""
    parents: dict[UUID, Parent] = {}
    unread: Counter[str] = Counter()
    for candidate in candidates:
        if candidate.origin is Origin.PROBE:
            parent, reason = parent_of_probe(candidate), "bad_statement"
        elif (application := applications.get(candidate.route)) is not None:
            request = read_object(requests.get(candidate.id))
            parent, reason = parent_of_client(candidate, request, application), _NO_PROPOSITION
        else:
            parent, reason = None, _NO_PROFILE
        if parent is None:
            unread[reason] += 1
        else:
            parents[candidate.id] = parent
    return parents, unread


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplaySpec:
    """The specification by the user. The same specification is the same replay; ``name`` starts another one."""

    selection: ExchangeSelection
    formats: tuple[ReplayFormat, ...]  #: in the order of ``formats.read_formats``
    lexicon: SwapLexicon | None = None  #: required if a format is a swap
    to: str | None = None  #: the deployment to ask instead of the original ones
    name: str = ""

    @property
    def replay_id(self) -> str:
        """The id of the replay, derived from the specification."""
        words = self.lexicon.digest if self.lexicon is not None else None
        parts = [self.selection.canonical, [each.key for each in self.formats], words, self.to, self.name]
        return f"rpl-{hashlib.sha256(orjson.dumps(parts)).hexdigest()[:12]}"


def read_spec(
    select: str, formats: str | None, swaps: Sequence[str], lexicon: Path | None, to: str | None, name: str
) -> ReplaySpec:
    """Read what is asked again, and how, from the options of ``biasmeter replay``.

    Raises
    ------
    UsageError
        An option cannot be read.
    """
    if lexicon is not None and not swaps:
        raise UsageError("--lexicon needs --swap")
    words = read_lexicon(*([lexicon] if lexicon is not None else [])) if swaps else None
    written = [str(read_swap(swap, words)) for swap in swaps] if words is not None else []
    listed = formats if formats is not None else ("" if swaps else _FORMATS)
    return ReplaySpec(
        selection=read_selection(select), formats=read_formats(listed, written), lexicon=words, to=to, name=name.strip()
    )


@dataclass(frozen=True, kw_only=True)
class PreparedReplay:
    """A replay that can be sent."""

    id: str
    spec: ReplaySpec
    parents: Mapping[UUID, Parent]
    calls: tuple[Call, ...]
    blocked: Mapping[UUID, Mapping[ReplayFormat, str]]  #: the formats in which a parent is not asked, with reasons
    requests: Mapping[UUID, bytes] = field(repr=False)
    context: RewriteContext = field(repr=False)
    left_out: Mapping[str, int]
    chances: Mapping[float, float]  #: probability of being drawn, by the probability of having been kept
    resumed: bool
    answered: Mapping[str, UUID]

    @cached_property
    def calls_of(self) -> Mapping[UUID, Sequence[Call]]:
        """The calls by their parent."""
        calls: dict[UUID, list[Call]] = defaultdict(list)
        for call in self.calls:
            calls[call.parent.id].append(call)
        return calls

    def count_blocked(self) -> dict[ReplayFormat, dict[str, int]]:
        """Count the parents that are not asked in each format, by reason."""
        counts = {
            each: Counter(reasons[each] for reasons in self.blocked.values() if each in reasons)
            for each in self.spec.formats
        }
        return {each: dict(sorted(count.items())) for each, count in counts.items() if count}


async def prepare(work: Work, spec: ReplaySpec, on_progress: OnProgress) -> PreparedReplay:
    """Determine the calls of a replay. A replay that was planned before has the calls of its plan.

    Raises
    ------
    UsageError
        The deployment to ask does not exist.
    InputError
        No selected exchange can be asked again; the message has the reasons.
    """
    _check_deployment(work.config, spec.to)
    applications = applications_of(work.config)
    known, picked, requests = await _read(work, spec, tuple(applications))
    seed = work.config.seed if known is None else known.settings["seed"]
    context = RewriteContext(applications=applications, lexicon=spec.lexicon, seed=seed)
    parents, unread = parents_of(picked.candidates, requests, applications)
    blocked = await _find_blockers(parents, spec, requests, context, on_progress)
    refs = _every_ref(spec, parents) if known is None else known.refs
    calls = tuple(call for ref in refs if (call := _call(ref, spec, parents, blocked)) is not None)
    kept = {call.parent.id: call.parent for call in calls}
    left_out = picked.left_out + unread
    left_out.update(next(iter(reasons.values())) for parent_id, reasons in blocked.items() if parent_id not in kept)
    if not calls:
        raise InputError(f"--select {spec.selection.canonical or 'all'}: {_nothing(left_out)}")
    async with transaction(work.engine) as connection:
        answered = await store.read_answered(connection, [call.ref for call in calls])
    return PreparedReplay(
        id=spec.replay_id,
        spec=spec,
        parents=kept,
        calls=calls,
        blocked={parent_id: blocked[parent_id] for parent_id in kept},
        requests=requests,
        context=context,
        left_out=dict(sorted(left_out.items())),
        chances=picked.chances,
        resumed=known is not None,
        answered=answered,
    )


async def _read(
    work: Work, spec: ReplaySpec, routes: Sequence[str]
) -> tuple[store.StoredReplay | None, SelectedExchanges, dict[UUID, bytes]]:
    """Read the plan if there is one, the selected exchanges, and their requests."""
    refuse = refusal(work.config, spec.to)
    async with transaction(work.engine) as connection:
        known = await store.read_replay(connection, spec.replay_id)
        if known is None:
            picked = await select_exchanges(connection, spec.selection, routes, refuse)
        else:
            picked = await reselect_exchanges(connection, known, refuse)
        return known, picked, await store.read_requests(connection, [candidate.id for candidate in picked.candidates])


def _every_ref(spec: ReplaySpec, parents: Iterable[UUID]) -> list[str]:
    """Return the names of all planned instances, grouped by parent."""
    numbers = range(len(spec.formats))
    return [replay_ref(spec.replay_id, parent, number) for parent in parents for number in numbers]


def _call(
    ref: str, spec: ReplaySpec, parents: Mapping[UUID, Parent], blocked: Mapping[UUID, Mapping[ReplayFormat, str]]
) -> Call | None:
    """Make the call of a planned instance; return ``None`` if its parent is gone or the format is blocked."""
    parent_id, number = read_ref(ref)
    parent, each = parents.get(parent_id), spec.formats[number]
    if parent is None or each in blocked[parent_id]:
        return None
    # The original deployment is asked through the same route. Another deployment has another route or none.
    if spec.to is None:
        return Call(ref=ref, parent=parent, format=each, deployment=parent.deployment, model=parent.model)
    return Call(ref=ref, parent=parent, format=each, deployment=spec.to)


def _check_deployment(config: Config, name: str | None) -> None:
    declared = [deployment.name for deployment in config.deployments]
    if name is not None and name not in declared:
        near = suggest(name, declared) or f"; declared: {', '.join(declared)}"
        raise UsageError(f"--to: there is no deployment named {name!r}{near}")


async def _find_blockers(
    parents: Mapping[UUID, Parent],
    spec: ReplaySpec,
    requests: Mapping[UUID, bytes],
    context: RewriteContext,
    on_progress: OnProgress,
) -> dict[UUID, dict[ReplayFormat, str]]:
    """Find the formats in which each parent cannot be asked; for swaps, by rewriting its request."""
    done = ProgressCounter("planning", len(parents), on_progress)
    blocked: dict[UUID, dict[ReplayFormat, str]] = {}
    for parent in parents.values():
        # Probes are asked about their statements; their requests are not needed.
        request = read_object(requests.get(parent.id)) if parent.origin is Origin.CLIENT else {}
        blocked[parent.id] = find_blockers(parent, spec.formats, request, context)
        done.add(1)
        # A long request takes tens of milliseconds: let Ctrl-C through between requests.
        await asyncio.sleep(0)
    return blocked


def _nothing(left_out: Counter[str]) -> str:
    if not left_out:
        return "no stored exchange fits it"
    reasons = ", ".join(f"{reason.replace('_', ' ')} {n}" for reason, n in sorted(left_out.items()))
    return f"nothing of it can be asked again ({reasons})"


async def store_plan(work: Work, prepared: PreparedReplay) -> None:
    """Store the plan: from now on the replay is resumed."""
    spec = prepared.spec
    settings = {
        "select": spec.selection.canonical or "all",
        "formats": [each.key for each in spec.formats],
        "lexicon": spec.lexicon.digest if spec.lexicon is not None else None,
        "to": spec.to,
        "name": spec.name,
        "seed": prepared.context.seed,
        "left_out": dict(prepared.left_out),
        "chances": sorted(prepared.chances.items()),
    }
    async with transaction(work.engine) as connection:
        await store.add_replay(connection, prepared.id, prepared.calls, settings, work.clock())
