"""A replay's way from its plan to its answers: what is left to be done, and doing it.

``plan`` says what is asked, ``conclusion`` what came of it; ``cli`` opens the store, and shows the price before
anything is spent.
"""

from dataclasses import dataclass

from auditor.access import GatewayAccess
from auditor.config.audits import LEXICON
from auditor.jobs.work import Work
from auditor.probes.run import Limits
from auditor.store.engine import reading
from replay import stored
from replay.coding import planned_coder
from replay.counted import Counted, OnProgress
from replay.plan import Begun
from replay.rerun import Cost, Sending, Sent, estimate_calls, estimate_judging, send_calls


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """What is still to be sent and read."""

    calls: tuple[Cost, ...]
    judging: tuple[Cost, ...]

    @property
    def nothing(self) -> bool:
        """Whether nothing would be spent."""
        return not self.calls and not self.judging


async def price(work: Work, begun: Begun) -> Price:
    """Estimate what is left to be done: calls without an answer, and answers that judges have not read."""
    waiting = [call for call in begun.calls if call.ref not in begun.answered]
    coded = 0
    coder = planned_coder(work)
    ids = [*begun.parents, *begun.answered.values()]
    async with reading(work.engine) as connection:
        for one in {coder.id: coder, **{reader.coder.id: reader.coder for reader in work.readers.values()}}.values():
            for each in (one.id, f"{one.id}/replay"):
                coded += len(await stored.read_codings(connection, each, ids))
    judges = [name for name in work.config.panel.judges if name != LEXICON]
    unread = len(ids) - coded + len(waiting)
    return Price(
        calls=estimate_calls(waiting, begun.requests, work.config),
        judging=estimate_judging(max(unread, 0), judges, work.config),
    )


async def send(
    work: Work,
    begun: Begun,
    access: GatewayAccess,
    on_progress: OnProgress,
    limits: Limits,
    concurrency: int | None = None,
) -> Sent:
    """Send what has no answer yet, within this run's limits; ``concurrency`` is that of each deployment."""
    done = Counted("asking", len(begun.calls), on_progress)
    done.add(len(begun.answered))
    sending = Sending(requests=begun.requests, means=begun.means, limits=limits, concurrency=concurrency)
    return await send_calls(work.engine, work.config, access, begun.id, begun.calls, sending, lambda: done.add(1))
