"""Serve the samples of answers that people label: ``/review`` as a page, ``/api/review`` as JSON."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from auditor.api.context import CLOCK, CONFIG, ENGINE
from auditor.api.operations import get
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, known_filters
from auditor.api.review_pages import QUEUES
from auditor.api.session import person_of, read_form, require_role
from auditor.documents.exchanges import ReviewDrawEntry, ReviewDrawsBody, ReviewQueueEntry
from auditor.domain.keys import KeyRole
from auditor.errors import AuditError
from auditor.report.wording import moment_text
from auditor.reviews.samples import ReviewRequest, draw_sample
from auditor.store.engine import transaction
from auditor.store.review_draws import STRATA, list_draws
from auditor.store.reviews import count_labels

#: Draws of the list, the newest.
_MOST_DRAWS: Final = 50
#: The most answers that a page draws at once.
_MOST_DRAWN: Final = 2000


def routes() -> list[web.RouteDef]:
    """List the routes of the pages."""
    return [web.get("/review", _draws_page), web.post("/review", _draw)]


async def _draws_page(request: web.Request) -> web.Response:
    known_filters(request, ())
    may_label = person_of(request).role.includes(KeyRole.REVIEWER)
    return render_page(request, "review.html.j2", draws=await _draws(request), may_label=may_label, strata=list(STRATA))


@get("/api/review", "Samples that people label")
async def _list(request: web.Request) -> ReviewDrawsBody:
    return ReviewDrawsBody(draws=await _draws(request))


async def _draws(request: web.Request) -> list[ReviewDrawEntry]:
    async with transaction(request.app[ENGINE]) as connection:
        draws = await list_draws(connection, _MOST_DRAWS)
        labelled = await count_labels(connection, [draw.id for draw, _ in draws])
    return [
        ReviewDrawEntry(
            id=draw.id,
            drawn_at=draw.drawn_at.isoformat(),
            drawn=moment_text(draw.drawn_at),
            origin=draw.origin,
            rubric=draw.rubric,
            strata=draw.settings.get("strata", []),
            items=n,
            queues=[
                ReviewQueueEntry(
                    title=title,
                    layer=layer,
                    view=view,
                    labelled=labelled.get((draw.id, layer.value, view.value), 0),
                )
                for layer, view, title in QUEUES
            ],
        )
        for draw, n in draws
    ]


async def _draw(request: web.Request) -> web.StreamResponse:
    """Draw a sample, which is then a queue."""
    require_role(request, KeyRole.REVIEWER)
    fields = await read_form(request, ("n", "seed", "stratify"))
    n, seed = _whole(fields, "n", 1, _MOST_DRAWN), _whole(fields, "seed", 0, 2**31)
    by = fields.get("stratify", "")
    if by and by not in STRATA:
        raise ApiError(400, f"stratify must be one of {', '.join(STRATA)}.", "invalid_value", "stratify")
    review_request = ReviewRequest(n=n, seed=seed, strata=(by,) if by else ())
    try:
        sample = await draw_sample(request.app[ENGINE], request.app[CONFIG](), review_request, request.app[CLOCK]())
    except AuditError as error:
        raise ApiError(409, f"{error}.", "nothing_to_draw") from None
    return web.Response(status=303, headers={"location": f"/review/{sample.draw.id}"})


def _whole(fields: Mapping[str, str], name: str, least: int, most: int) -> int:
    value = fields.get(name, "")
    if not (value.isascii() and value.isdecimal() and len(value) < 12 and least <= int(value) <= most):
        raise ApiError(400, f"{name} must be a whole number from {least} to {most}.", "invalid_value", name)
    return int(value)


OPERATIONS: Final = (_list,)
