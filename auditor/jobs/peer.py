"""Ask due rounds of questions, mirror clients' prompts, and score and compare the answers of both.

Three loops run concurrently, so that a slow deployment does not delay comparisons. They are not queue jobs, because a
round may last for hours. Any number of processes may run them: each round, route and comparison has one sender at a
time.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from sqlalchemy import text

from auditor.access import gateway_access
from auditor.config import Config
from auditor.errors import AuditError
from auditor.peers.asking import ask_due
from auditor.peers.mirror import mirror_due
from auditor.peers.scoring import Scorers, load_scorers
from auditor.peers.stored import compare, score_waiting
from auditor.peers.subjects import ComparisonSpec, compared, subject_of
from auditor.probes.run import Runner
from auditor.store.engine import transaction
from auditor.store.peers import any_answers
from auditor.store.queue import ESTIMATE, ask_for
from auditor.work import Work

log = logging.getLogger(__name__)

#: Seconds between two checks.
EVERY: Final = 5.0
#: One process scores at a time; the next then finds little left.
_LOCK: Final = text("SELECT pg_try_advisory_xact_lock(hashtext('biasmeter peers'))")


async def repeat_asking(work: Work) -> None:
    """Ask the questions that are due, repeatedly, until cancelled."""

    async def look() -> None:
        if work.config.peers:
            await ask_due(_runner(work))

    await _repeat("peers", look)


async def repeat_mirroring(work: Work) -> None:
    """Mirror the waiting prompts, repeatedly, until cancelled."""

    async def look() -> None:
        if any(route.peers for route in work.config.routes):
            await mirror_due(_runner(work))

    await _repeat("mirroring", look)


async def repeat_comparing(work: Work) -> None:
    """Score and compare new answers, repeatedly, until cancelled."""
    comparing = Comparing(work)

    async def look() -> None:
        before = comparing.made
        try:
            await comparing.step()
        finally:
            if comparing.made > before:
                async with transaction(work.engine) as connection:
                    await ask_for(connection, ESTIMATE, f"{ESTIMATE}:peers:{int(time.time())}")

    try:
        await _repeat("comparing peers", look)
    finally:
        await comparing.aclose()


class Comparing:
    """A loop body that scores new answers and updates the comparisons.

    Scorers are made when first needed and then kept, because loading a model is slow.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._scorers: dict[str, Scorers] = {}
        self.made = 0  #: comparisons so far

    async def aclose(self) -> None:
        """Close the clients of the scorers."""
        for scorers in self._scorers.values():
            await scorers.aclose()

    async def step(self) -> None:
        """Score and compare every domain and route once.

        Raises
        ------
        JudgeUnavailable, UsageError, AuditError
            A scorer could not be made or asked. The other domains and routes were processed.
        StoreUnavailable
            The store does not answer.
        """
        failures: list[AuditError] = []
        async with transaction(self._work.engine) as connection:
            if not (await connection.execute(_LOCK)).scalar():
                return
            for entry in compared(self._work.config):
                try:
                    subject = subject_of(self._work.config, entry, self._work.clock())
                    if await any_answers(connection, subject.answers):
                        await self._look(subject)
                except AuditError as error:
                    failures.append(error)
        if failures:
            raise failures[0]

    async def _look(self, subject: ComparisonSpec) -> None:
        work = self._work
        if subject.label not in self._scorers:
            self._scorers[subject.label] = await asyncio.to_thread(scorers_of, work.config, subject)
        scorers = self._scorers[subject.label]
        try:
            await score_waiting(work.engine, subject.answers, scorers, work.clock)
        finally:
            self.made += await compare(work.engine, subject, scorers, work.clock())


def scorers_of(config: Config, subject: ComparisonSpec) -> Scorers:
    """Make the scorers of a comparison.

    Raises
    ------
    UsageError, ConfigError
        The errors of `load_scorers`; also if they are reached through the gateway, and no gateway is known.
    """
    behind = subject.judges or (subject.embedding is not None and subject.embedding.deployment is not None)
    return load_scorers(
        config,
        embedding=subject.embedding,
        instruction=subject.instruction,
        judges=subject.judges,
        target=subject.sought,
        through=gateway_access(config) if behind else None,
    )


async def _repeat(name: str, look: Callable[[], Awaitable[None]]) -> None:
    complaint = ""
    while True:
        try:
            await look()
            complaint = ""
        except AuditError as error:
            if str(error) != complaint:
                log.warning("%s: %s", name, error)
            complaint = str(error)
        await asyncio.sleep(EVERY)


def _runner(work: Work) -> Runner:
    return Runner(engine=work.engine, config=work.config, access=gateway_access(work.config), now=work.clock)
