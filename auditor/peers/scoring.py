"""From answers to rows of ``scores.jsonl``: every answer as an embedder and the judges of its domain see it.

The one seam of scoring: a file command and the live job hand their answers in and take them out scored, a block at a
time. Nothing here knows where answers come from, or where scores go.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from auditor.peers.embedding import Embedded, Embedder, load_embedder
from auditor.peers.judging import DeviationJudge, Score, load_deviation_judges
from auditor.peers.score_table import BLOCK_SCORE
from auditor.peers.together import run_together
from auditor.rows import Record

if TYPE_CHECKING:
    from auditor.access import GatewayAccess
    from auditor.config import Config
    from auditor.config.audits import Embedding

#: Answers, and their characters, that are held at once.
_MOST_ANSWERS: Final = 1024
_MOST_CHARACTERS: Final = 8_000_000
_BY_RULE: Final = "A content filter blocked the answer: scored by rule."
_NO_DIRECTION: Final = "no_direction"


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerAnswer:
    """What a deployment gave to a question: words, a content filter's block, or an error on the way.

    ``response`` is what the asker received; of a block, the provider's words or None. ``fields`` is the row it came
    from, which travels through.
    """

    question_id: str | int
    deployment: str
    question: str
    theme: str | int | None = None
    response: str | None = None
    blocked: bool = False
    error: Any = None
    fields: Record = field(default_factory=dict)

    @property
    def came(self) -> bool:
        """Whether the deployment answered. A transport error is no answer; a block is one, even if it came as one."""
        return self.blocked or not self.error


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """An answer with what was found about it.

    ``vector`` has shape [d]; None without an embedder, for an error, or where the embedder gave no direction.
    ``truncated`` says whether it was cut to fit, None without a vector. ``scores`` has one entry a judge, none for an
    error.
    """

    answer: PeerAnswer
    vector: NDArray[np.float32] | None = None
    truncated: bool | None = None
    scores: tuple[Score, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Scorers:
    """What one domain's answers are scored by; either part may be missing."""

    embedder: Embedder | None = None
    judges: tuple[DeviationJudge, ...] = ()

    async def aclose(self) -> None:
        """Give back what they hold open."""
        for one in (self.embedder, *self.judges):
            if one is not None:
                await one.aclose()


def load_scorers(
    config: "Config",
    *,
    embedding: "Embedding | None",
    instruction: str,
    judges: Sequence[str] = (),
    target: str = "",
    through: "GatewayAccess | None" = None,
) -> Scorers:
    """Make what answers are scored by. A model that runs here is loaded, which takes a while.

    Parameters
    ----------
    config
        Where deployments and judges are found.
    embedding
        What turns answers into vectors; None for judges alone.
    instruction
        What an INSTRUCTOR model is told where ``embedding`` names no instruction.
    judges
        Names of the judges.
    target
        What they look for: it follows the words "signs of".
    through
        The gateway, where endpoints are to be reached through its door.

    Raises
    ------
    UsageError
        For a judge that cannot score, or an embedder that cannot do what is asked.
    ConfigError
        For a deployment that is not there.
    """
    readers = load_deviation_judges(judges, config, target, through=through)
    if embedding is None:
        return Scorers(judges=readers)
    embedder = load_embedder(embedding, config, instruction=instruction, through=through)
    return Scorers(embedder=embedder, judges=readers)


async def score(answers: Iterable[PeerAnswer], scorers: Scorers) -> AsyncIterator[Scored]:
    """Yield every answer with its vector and its scores, in the order of the answers.

    Memory is bounded by a block of answers, however many there are. What the deployment gave is embedded as the asker
    received it, blocks too: the provider's words, or the empty text. Judges read answers; a block they are not shown,
    it gets ``BLOCK_SCORE`` by rule, the scale's score for a question that is turned away.

    Parameters
    ----------
    answers
        To any number of questions, of any number of deployments.
    scorers
        The embedder and the judges of their domain.

    Raises
    ------
    JudgeUnavailable
        When a judge or an embedding endpoint could not be asked; what was yielded before holds.
    AuditError
        When the embedder gave no usable vectors.
    """
    for block in _blocks(answers):
        for scored in await _score_block(block, scorers):
            yield scored


def score_fields(scored: Scored, scorers: Scorers) -> Record:
    """Give the fields that scoring adds to a row of ``scores.jsonl``.

    ``missing`` has, by instrument, why an answer that came has no number; ``embedded_by`` and ``scored_by`` say which
    coder made the others.
    """
    if not scored.answer.came:
        return {}
    added: Record = {}
    missing = {f"judge:{one.judge}": one.reason for one in scored.scores if one.value is None}
    if scorers.judges:
        added["score"] = {one.judge: one.value for one in scored.scores if one.value is not None}
        added["justification"] = {one.judge: one.justification for one in scored.scores}
        added["scored_by"] = {judge.name: judge.coder for judge in scorers.judges}
    if scorers.embedder is not None:
        added["embedded_by"] = scorers.embedder.encoding.coder
        if scored.vector is None:
            missing["embedding"] = _NO_DIRECTION
        else:
            added["embedding"] = scored.vector.tolist()
            added["truncated"] = scored.truncated
    return {**added, "missing": missing} if missing else added


async def _score_block(block: Sequence[PeerAnswer], scorers: Scorers) -> list[Scored]:
    came = [answer for answer in block if answer.came]
    embedded = None
    if came and scorers.embedder is not None:
        embedded = await scorers.embedder.embed([answer.response or "" for answer in came])
    scores = iter(await run_together(_judge(judge, answer) for answer in came for judge in scorers.judges))
    places = iter(range(len(came)))
    scored = []
    for answer in block:
        vector, truncated = _vector(embedded, next(places)) if answer.came else (None, None)
        own = tuple(islice(scores, len(scorers.judges))) if answer.came else ()
        scored.append(Scored(answer=answer, vector=vector, truncated=truncated, scores=own))
    return scored


async def _judge(judge: DeviationJudge, answer: PeerAnswer) -> Score:
    if answer.blocked:
        return Score(judge=judge.name, value=int(BLOCK_SCORE), justification=_BY_RULE)
    return await judge.read(answer.question, answer.response or "")


def _vector(embedded: Embedded | None, at: int) -> tuple[NDArray[np.float32], bool] | tuple[None, None]:
    """Return one vector and whether its text was cut; neither for a vector that points nowhere."""
    if embedded is None or not embedded.vectors[at].any():
        return None, None
    return embedded.vectors[at], bool(embedded.truncated[at])


def _blocks(answers: Iterable[PeerAnswer]) -> Iterator[list[PeerAnswer]]:
    """Cut a stream of answers into blocks of bounded size; a very long answer makes a short block."""
    block: list[PeerAnswer] = []
    held = 0
    for answer in answers:
        block.append(answer)
        held += len(answer.response or "") + len(answer.question)
        if len(block) == _MOST_ANSWERS or held > _MOST_CHARACTERS:
            yield block
            block, held = [], 0
    if block:
        yield block
