"""Score the stored answers of compared deployments in bulk: vectors of encoders and scores of judges."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Select, Uuid, column, select, values
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.bulk.engines import Step, do_all
from auditor.bulk.pending import BulkRequest, Pending, PendingCounter
from auditor.bulk.run import done_of
from auditor.config import Config
from auditor.config.audits import EMBEDDING
from auditor.domain.ids import floor_id
from auditor.jobs.peer import scorers_of
from auditor.peers.scoring import Scorers
from auditor.peers.stored import compare, score_waiting, scorer_ids
from auditor.peers.subjects import JUDGE, ComparisonSpec, answers_of, compared, subject_of
from auditor.probes.forecast import VOTE, CallTokens, judge_deployments
from auditor.store.engine import transaction
from auditor.store.peer_scores import list_unscored, peer_scores, peer_vectors
from auditor.work import Clock, utc_now

#: Approximate tokens of an answer that an endpoint embeds.
_EMBEDDED: Final = CallTokens(prompt=VOTE.prompt, completion=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScorePiece:
    """Answers of a comparison to be scored by one of its instruments."""

    label: str  #: label of the comparison
    instrument: str  #: ``embedding``, or ``judge:`` with the judge's name
    ids: tuple[UUID, ...]


class _Comparisons:
    """The comparisons of a configuration with their scorers, by label."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._subjects: dict[str, ComparisonSpec] = {}
        self._scorers: dict[str, Scorers] = {}

    def subjects(self) -> Sequence[ComparisonSpec]:
        if not self._subjects:
            made = [subject_of(self._config, entry, self._clock()) for entry in compared(self._config)]
            self._subjects = {subject.label: subject for subject in made}
        return list(self._subjects.values())

    def subject(self, label: str) -> ComparisonSpec:
        return next(subject for subject in self.subjects() if subject.label == label)

    async def scorers(self, subject: ComparisonSpec) -> Scorers:
        """Return the scorers of a comparison; they are made when first needed, because loading a model is slow."""
        if subject.label not in self._scorers:
            self._scorers[subject.label] = await asyncio.to_thread(scorers_of, self._config, subject)
        return self._scorers[subject.label]

    async def aclose(self) -> None:
        for scorers in self._scorers.values():
            await scorers.aclose()


@asynccontextmanager
async def open_scoring(store: AsyncEngine, config: Config) -> AsyncIterator[Step]:
    """Prepare the function that scores a piece, as the auditor scores what waits."""
    async with aclosing(_Comparisons(config, utc_now)) as comparisons:

        async def step(piece: ScorePiece) -> int:
            subject = comparisons.subject(piece.label)
            scorers = _only(await comparisons.scorers(subject), piece.instrument)
            return await score_waiting(store, _among(subject, piece.ids), scorers, utc_now)

        yield step


def _only(scorers: Scorers, instrument: str) -> Scorers:
    if instrument == EMBEDDING:
        return replace(scorers, judges=())
    return Scorers(judges=tuple(judge for judge in scorers.judges if instrument == f"{JUDGE}{judge.name}"))


def _among(subject: ComparisonSpec, ids: Sequence[UUID]) -> tuple[Select[Any], ...]:
    named = values(column("id", Uuid), name="named").data([(exchange_id,) for exchange_id in ids])
    return answers_of(subject, floor_id(subject.since), select(named.c.id))


async def _find_unscored(
    store: AsyncEngine, config: Config, comparisons: _Comparisons, budget_usd: float | None
) -> Pending:
    """Find what each instrument of each comparison has not scored, the oldest first, up to a budget."""
    counter = PendingCounter(budget_usd)
    for subject in comparisons.subjects():
        for instrument, coder in scorer_ids(await comparisons.scorers(subject)).items():
            table = peer_vectors if instrument == EMBEDDING else peer_scores
            async with transaction(store) as connection:
                listed = [await list_unscored(connection, group, table, coder) for group in subject.answers]
            ids = sorted({each for group in listed for each in group})
            counter.add(ids, _price(config, subject, instrument), partial(_piece, subject.label, instrument))
    return counter.pending()


def _piece(label: str, instrument: str, ids: tuple[UUID, ...]) -> ScorePiece:
    return ScorePiece(label=label, instrument=instrument, ids=ids)


def _price(config: Config, subject: ComparisonSpec, instrument: str) -> float:
    """Return the estimated price in USD of one score; an instrument without a declared price costs nothing."""
    if instrument == EMBEDDING:
        named = None if subject.embedding is None else subject.embedding.deployment
        deployment = next((candidate for candidate in config.deployments if candidate.name == named), None)
        return 0.0 if deployment is None else _EMBEDDED.price_at(deployment) or 0.0
    judge = judge_deployments(config).get(instrument.removeprefix(JUDGE))
    return 0.0 if judge is None else VOTE.price_at(judge) or 0.0


async def score_pending(
    store: AsyncEngine,
    config: Config,
    request: BulkRequest,
    on_progress: Callable[[int, int], None],
    clock: Clock = utc_now,
) -> tuple[Pending, int]:
    """Find what is not scored, score it unless this is a dry run, and compare again.

    Returns
    -------
    What was found, and the number of new scores and vectors.

    Raises
    ------
    JudgeUnavailable
        A scorer could not be asked; complete scores are stored.
    UsageError, AuditError
        A scorer could not be made.
    StoreUnavailable
        PostgreSQL does not answer.
    """
    async with aclosing(_Comparisons(config, clock)) as comparisons:
        pending = await _find_unscored(store, config, comparisons, request.budget_usd)
        if request.dry_run or not pending.pieces:
            return pending, 0
        count = done_of(pending.count, on_progress)
        try:
            return pending, await do_all(store, config, request.engine, open_scoring, pending.pieces, count)
        finally:
            for subject in comparisons.subjects():
                await compare(store, subject, await comparisons.scorers(subject), clock())
