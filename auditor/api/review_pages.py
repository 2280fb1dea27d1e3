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
from msgspec import convert
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
from auditor.reviews.queue import REVIEWERS, QueueItem, QueueKey, candidates, history, progress
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
class _Asked:
    """What the address or a form names: the queue, the person, and the answer."""

    key: QueueKey
    reviewer: str  #: empty while a person on this machine has not given a name
    named: bool  #: whether the name stands in the address, since nobody signs in here
    adjudicate: bool
    item: UUID | None

    def address(self, **more: str) -> str:
        """Return the address of this queue for this person."""
        given = {"layer": self.key.layer.value, "view": self.key.view.value}
        given |= {"reviewer": self.reviewer} if self.named and self.reviewer else {}
        given |= {"adjudicate": "yes"} if self.adjudicate else {}
        return f"/review/{self.key.draw}?{urlencode({**given, **more})}"


def _read(request: web.Request, given: Mapping[str, str]) -> _Asked:
    """Read which queue is asked for, and by whom.

    Raises
    ------
    ApiError
        400: a value cannot be; 403: the person is no reviewer.
    """
    user = require_role(request, KeyRole.REVIEWER)
    layer, view = given.get("layer", Layer.ELAB.value), given.get("view", AnswerView.SPLIT.value)
    adjudicate = given.get("adjudicate", "")
    if adjudicate not in {"", "yes"}:
        raise ApiError(400, "adjudicate must be yes.", "invalid_value", "adjudicate")
    name = given.get("reviewer", "")
    if name and user.key_id is not None:
        raise ApiError(400, "reviewer is the person who is signed in.", "invalid_value", "reviewer")
    reviewer = name.strip() if user.key_id is None else user.name
    opinion = _opinion({"reviewer": reviewer or "local", "layer": layer, "view": view, "label": "E"}, adjudicate=False)
    return _Asked(
        key=QueueKey(draw=request.match_info["draw"], layer=opinion.layer, view=opinion.view),
        reviewer=reviewer,
        named=user.key_id is None,
        adjudicate=bool(adjudicate),
        item=optional_id(given.get("item"), "item"),
    )


def _opinion(given: Mapping[str, Any], *, adjudicate: bool) -> Opinion:
    try:
        opinion = opinion_of(**given)
    except BadOpinion as bad:
        raise ApiError(400, f"{bad}.", "invalid_value", bad.field) from None
    return replace(opinion, adjudicates=adjudicate)


async def _need_draw(connection: AsyncConnection, asked: _Asked) -> ReviewDraw:
    draw = await read_draw(connection, asked.key.draw)
    if draw is None:
        raise ApiError(404, "No draw has this id.", "draw_not_found", "draw")
    return draw


async def _item_page(request: web.Request) -> web.Response:
    given = known_filters(request, _FILTERS)
    asked = _read(request, given)
    now = request.app[CLOCK]()
    lines: list[str] | None = None
    async with (
        open_coders(request.app[CONFIG](), asking=False) as coders,
        transaction(request.app[ENGINE]) as connection,
    ):
        draw = await _need_draw(connection, asked)
        try:
            coder = coder_of(coders, draw)
        except UsageError as error:
            raise ApiError(409, f"{error}.", "coder_gone") from None
        await hold_queue(connection, asked.key)
        items = await read_queue(connection, draw, asked.key)
        chosen = _chosen(items, asked) if asked.reviewer else []
        if asked.reviewer and asked.item is None:
            chosen = candidates(items, asked.reviewer, now, adjudicate=asked.adjudicate)
        drawn = {one.exchange_id: one for one in await read_drawn_items(connection, draw)}
        whole = asked.key.layer is Layer.SEL or asked.key.view is AnswerView.WHOLE
        wanted = [drawn[item.exchange_id] for item in chosen if item.exchange_id in drawn]
        shown = await first_readable(connection, coder, wanted, whole=whole)
        if shown is not None and asked.item is None:
            await lock_item(connection, asked.key, shown.exchange_id, asked.reviewer, now)
        if given.get("numbers"):
            lines = _lines(await live_estimates(connection, draw, asked.key, items, now))
    found = next((item for item in items if shown and item.exchange_id == shown.exchange_id), None)
    return render_page(request, "review_item.html.j2", **_page(asked, draw, items, found, shown), lines=lines)


def _chosen(items: Sequence[QueueItem], asked: _Asked) -> list[QueueItem]:
    """Return the answer that is named, if this person has labelled it.

    Raises
    ------
    ApiError
        404: the person has not; so nobody reads an answer that another has locked.
    """
    if asked.item is None:
        return []
    own = [item for item in items if item.exchange_id == asked.item and item.by(asked.reviewer)]
    if not own:
        raise ApiError(404, "You have not labelled this answer.", "item_not_found", "item")
    return own


def _page(
    asked: _Asked, draw: ReviewDraw, items: Sequence[QueueItem], found: QueueItem | None, shown: ShownText | None
) -> dict[str, Any]:
    own = [str(item.exchange_id) for item in history(items, asked.reviewer)] if asked.reviewer else []
    place = own.index(str(asked.item)) if asked.item is not None and str(asked.item) in own else len(own)
    mine = found.by(asked.reviewer) if found else None
    far = place + 1 < len(own)
    return {
        "draw": draw.id,
        "reviewer": asked.reviewer,
        "asks_name": not asked.reviewer,
        "asked": asked,
        "queues": [
            {
                "title": title,
                "address": _other(asked, layer, view),
                "current": (layer, view) == (asked.key.layer, asked.key.view),
            }
            for layer, view, title in QUEUES
        ],
        "progress": asdict(progress(items, asked.reviewer)),
        "reviewers": REVIEWERS,
        "item": _shown(asked, shown) if shown else None,
        "mine": mine,
        "others": [each.label for each in found.independent] if found and asked.adjudicate else [],
        "choices": [(label, *told) for label, told in _KEYS[asked.key.layer].items()],
        "previous": asked.address(item=own[place - 1]) if place > 0 else None,
        "next": None if asked.item is None else asked.address(item=own[place + 1]) if far else asked.address(),
        "live": "/api" + asked.address(),
        "numbers": asked.address(numbers="yes"),
        "disputes": _other(asked, asked.key.layer, asked.key.view, adjudicate="yes"),
        "back": _other(asked, asked.key.layer, asked.key.view),
        "rubric": RUBRICS[draw.rubric].instructions if draw.rubric in RUBRICS else "",
    }


