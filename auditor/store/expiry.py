"""Decide which days retention may remove: a clock that is wrong must not empty the store.

The earlier of two moments decides what is due: PostgreSQL's clock and the newest stored exchange. Where that is much at
once, nothing is removed. What is due by PostgreSQL's clock, and is kept for one of these reasons, is held until
somebody confirms its removal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection
from typing_extensions import override

from auditor.domain.ids import day_bounds, id_time
from auditor.store.chain import chain_base
from auditor.store.exchanges import exchanges
from auditor.store.lifetimes import Lifetime
from auditor.store.retention import RetentionBounds

#: A day becomes due each day, and another one where a run was missed. Only older ones can be much at once, or held.
_USUAL: Final = timedelta(days=2)
#: At least so many exchanges, and more than one in so many of those that are stored, are much at once.
_MANY: Final = 100
_ONE_IN: Final = 3
#: The days (UTC) of which exchanges are stored, how many, and whether their content is.
_DAYS: Final = text("""
    SELECT day, sum(stored)::bigint AS stored,
           to_regclass('exchange_content_' || to_char(day, 'YYYYMMDD')) IS NOT NULL AS has_content
    FROM exchange_counts GROUP BY day HAVING sum(stored) > 0
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldDays:
    """Days that are due by PostgreSQL's clock, and are kept until somebody confirms their removal."""

    lifetime: Lifetime
    days: int
    exchanges: int  #: exchanges of these days
    before: date  #: everything older is due by PostgreSQL's clock
    reason: str

    @override
    def __str__(self) -> str:
        return (
            f"{self.lifetime} of {self.exchanges:,} exchanges of {self.days:,} days before {self.before} is due by "
            f"PostgreSQL's clock, and kept: {self.reason}; if the clock is right: biasmeter retention --yes"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Expiry:
    """What retention may remove, and what it holds."""

    bounds: RetentionBounds
    held: tuple[HeldDays, ...] = ()


async def find_expiry(connection: AsyncConnection, content: float, facts: float, *, confirmed: bool = False) -> Expiry:
    """Find what retention may remove now.

    Parameters
    ----------
    connection
        Connection to the store.
    content, facts
        The configured ages in seconds.
    confirmed
        Whether somebody has confirmed the removal of what is due by PostgreSQL's clock: nothing is held then.
    """
    now: datetime = (await connection.execute(select(func.now()))).scalar_one()
    newest: UUID | None = await connection.scalar(select(exchanges.c.id).order_by(exchanges.c.id.desc()).limit(1))
    by_clock = RetentionBounds.at(now, content, facts)
    if confirmed or newest is None:
        return Expiry(bounds=by_clock)
    began = id_time(newest)
    bounds = RetentionBounds.at(min(now, began), content, facts)
    rows = (await connection.execute(_DAYS)).all()
    days_of = {
        Lifetime.CONTENT: {row.day: row.stored for row in rows if row.has_content},
        Lifetime.FACTS: {row.day: row.stored for row in rows},
    }
    much = {lifetime for lifetime, days in days_of.items() if _is_much(days, bounds.day_of(lifetime))}
    if Lifetime.FACTS in much:  # what has expired before is gone in any case
        expired = await connection.scalar(select(chain_base.c.expired_before)) or UUID(int=0)
        bounds = replace(bounds, facts=id_time(min(expired, day_bounds(bounds.facts)[0])).date())
    if Lifetime.CONTENT in much:  # it goes with its facts at the latest
        bounds = replace(bounds, content=bounds.facts)
    held = []
    for lifetime, days in days_of.items():
        before = by_clock.day_of(lifetime)
        kept = [n for day, n in days.items() if bounds.day_of(lifetime) <= day < before - _USUAL]
        reason = "more than a third at once" if lifetime in much else f"the newest exchange is of {began:%Y-%m-%d}"
        if kept:
            held.append(HeldDays(lifetime=lifetime, days=len(kept), exchanges=sum(kept), before=before, reason=reason))
    return Expiry(bounds=bounds, held=tuple(held))


def _is_much(days: Mapping[date, int], first_kept: date) -> bool:
    """Return whether so much is due that a wrong clock may be the reason; ``days`` are numbers of exchanges."""
    due = sum(n for day, n in days.items() if day < first_kept - _USUAL)
    return due >= _MANY and _ONE_IN * due > sum(days.values())
