"""Draw a random sample of codings for people to label, with each text as the judges saw it.

The labels of people are stored through ``auditor.store.reviews``, from the API or a file.
"""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.coding.coders import Coder, open_coders
from auditor.coding.exchanges import ExchangeCoder, Passage
from auditor.config import Config
from auditor.domain.exchange import Origin
from auditor.domain.sampling import allocate
from auditor.errors import AuditError, UsageError
from auditor.store.codings import read_again
from auditor.store.engine import transaction
from auditor.store.retention import first_kept_day
from auditor.store.review_draws import (
    Drawn,
    ReviewDraw,
    add_draw,
    read_draw,
    read_drawn_items,
    read_frame,
    stratum_sizes,
)

_AT_ONCE: Final = 200
_FEW: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewRequest:
    """A request for a sample."""

    n: int
    seed: int
    origin: str = Origin.PROBE.value
    audit: str | None = None  #: the route of the traffic; planned calls have none
    deployments: tuple[str, ...] | None = None
    strata: tuple[str, ...] = ()  #: names of ``review_draws.STRATA``


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownText:
    """One text of a sample."""

    exchange_id: UUID
    deployment: str
    passage: Passage
    has_selection: bool  #: whether the rules read a selection, so that people's labels of both layers can be compared


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawnSample:
    """A sample in random order, in which it should be labelled."""

    draw: ReviewDraw
    texts: tuple[ShownText, ...]
    frame: int  #: codings that it was drawn from
    gone: int  #: drawn, but the text has been dropped, or differs from what the judges read


async def draw_sample(engine: AsyncEngine, config: Config, request: ReviewRequest, now: datetime) -> DrawnSample:
    """Draw from the codings of the configuration's coder, and store the draw.

    Raises
    ------
    UsageError
        No coder of the configuration with judges reads such exchanges, or there are more strata than places.
    AuditError
        There is nothing to draw from.
    """
    async with open_coders(config, asking=False) as coders:
        coder, rubric = _coder(coders, request)
        draw = ReviewDraw(
            id=f"draw_{secrets.token_hex(6)}",
            coder=coder.id,
            rubric=rubric,
            origin=request.origin,
            deployments=request.deployments,
            since=datetime.combine(first_kept_day(now, config.retention.content), time(), UTC),
            drawn_at=now,
            settings={"n": request.n, "seed": request.seed, "strata": list(request.strata)},
        )
        async with transaction(engine) as connection:
            sizes = await stratum_sizes(connection, draw, request.strata)
            drawn = await add_draw(connection, draw, request.strata, _places(sizes, request.n), sizes)
            texts = await _texts(connection, ExchangeCoder(coder), drawn)
    return DrawnSample(draw=draw, texts=tuple(texts), frame=sum(sizes.values()), gone=len(drawn) - len(texts))


async def read_sample(engine: AsyncEngine, config: Config, draw_id: str) -> DrawnSample:
    """Read a stored draw again, with the texts that are still there.

    Raises
    ------
    UsageError
        There is no such draw, or the configuration no longer has its coder.
    """
    async with open_coders(config, asking=False) as coders, transaction(engine) as connection:
        draw = await read_draw(connection, draw_id)
        if draw is None:
            raise UsageError(f"there is no draw {draw_id!r}")
        drawn = await read_drawn_items(connection, draw)
        texts = await _texts(connection, coder_of(coders, draw), drawn)
        frame = sum(row["n"] for row in await read_frame(connection, draw))
    return DrawnSample(draw=draw, texts=tuple(texts), frame=frame, gone=len(drawn) - len(texts))


def coder_of(coders: Sequence[Coder], draw: ReviewDraw) -> ExchangeCoder:
    """Return the coder whose codings were drawn, which alone reads their texts as they were read.

    Raises
    ------
    UsageError
        The configuration no longer has it.
    """
    for coder in coders:
        if coder.id == draw.coder:
            return ExchangeCoder(coder)
    raise UsageError(f"the judges or rules of {draw.id} are no longer those of the configuration; draw a new sample")


async def first_readable(
    connection: AsyncConnection, coder: ExchangeCoder, drawn: Sequence[Drawn], *, whole: bool
) -> ShownText | None:
    """Return the first text that is still there and as the judges read it; with ``whole`` one with its whole answer."""
    for start in range(0, len(drawn), _FEW):
        for text in await _texts(connection, coder, drawn[start : start + _FEW]):
            if not whole or text.passage.answer is not None:
                return text
    return None


def _coder(coders: Sequence[Coder], request: ReviewRequest) -> tuple[Coder, str]:
    """Find the coder of the requested codings, and the version of its rubric."""
    for coder in coders:
        name = coder.audit.name if coder.audit else None
        if name == request.audit and coder.panel is not None and coder.panel.judges:
            return coder, coder.panel.rubric
    audits = sorted({coder.audit.name for coder in coders if coder.audit and coder.panel})
    named = f"; audits that judges read: {', '.join(audits)}" if audits else ""
    what = f"audit {request.audit!r}" if request.audit else "planned calls"
    raise UsageError(f"no judge of the configuration reads {what}{named}")


def _places(sizes: dict[str, int], n: int) -> dict[str, int]:
    if not sizes:
        raise AuditError("there is nothing to draw from: no stored answer has an elaboration label of these judges")
    try:
        return allocate(sizes, n)
    except ValueError:
        raise UsageError(f"--n {n}: there are {len(sizes)} strata, and each needs a place") from None


async def _texts(connection: AsyncConnection, coder: ExchangeCoder, drawn: Sequence[Drawn]) -> list[ShownText]:
    texts: list[ShownText] = []
    for start in range(0, len(drawn), _AT_ONCE):
        part = drawn[start : start + _AT_ONCE]
        stored = {
            answer.facts["id"]: answer
            for answer in await read_again(connection, [answer.exchange_id for answer in part])
        }
        passages = [
            (answer, coder.passage(stored[answer.exchange_id])) for answer in part if answer.exchange_id in stored
        ]
        texts += _as_read(passages)
    return texts


def _as_read(passages: Sequence[tuple[Drawn, Passage | None]]) -> Iterator[ShownText]:
    for answer, passage in passages:
        if passage and hashlib.sha256(passage.text.encode("utf-8", "replace")).digest() == answer.remainder_hash:
            yield ShownText(
                exchange_id=answer.exchange_id,
                deployment=answer.deployment,
                passage=passage,
                has_selection=answer.has_selection,
            )
