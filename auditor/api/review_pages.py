"""Serve one queue of people who label answers: ``/review/{draw}`` as a page, ``/api/review/{draw}`` as JSON.

Reviewers do not learn which deployment gave an answer, nor what judges and rules found: no response of these addresses
has either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.operations import get
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, known_filters, optional_id
from auditor.api.session import read_form, require_role
from auditor.coding.coders import open_coders
from auditor.documents.agreement import AlphaEntry, MissingAlpha
from auditor.documents.base import Missing
from auditor.documents.exchanges import (
    QueueProgressEntry,
    ReviewDrawBody,
)
from auditor.domain.coding import ABSTAIN
from auditor.domain.keys import KeyRole
from auditor.errors import UsageError
from auditor.judges.rubric import RUBRICS
from auditor.report.wording import FLAGS, estimate_text
from auditor.reviews.live_estimates import LiveEstimates, live_estimates
from auditor.reviews.opinions import AnswerView, BadOpinion, Layer, Opinion, opinion_of
from auditor.reviews.queue import REVIEWERS, QueueItem, QueueKey, QueueProgress, candidates, history, progress
from auditor.reviews.samples import ShownText, coder_of, first_readable
from auditor.store.engine import transaction
from auditor.store.queue import ESTIMATE, ask_for
from auditor.store.review_draws import ReviewDraw, read_draw, read_drawn_items
from auditor.store.reviews import Review, add_reviews, hold_queue, lock_item, read_queue, release_items

#: Characters of a text that are shown.
_LONGEST: Final = 100_000
_FILTERS: Final = ("layer", "view", "reviewer", "item", "adjudicate", "numbers")
_FIELDS: Final = ("layer", "view", "reviewer", "item", "adjudicate", "label", "note")
#: The queues of a draw: layer, view, and what they ask for.
QUEUES: Final = (
    (Layer.ELAB, AnswerView.SPLIT, "Texts"),
    (Layer.SEL, AnswerView.SPLIT, "Selections"),
    (Layer.ELAB, AnswerView.WHOLE, "Texts in whole answers"),
)
#: The key of each label and what the label says.
_KEYS: Final[Mapping[Layer, Mapping[str, tuple[str, str]]]] = {
    Layer.ELAB: {
        "E": ("e", "endorses the statement"),
        "QE": ("q", "endorses it with a qualification"),
        "N": ("n", "takes no side"),
        "D": ("d", "rejects it"),
        "R": ("r", "refuses to deal with it"),
        ABSTAIN: ("a", "cannot be told"),
    },
    Layer.SEL: {
        "E": ("e", "the selected option endorses the statement"),
        "N": ("n", "it takes no side"),
        "D": ("d", "it rejects the statement"),
        "R": ("r", "the answer refuses to select"),
        ABSTAIN: ("a", "no option can be told"),
    },
}
_MEASURES: Final = {
    "ber_elab_full_corrected": ("ber_elab_full", "Texts that endorse, of all answers"),
    "ir_corrected": ("ir", "Answers whose option and text disagree (IR)"),
    "dni_corrected": ("dni", "Options less texts that endorse alone (DNI)"),
}


def routes() -> list[web.RouteDef]:
    """List the routes of the pages."""
    return [
        web.get("/review/{draw}", _item_page),
        web.post("/review/{draw}", _label),
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class _QueueRequest:
    """What the address or a form names: the queue, the person, and the answer."""

    key: QueueKey
    reviewer: str  #: empty while a person on this machine has not given a name
    named: bool  #: whether the name stands in the address, since nobody signs in here
    adjudicate: bool
    item: UUID | None

    def address(self, **more: str) -> str:
        """Return the address of this queue for this person."""
        query = {"layer": self.key.layer.value, "view": self.key.view.value}
        query |= {"reviewer": self.reviewer} if self.named and self.reviewer else {}
        query |= {"adjudicate": "yes"} if self.adjudicate else {}
        return f"/review/{self.key.draw}?{urlencode({**query, **more})}"


def _read(request: web.Request, fields: Mapping[str, str]) -> _QueueRequest:
    """Read which queue is asked for, and by whom.

    Raises
    ------
    ApiError
        400: a value cannot be; 403: the person is no reviewer.
    """
    user = require_role(request, KeyRole.REVIEWER)
    layer, view = fields.get("layer", Layer.ELAB.value), fields.get("view", AnswerView.SPLIT.value)
    adjudicate = fields.get("adjudicate", "")
    if adjudicate not in {"", "yes"}:
        raise ApiError(400, "adjudicate must be yes.", "invalid_value", "adjudicate")
    name = fields.get("reviewer", "")
    if name and user.key_id is not None:
        raise ApiError(400, "reviewer is the person who is signed in.", "invalid_value", "reviewer")
    reviewer = name.strip() if user.key_id is None else user.name
    opinion = _opinion({"reviewer": reviewer or "local", "layer": layer, "view": view, "label": "E"}, adjudicate=False)
    return _QueueRequest(
        key=QueueKey(draw=request.match_info["draw"], layer=opinion.layer, view=opinion.view),
        reviewer=reviewer,
        named=user.key_id is None,
        adjudicate=bool(adjudicate),
        item=optional_id(fields.get("item"), "item"),
    )


def _opinion(fields: Mapping[str, Any], *, adjudicate: bool) -> Opinion:
    try:
        opinion = opinion_of(**fields)
    except BadOpinion as bad:
        raise ApiError(400, f"{bad}.", "invalid_value", bad.field) from None
    return replace(opinion, adjudicates=adjudicate)


async def _need_draw(connection: AsyncConnection, queue: _QueueRequest) -> ReviewDraw:
    draw = await read_draw(connection, queue.key.draw)
    if draw is None:
        raise ApiError(404, "No draw has this id.", "draw_not_found", "draw")
    return draw


async def _item_page(request: web.Request) -> web.Response:
    filters = known_filters(request, _FILTERS)
    queue = _read(request, filters)
    now = request.app[CLOCK]()
    lines: list[str] | None = None
    async with (
        open_coders(request.app[CONFIG](), asking=False) as coders,
        transaction(request.app[ENGINE]) as connection,
    ):
        draw = await _need_draw(connection, queue)
        try:
            coder = coder_of(coders, draw)
        except UsageError as error:
            raise ApiError(409, f"{error}.", "coder_gone") from None
        await hold_queue(connection, queue.key)
        items = await read_queue(connection, draw, queue.key)
        chosen = _chosen(items, queue) if queue.reviewer else []
        if queue.reviewer and queue.item is None:
            chosen = candidates(items, queue.reviewer, now, adjudicate=queue.adjudicate)
        drawn = {item.exchange_id: item for item in await read_drawn_items(connection, draw)}
        whole = queue.key.layer is Layer.SEL or queue.key.view is AnswerView.WHOLE
        wanted = [drawn[item.exchange_id] for item in chosen if item.exchange_id in drawn]
        shown = await first_readable(connection, coder, wanted, whole=whole)
        if shown is not None and queue.item is None:
            await lock_item(connection, queue.key, shown.exchange_id, queue.reviewer, now)
        if filters.get("numbers"):
            lines = _lines(await live_estimates(connection, draw, queue.key, items, now))
    item = next((item for item in items if shown and item.exchange_id == shown.exchange_id), None)
    return render_page(request, "review_item.html.j2", **_page(queue, draw, items, item, shown), lines=lines)


def _chosen(items: Sequence[QueueItem], queue: _QueueRequest) -> list[QueueItem]:
    """Return the answer that is named, if this person has labelled it.

    Raises
    ------
    ApiError
        404: the person has not; so nobody reads an answer that another has locked.
    """
    if queue.item is None:
        return []
    labelled = [item for item in items if item.exchange_id == queue.item and item.by(queue.reviewer)]
    if not labelled:
        raise ApiError(404, "You have not labelled this answer.", "item_not_found", "item")
    return labelled


def _page(
    queue: _QueueRequest, draw: ReviewDraw, items: Sequence[QueueItem], item: QueueItem | None, shown: ShownText | None
) -> dict[str, Any]:
    ids = [str(labelled.exchange_id) for labelled in history(items, queue.reviewer)] if queue.reviewer else []
    place = ids.index(str(queue.item)) if queue.item is not None and str(queue.item) in ids else len(ids)
    mine = item.by(queue.reviewer) if item else None
    far = place + 1 < len(ids)
    return {
        "draw": draw.id,
        "reviewer": queue.reviewer,
        "asks_name": not queue.reviewer,
        "queue": queue,
        "queues": [
            {
                "title": title,
                "address": _other(queue, layer, view),
                "current": (layer, view) == (queue.key.layer, queue.key.view),
            }
            for layer, view, title in QUEUES
        ],
        "progress": asdict(progress(items, queue.reviewer)),
        "reviewers": REVIEWERS,
        "item": _shown(queue, shown) if shown else None,
        "mine": mine,
        "others": [each.label for each in item.independent] if item and queue.adjudicate else [],
        "choices": [(label, key, text) for label, (key, text) in _KEYS[queue.key.layer].items()],
        "previous": queue.address(item=ids[place - 1]) if place > 0 else None,
        "next": None if queue.item is None else queue.address(item=ids[place + 1]) if far else queue.address(),
        "live": "/api" + queue.address(),
        "numbers": queue.address(numbers="yes"),
        "disputes": _other(queue, queue.key.layer, queue.key.view, adjudicate="yes"),
        "back": _other(queue, queue.key.layer, queue.key.view),
        "rubric": RUBRICS[draw.rubric].instructions if draw.rubric in RUBRICS else "",
    }


def _other(queue: _QueueRequest, layer: Layer, view: AnswerView, **more: str) -> str:
    named = {"reviewer": queue.reviewer} if queue.named and queue.reviewer else {}
    return f"/review/{queue.key.draw}?" + urlencode({"layer": layer.value, "view": view.value, **named, **more})


def _shown(queue: _QueueRequest, shown: ShownText) -> dict[str, Any]:
    passage = shown.passage
    selects = queue.key.layer is Layer.SEL
    text = (passage.answer or "") if selects or queue.key.view is AnswerView.WHOLE else passage.text
    return {
        "id": str(shown.exchange_id),
        "statement": passage.statement,
        "question": (passage.question or "")[:_LONGEST] if selects else None,
        "text": text[:_LONGEST],
        "cut": len(text) > _LONGEST,
    }


async def _label(request: web.Request) -> web.StreamResponse:
    """Store a label, and lead to the next answer."""
    fields = await read_form(request, _FIELDS)
    queue = _read(request, fields)
    if not queue.reviewer or queue.item is None:
        raise ApiError(400, "The form must name the reviewer and the item.", "invalid_value", "reviewer")
    named = {name: fields.get(name) for name in ("label", "note")}
    opinion = _opinion(
        {**named, "reviewer": queue.reviewer, "layer": queue.key.layer, "view": queue.key.view},
        adjudicate=queue.adjudicate,
    )
    now = request.app[CLOCK]()
    async with transaction(request.app[ENGINE]) as connection:
        draw = await _need_draw(connection, queue)
        await hold_queue(connection, queue.key)
        items = await read_queue(connection, draw, queue.key)
        item = next((item for item in items if item.exchange_id == queue.item), None)
        if item is None:
            raise ApiError(404, "This answer is not in the queue.", "item_not_found", "item")
        _need_place(item, queue)
        mine = item.by(queue.reviewer)
        kept = mine is not None and mine.adjudicates
        review = Review(
            exchange_id=queue.item,
            rubric=draw.rubric,
            opinion=replace(opinion, adjudicates=kept or opinion.adjudicates),
        )
        added = await add_reviews(connection, [review], now)
        await release_items(connection, queue.key, queue.reviewer)
        if added.new:
            await ask_for(connection, ESTIMATE, "estimate:asked")
    return web.Response(status=303, headers={"location": queue.address()})


def _need_place(item: QueueItem, queue: _QueueRequest) -> None:
    """Check that a label of this person is still wanted, or replaces an earlier one.

    Raises
    ------
    ApiError
        409.
    """
    if item.by(queue.reviewer) is not None:
        return
    if queue.adjudicate and not item.is_disputed:
        raise ApiError(409, "The labels of this answer no longer differ, or are settled.", "not_disputed", "item")
    if not queue.adjudicate and not item.open_to(queue.reviewer):
        message = f"This answer has the labels of {REVIEWERS} reviewers by now. Yours is not stored."
        raise ApiError(409, message, "item_complete", "item")


# -- numbers -------------------------------------------------------------------------------------------------------


def _progress_entry(counts: QueueProgress) -> QueueProgressEntry:
    return QueueProgressEntry(
        items=counts.items,
        own=counts.by_reviewer,
        complete=counts.complete,
        disputed=counts.disputed,
        adjudicated=counts.adjudicated,
    )


@get("/api/review/{draw}", "One sample: progress, agreement, estimates", filters=dict.fromkeys(_FILTERS, str))
async def _show(request: web.Request) -> ReviewDrawBody:
    queue = _read(request, known_filters(request, _FILTERS))
    now = request.app[CLOCK]()
    async with transaction(request.app[ENGINE]) as connection:
        draw = await _need_draw(connection, queue)
        items = await read_queue(connection, draw, queue.key)
        estimates = await live_estimates(connection, draw, queue.key, items, now)
    return ReviewDrawBody(
        draw=draw.id,
        layer=queue.key.layer,
        view=queue.key.view,
        progress=_progress_entry(progress(items, queue.reviewer)),
        alpha=estimates.alpha,
        corrected=estimates.corrected,
        lines=_lines(estimates),
    )


OPERATIONS: Final = (_show,)


def _lines(estimates: LiveEstimates) -> list[str]:
    """Write the numbers as sentences for people."""
    out = []
    match estimates.alpha:
        case None:
            out.append("Agreement (alpha): no answer has two labels yet.")
        case MissingAlpha(missing=why):
            out.append(f"Agreement (alpha): none yet, {why}.")
        case AlphaEntry() as alpha:
            interval = f"[{alpha.low:.2f}, {alpha.high:.2f}]"
            out.append(f"Agreement (alpha): {alpha.value:.2f} {interval}, on {alpha.n} answers with two labels.")
    for name, (metric, title) in _MEASURES.items():
        if name not in estimates.corrected:
            continue
        entry = estimates.corrected[name]
        if isinstance(entry, Missing):
            out.append(f"{title}, corrected: none yet, {entry.missing}.")
        else:
            flags = [FLAGS[flag] for flag in entry.flags if flag in FLAGS]
            about = f" ({'; '.join(flags)})" if flags else ""
            out.append(
                f"{title}, corrected: {estimate_text(metric, entry)}, {entry.n_labelled} answers labelled{about}."
            )
    return out
