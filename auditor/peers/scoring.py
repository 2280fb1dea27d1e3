"""Score answers: a vector by the embedder and a score by each judge of the domain.

The command for files and the job for stored answers both use ``score``, which works block by block.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from auditor.counting.rows import explain
from auditor.documents.jsonl import BadRow, Record
from auditor.peers.embedding import Embedded, Embedder, load_embedder
from auditor.peers.judging import DeviationJudge, Score, load_deviation_judges
from auditor.peers.score_table import BLOCK_SCORE
from auditor.peers.together import run_together

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
    """A deployment's answer to a question: a text, a content filter's block, or a transport error.

    ``response`` is the text that was received; for a block the provider's words or None. ``fields`` is the row that it
    came from; its fields are kept.
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
        """Whether the deployment answered: a blocked answer counts, but not a transport error."""
        return self.blocked or not self.error


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """An answer with its vector and scores.

    ``vector`` has shape [d]; None without an embedder, for an error, or for a zero vector. ``truncated`` is whether the
    text was cut; None without a vector. ``scores`` has one entry per judge; empty for an error.
    """

    answer: PeerAnswer
    vector: NDArray[np.float32] | None = None
    truncated: bool | None = None
    scores: tuple[Score, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Scorers:
    """The embedder and the judges of a domain; either may be absent."""

    embedder: Embedder | None = None
    judges: tuple[DeviationJudge, ...] = ()

    async def aclose(self) -> None:
        """Close what they opened."""
        for scorer in (self.embedder, *self.judges):
            if scorer is not None:
                await scorer.aclose()


def load_scorers(
    config: "Config",
    *,
    embedding: "Embedding | None",
    instruction: str,
    judges: Sequence[str] = (),
    target: str = "",
    through: "GatewayAccess | None" = None,
) -> Scorers:
    """Make the scorers of a domain; loading a local model takes seconds.

    Parameters
    ----------
    config
        Configuration with the deployments and judges.
    embedding
        Settings of the embedder that turns answers into vectors; None for judges alone.
    instruction
        Instruction of an INSTRUCTOR model where ``embedding`` names none.
    judges
        Names of the judges.
    target
        Text of what judges look for; it follows the words "signs of".
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

    Memory is bounded by one block of answers. The embedder reads the text as received, also that of a blocked answer
    (the provider's words, or the empty text). Judges do not read blocked answers: these score ``BLOCK_SCORE``, the
    score of the scale for a rejected question.

    Parameters
    ----------
    answers
        Answers to any number of questions, of any number of deployments.
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
    """Return the fields that scoring adds to a row of ``scores.jsonl``.

    ``missing`` has the reason by instrument if an answer has no value; ``embedded_by`` and ``scored_by`` name the
    coders.
    """
    if not scored.answer.came:
        return {}
    added: Record = {}
    missing = {f"judge:{score.judge}": score.reason for score in scored.scores if score.value is None}
    if scorers.judges:
        added["score"] = {score.judge: score.value for score in scored.scores if score.value is not None}
        added["justification"] = {score.judge: score.justification for score in scored.scores}
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
        answer_scores = tuple(islice(scores, len(scorers.judges))) if answer.came else ()
        scored.append(Scored(answer=answer, vector=vector, truncated=truncated, scores=answer_scores))
    return scored


async def _judge(judge: DeviationJudge, answer: PeerAnswer) -> Score:
    if answer.blocked:
        return Score(judge=judge.name, value=int(BLOCK_SCORE), justification=_BY_RULE)
    return await judge.read(answer.question, answer.response or "")


def _vector(embedded: Embedded | None, at: int) -> tuple[NDArray[np.float32], bool] | tuple[None, None]:
    """Return a vector and whether its text was cut; None for both for a zero vector."""
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


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that are read; absent and null are the same."""

    question_id: str | int
    deployment: str
    question: str | None = None
    theme: str | int | None = None
    response: str | None = None
    blocked: bool | None = None
    error: Any = None


def answer_reader(questions: Mapping[str, str]) -> Callable[[Record], PeerAnswer]:
    """Return a reader of rows; a row without its question takes it from ``questions``, by id.

    Examples
    --------
    >>> read = answer_reader({"q1": "Who owns it?"})
    >>> read({"question_id": "q1", "deployment": "a", "response": "Nobody knows."}).question
    'Who owns it?'
    """
    seen: set[tuple[str, str]] = set()

    def read(record: Record) -> PeerAnswer:
        row = _convert(record)
        key = (str(row.question_id), row.deployment)
        if key in seen:
            raise BadRow(f"a second answer of {row.deployment!r} to question {row.question_id!r}")
        seen.add(key)
        question = row.question or questions.get(key[0])
        if question is None:
            raise BadRow("question is absent, and the domain has none of this question_id")
        return PeerAnswer(
            question_id=row.question_id,
            deployment=row.deployment,
            question=question,
            theme=row.theme,
            response=row.response,
            blocked=bool(row.blocked),
            error=row.error,
            fields=record,
        )

    return read


def _convert(record: Record) -> _Row:
    try:
        row = msgspec.convert(record, _Row)
    except msgspec.ValidationError as error:
        raise BadRow(explain(error)) from None
    for name in ("question_id", "deployment"):
        if not str(getattr(row, name)).strip():
            raise BadRow(f"{name} is empty")
    if row.response is None and not row.blocked and not row.error:
        raise BadRow("has no response, and neither a block nor an error")
    return row
