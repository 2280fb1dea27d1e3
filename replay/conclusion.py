"""A replay's end: all answers coded by the coders there are now, and put together for the comparison."""

from collections import Counter
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from auditor.analysis.document import Json
from auditor.domain.exchange import Origin
from auditor.jobs.work import Work
from auditor.store.engine import reading
from replay import stored
from replay.coding import About, Label, coder_of_route, label_all, planned_coder, with_replays
from replay.comparison.document import Asked, Replay, make_document
from replay.counted import Counted, OnProgress
from replay.pick import Parent
from replay.plan import Begun

_NOT_SENT: Final = "not_sent"


async def conclude(work: Work, begun: Begun, answered: Mapping[str, UUID], on_progress: OnProgress) -> dict[str, Json]:
    """Code all answers that are not coded yet, and compare them.

    Raises
    ------
    JudgeUnavailable
        A judge could not be asked; what was coded until then is stored.
    """
    done = Counted("coding", len(begun.parents) + len(answered), on_progress)
    labels, coders = await _label(work, begun, answered, done)
    async with reading(work.engine) as connection:
        waiting = [call.ref for call in begun.calls if call.ref not in answered]
        failures = await stored.read_failures(connection, waiting)
        tokens = await stored.read_tokens(connection, answered.values())
    replay = Replay(
        id=begun.id,
        select=begun.order.selection.canonical,
        formats=begun.order.formats,
        to=begun.order.to,
        seed=work.config.seed,
        coders={each: _plain(work.readers[each].coder.description) for each in sorted(coders)},
        left_out=begun.left_out,
        failures=Counter(failures.get(ref, _NOT_SENT) for ref in waiting),
    )
    outcomes = {ref: labels.get(exchange, "gone") for ref, exchange in answered.items()} | dict.fromkeys(failures)
    taken = {ref: tokens.get(exchange) for ref, exchange in answered.items()}
    asked = [_asked(begun, one, labels[one.id], outcomes, taken) for one in begun.parents.values() if one.id in labels]
    return make_document(replay, asked)


def _plain(description: Mapping[str, object]) -> Json:
    """Keep of a coder's description who reads, not the whole profile."""
    panel = description.get("panel")
    judges = panel.get("judges", []) if isinstance(panel, dict) else []
    names: list[Json] = [judge["name"] for judge in judges]
    return {"rubric": str(description["rubric"]), "selection": str(description["selection"]), "judges": names}


async def _label(
    work: Work, begun: Begun, answered: Mapping[str, UUID], done: Counted
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
            answered[call.ref]: About(
                parent=parent, format=call.format, label=labels[parent.id], request=begun.requests.get(parent.id)
            )
            for parent in clients
            if parent.route == route and parent.id in labels
            for call in begun.calls_of[parent.id]
            if call.ref in answered
        }
        wider, replaying = await with_replays(work, traffic, about)
        labels |= await label_all(wider, replaying, list(about), done.add)
        used.add(traffic.id)
    return labels, used


def _asked(
    begun: Begun,
    parent: Parent,
    label: Label,
    outcomes: Mapping[str, Label | str | None],
    tokens: Mapping[str, int | None],
) -> Asked:
    """Put together what became of one parent; what was not sent, or cannot be asked, says so."""
    refs = {call.format: call.ref for call in begun.calls_of[parent.id]}
    hindered = begun.hindered[parent.id]
    return Asked(
        parent=parent,
        label=label,
        replays={
            each: outcomes.get(refs[each], _NOT_SENT) if each in refs else hindered.get(each, "not_planned")
            for each in begun.order.formats
        },
        tokens={None: parent.completion_tokens} | {each: tokens.get(ref) for each, ref in refs.items()},
    )
