"""Find what is to be coded in bulk, and what asking the judges costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from auditor.coding.coders import Coder
from auditor.config import Config
from auditor.domain.ids import floor_id
from auditor.jobs.work import Work
from auditor.probes.estimate import VOTE, judge_deployments
from auditor.store.engine import transaction
from auditor.store.queue import Chunk
from auditor.store.uncoded import read_pending

#: Exchanges of one chunk: few enough that a lost one is soon repeated.
CHUNK: Final = 256
_PAGE: Final = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """Exchanges without a coding, in chunks, and the estimated cost of judging them."""

    chunks: Sequence[Chunk]
    exchanges: int
    usd: float  #: of judges whose deployments declare a price
    left: int  #: exchanges that the budget leaves out


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
    chunks: list[Chunk] = []
    spent, count, left = 0.0, 0, 0
    for scope in work.scopes():
        price = judging_price(work.coders[scope.coder].coder, work.config)
        low = scope.since if since is None else max(scope.since, floor_id(since))
        high = None if until is None else floor_id(until)
        while True:
            async with transaction(work.engine) as connection:
                page = await read_pending(connection, scope, low, high, _PAGE)
            if not page:
                break
            paid = len(page)
            if budget_usd is not None and price:
                paid = min(paid, int((budget_usd - spent) / price + 1e-9))
            left += len(page) - paid
            count, spent = count + paid, spent + paid * price
            chunks += [
                Chunk(coder=scope.coder, ids=tuple(page[start : min(start + CHUNK, paid)]))
                for start in range(0, paid, CHUNK)
            ]
            low = UUID(int=page[-1].int + 1)
    return Pending(chunks=chunks, exchanges=count, usd=spent, left=left)


def judging_price(coder: Coder, config: Config) -> float:
    """Return the estimated price in USD of one answer's votes; judges without a declared price cost nothing."""
    asked = judge_deployments(config)
    judges = () if coder.panel is None else coder.panel.judges
    return sum(VOTE.price_at(asked[judge.name]) or 0.0 for judge in judges if judge.name in asked)
