"""Describe bulk work: what is asked for, and what is pending. Find what is to be coded, and what judging it costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from auditor.bulk.engines import BulkEngine, BulkPiece
from auditor.coding.coders import Coder
from auditor.config import Config
from auditor.domain.ids import floor_id
from auditor.probes.forecast import VOTE, judge_deployments
from auditor.store.engine import transaction
from auditor.store.queue import Chunk
from auditor.store.uncoded import read_pending
from auditor.work import Work

#: Exchanges of one piece of work: few enough that a lost one is soon repeated.
CHUNK: Final = 256
_PAGE: Final = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkRequest:
    """What to do, and where."""

    engine: BulkEngine
    since: datetime | None = None
    until: datetime | None = None
    budget_usd: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """Codings or scores that are missing, in pieces of work, and the estimated cost of making them."""

    pieces: Sequence[BulkPiece]
    count: int  #: number of codings or scores
    usd: float  #: cost of judges whose deployments declare a price
    left: int  #: codings or scores that the budget leaves out


class PendingCounter:
    """Collects pieces as long as the estimated cost of their judges is within a budget, and counts what is left out."""

    def __init__(self, budget_usd: float | None) -> None:
        self._budget_usd = budget_usd
        self._pieces: list[BulkPiece] = []
        self._spent, self._count, self._left = 0.0, 0, 0

    def add(self, ids: Sequence[UUID], price: float, piece: Callable[[tuple[UUID, ...]], BulkPiece]) -> None:
        """Add exchanges in their order.

        Parameters
        ----------
        price
            Price of one coding or score, in USD.
        piece
            Makes the piece of work of some exchanges.
        """
        paid = len(ids)
        if self._budget_usd is not None and price:
            paid = min(paid, int((self._budget_usd - self._spent) / price + 1e-9))
        self._left += len(ids) - paid
        self._count, self._spent = self._count + paid, self._spent + paid * price
        self._pieces += [piece(tuple(ids[start : min(start + CHUNK, paid)])) for start in range(0, paid, CHUNK)]

    def pending(self) -> Pending:
        """Return what was added."""
        return Pending(pieces=self._pieces, count=self._count, usd=self._spent, left=self._left)


async def find_pending(
    work: Work, since: datetime | None, until: datetime | None, budget_usd: float | None = None
) -> Pending:
    """Find what each coder has not coded, the oldest first, up to a budget.

    Parameters
    ----------
    since, until
        Exchanges that began in [since, until); None: from the first or to the last that is kept.
    budget_usd
        Exchanges are left out as soon as the estimated cost of their judges is over it.

    Raises
    ------
    StoreUnavailable
        PostgreSQL does not answer.
    """
    counter = PendingCounter(budget_usd)
    for scope in work.scopes():
        price = judging_price(work.coders[scope.coder].coder, work.config)
        low = scope.since if since is None else max(scope.since, floor_id(since))
        high = None if until is None else floor_id(until)
        while True:
            async with transaction(work.engine) as connection:
                page = await read_pending(connection, scope, low, high, _PAGE)
            if not page:
                break
            counter.add(page, price, partial(_chunk, scope.coder))
            low = UUID(int=page[-1].int + 1)
    return counter.pending()


def _chunk(coder: str, ids: tuple[UUID, ...]) -> Chunk:
    return Chunk(coder=coder, ids=ids)


def judging_price(coder: Coder, config: Config) -> float:
    """Return the estimated price in USD of one answer's votes; judges without a declared price cost nothing."""
    deployments = judge_deployments(config)
    judges = () if coder.panel is None else coder.panel.judges
    return sum(VOTE.price_at(deployments[judge.name]) or 0.0 for judge in judges if judge.name in deployments)