def _other(asked: _Asked, layer: Layer, view: AnswerView, **more: str) -> str:
    named = {"reviewer": asked.reviewer} if asked.named and asked.reviewer else {}
    return f"/review/{asked.key.draw}?" + urlencode({"layer": layer.value, "view": view.value, **named, **more})


def _shown(asked: _Asked, shown: ShownText) -> dict[str, Any]:
    passage = shown.passage
    selects = asked.key.layer is Layer.SEL
    text = (passage.answer or "") if selects or asked.key.view is AnswerView.WHOLE else passage.text
    return {
        "id": str(shown.exchange_id),
        "statement": passage.statement,
        "question": (passage.question or "")[:_LONGEST] if selects else None,
        "text": text[:_LONGEST],
        "cut": len(text) > _LONGEST,
    }


async def _label(request: web.Request) -> web.StreamResponse:
    """Store a label, and lead to the next answer."""
    given = await read_form(request, _FIELDS)
    asked = _read(request, given)
    if not asked.reviewer or asked.item is None:
        raise ApiError(400, "The form must name the reviewer and the item.", "invalid_value", "reviewer")
    named = {name: given.get(name) for name in ("label", "note")}
    opinion = _opinion(
        {**named, "reviewer": asked.reviewer, "layer": asked.key.layer, "view": asked.key.view},
        adjudicate=asked.adjudicate,
    )
    now = request.app[CLOCK]()
    async with transaction(request.app[ENGINE]) as connection:
        draw = await _need_draw(connection, asked)
        await hold_queue(connection, asked.key)
        items = await read_queue(connection, draw, asked.key)
        found = next((item for item in items if item.exchange_id == asked.item), None)
        if found is None:
            raise ApiError(404, "This answer is not in the queue.", "item_not_found", "item")
        _need_place(found, asked)
        mine = found.by(asked.reviewer)
        kept = mine is not None and mine.adjudicates
        review = Review(
            exchange_id=asked.item,
            rubric=draw.rubric,
            opinion=replace(opinion, adjudicates=kept or opinion.adjudicates),
        )
        added = await add_reviews(connection, [review], now)
        await release_items(connection, asked.key, asked.reviewer)
        if added.new:
            await ask_for(connection, ESTIMATE, "estimate:asked")
    return web.Response(status=303, headers={"location": asked.address()})


def _need_place(item: QueueItem, asked: _Asked) -> None:
    """Check that a label of this person is still wanted, or replaces an earlier one.

    Raises
    ------
    ApiError
        409.
    """
    if item.by(asked.reviewer) is not None:
        return
    if asked.adjudicate and not item.is_disputed:
        raise ApiError(409, "The labels of this answer no longer differ, or are settled.", "not_disputed", "item")
    if not asked.adjudicate and not item.open_to(asked.reviewer):
        message = f"This answer has the labels of {REVIEWERS} reviewers by now. Yours is not stored."
        raise ApiError(409, message, "item_complete", "item")


# -- numbers -------------------------------------------------------------------------------------------------------


@get("/api/review/{draw}", "One sample: progress, agreement, estimates", filters=dict.fromkeys(_FILTERS, str))
async def _show(request: web.Request) -> ReviewDrawBody:
    asked = _read(request, known_filters(request, _FILTERS))
    now = request.app[CLOCK]()
    async with transaction(request.app[ENGINE]) as connection:
        draw = await _need_draw(connection, asked)
        items = await read_queue(connection, draw, asked.key)
        found = await live_estimates(connection, draw, asked.key, items, now)
    return ReviewDrawBody(
        draw=draw.id,
        layer=asked.key.layer,
        view=asked.key.view,
        progress=convert(progress(items, asked.reviewer), QueueProgressEntry, from_attributes=True),
        alpha=found.alpha,
        corrected=found.corrected,
        lines=_lines(found),
    )


OPERATIONS: Final = (_show,)


def _lines(found: LiveEstimates) -> list[str]:
    """Write the numbers as sentences for people."""
    out = []
    match found.alpha:
        case None:
            out.append("Agreement (alpha): no answer has two labels yet.")
        case MissingAlpha(missing=why):
            out.append(f"Agreement (alpha): none yet, {why}.")
        case AlphaEntry() as alpha:
            interval = f"[{alpha.low:.2f}, {alpha.high:.2f}]"
            out.append(f"Agreement (alpha): {alpha.value:.2f} {interval}, on {alpha.n} answers with two labels.")
    for name, (metric, told) in _MEASURES.items():
        if name not in found.corrected:
            continue
        entry = found.corrected[name]
        if isinstance(entry, Missing):
            out.append(f"{told}, corrected: none yet, {entry.missing}.")
        else:
            flags = [FLAGS[flag] for flag in entry.flags if flag in FLAGS]
            about = f" ({'; '.join(flags)})" if flags else ""
            out.append(
                f"{told}, corrected: {estimate_text(metric, entry)}, {entry.n_labelled} answers labelled{about}."
            )
    return out
