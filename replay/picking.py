"""From a selection to parents: the stored exchanges that are meant, drawn, weighted, and read for what they asked.

``stored`` has the queries, ``pick`` the rules, ``drawing`` the sample.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Audit, Config
from auditor.domain.exchange import Origin
from auditor.live.profiles import compile_profile
from replay import stored
from replay.drawing import Draw
from replay.pick import Application, Candidate, Parent, parent_of_client, parent_of_probe
from replay.rewriting.calls import read_object, read_ref
from replay.selecting import Selection

_NO_PROFILE: Final = "no_profile"
_NO_PROPOSITION: Final = "no_proposition"


@dataclass(frozen=True, kw_only=True, slots=True)
class Picked:
    """The exchanges that are to be asked again, the oldest first."""

    candidates: Sequence[Candidate]
    left_out: Counter[str]
    chances: Mapping[float, float]  #: of being drawn, by the probability of having been kept


async def pick(
    connection: AsyncConnection, selection: Selection, routes: Sequence[str], refuse: Callable[[Candidate], str | None]
) -> Picked:
    """Pick for a new replay: of all that fits the selection and can be asked again, as many as it says.

    Parameters
    ----------
    connection
        To the store.
    selection
        Which exchanges are meant.
    routes
        Those whose traffic somebody reads.
    refuse
        Why an exchange cannot be asked again, or ``None`` (``pick.refusal``).
    """
    draw = Draw[Candidate](selection)
    left_out = Counter({_NO_PROFILE: await stored.count_unreadable(connection, selection, routes)})
    async for one in stored.stream_candidates(connection, selection, routes):
        reason = refuse(one)
        if reason is None:
            draw.show(one)
        else:
            left_out[reason] += 1
    return Picked(candidates=_weighted(draw.taken, draw.chances), left_out=left_out, chances=draw.chances)


async def pick_again(
    connection: AsyncConnection, known: stored.StoredReplay, refuse: Callable[[Candidate], str | None]
) -> Picked:
    """Pick what a replay has that was planned before, as far as it is still there."""
    wanted = {read_ref(ref)[0] for ref in known.refs}
    found = await stored.read_parents(connection, wanted)
    left_out = Counter(known.settings["left_out"])
    left_out["gone"] += len(wanted) - len(found)
    left_out.update(reason for one in found if (reason := refuse(one)) is not None)
    kept = sorted((one for one in found if refuse(one) is None), key=lambda one: one.id)
    chances = dict(known.settings["chances"])
    return Picked(candidates=_weighted(kept, chances), left_out=left_out, chances=chances)


def _weighted(candidates: Iterable[Candidate], chances: Mapping[float, float]) -> list[Candidate]:
    return [replace(one, inclusion=one.inclusion * chances.get(one.inclusion, 1.0)) for one in candidates]


def applications_of(config: Config) -> Mapping[str, Application]:
    """Compile the profiles of the routes that have one: what nobody reads need not be asked again."""
    audits = {audit.name: _application(audit) for audit in config.audits}
    return {route.model: audits[route.audit] for route in config.routes if route.audit is not None}


def _application(audit: Audit) -> Application:
    listed = audit.selection.options if audit.selection is not None else None
    return Application(profile=compile_profile(audit), takes_stance=audit.proposition is not None, options=listed or ())


def parents_of(
    candidates: Sequence[Candidate], requests: Mapping[UUID, bytes], applications: Mapping[str, Application]
) -> tuple[dict[UUID, Parent], Counter[str]]:
    """Make parents of candidates, and count by reason those of which none can be made."""
    parents: dict[UUID, Parent] = {}
    unread: Counter[str] = Counter()
    for one in candidates:
        if one.origin is Origin.PROBE:
            parent, reason = parent_of_probe(one), "bad_statement"
        elif (application := applications.get(one.route)) is not None:
            parent, reason = parent_of_client(one, read_object(requests.get(one.id)), application), _NO_PROPOSITION
        else:
            parent, reason = None, _NO_PROFILE
        if parent is None:
            unread[reason] += 1
        else:
            parents[one.id] = parent
    return parents, unread
