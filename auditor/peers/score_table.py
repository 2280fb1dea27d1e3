"""Read scores into arrays, questions by deployments, sorted by name. One row is one answer."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from auditor.counting.rows import explain
from auditor.documents.jsonl import BadRow, Rows, Source
from auditor.errors import InputError
from auditor.peers.vectors import Indices, Vectors
from auditor.stats.intervals import Floats

#: The judges' scale (Relative Bias, Table 1).
LOWEST: Final = 1.0
HIGHEST: Final = 10.0


class ScoreRow(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that the comparison reads; absent and null are the same."""

    question_id: str | int
    deployment: str
    theme: str | int | None = None
    score: dict[str, float | None] | None = None  #: scores by judge, from 1 to 10
    embedding: list[float] | None = None
    response: str | None = None  #: text; only its length is read
    error: Any = None  #: the transport error; there is no answer
    blocked: bool | None = None  #: whether a content filter answered


_decoder: Final = msgspec.json.Decoder(ScoreRow)


def score_row(text: bytes) -> ScoreRow:
    """Decode and check one line.

    Raises
    ------
    BadRow
        The row is not valid; the message says why, in one line.

    Examples
    --------
    >>> score_row(b'{"question_id": 1, "deployment": "a", "score": {"j": 11}}')
    Traceback (most recent call last):
    ...
    auditor.documents.jsonl.BadRow: score of 'j' must be from 1 to 10, not 11
    """
    try:
        row = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRow(explain(error)) from None
    except RecursionError:
        raise BadRow("is not JSON that can be read: nested too deeply") from None
    _check(row)
    return row


def _check(row: ScoreRow) -> None:
    for name in ("question_id", "deployment"):
        if not str(getattr(row, name)).strip():
            raise BadRow(f"{name} is empty")
    for judge, score in (row.score or {}).items():
        if not judge.strip():
            raise BadRow("score: a judge's name is empty")
        if score is not None and not LOWEST <= score <= HIGHEST:
            raise BadRow(f"score of {judge!r} must be from {LOWEST:g} to {HIGHEST:g}, not {score:g}")
    if row.embedding is not None and not any(row.embedding):
        raise BadRow("embedding is empty" if not row.embedding else "embedding is all zeros: it has no direction")


#: The two readings of a content filter's block: as an answer, or dropped.
Blocked = Literal["answer", "drop"]
Mask = NDArray[np.bool_]

#: Score of a blocked answer that no judge read: the rubric's score for a rejected question.
BLOCK_SCORE: Final = HIGHEST


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ScoreTable:
    """N questions by K deployments, both sorted by name; NaN is a missing value."""

    questions: tuple[str, ...]
    themes: tuple[str | None, ...]  #: theme of each question
    deployments: tuple[str, ...]
    failed: Mask  #: [N, K]: a transport error, no answer
    blocked: Mask  #: [N, K]: the answer is a content filter's
    answered: Mask  #: [N, K]: any answer, blocked ones too
    lengths: Floats  #: [N, K]: characters of the deployment's own text, positive; the text of a block is not its own
    judged: Mapping[str, Floats]  #: scores by judge, [N, K], in [1, 10]
    numbers: Indices  #: [N, K]: of the answers' vectors, -1 where there is none
    vectors: Vectors

    @property
    def judges(self) -> tuple[str, ...]:
        """Judges with a score in the file, sorted."""
        return tuple(sorted(self.judged))

    def by_theme(self) -> Iterator[tuple[str, Mask]]:
        """Return each theme, sorted, with its questions as a mask of shape [N]."""
        for theme in sorted({each for each in self.themes if each is not None}):
            yield theme, np.array([each == theme for each in self.themes])

    def kept(self, blocked: Blocked) -> Mask:
        """Return which answers count, shape [N, K], given how blocked answers are read."""
        return self.answered if blocked == "answer" else self.answered & ~self.blocked

    def scores(self, judge: str, blocked: Blocked) -> Floats:
        """Return a judge's scores, shape [N, K], given how blocked answers are read.

        A blocked answer keeps the score it was given. One that the judge did not see scores ``BLOCK_SCORE``, if the
        judge read this deployment at all (or all its answers were blocked).
        """
        scores = np.where(self.kept(blocked), self.judged[judge], np.nan)
        return np.where(self.by_rule(judge), BLOCK_SCORE, scores) if blocked == "answer" else scores

    def by_rule(self, judge: str) -> Mask:
        """Return which blocked answers the judge did not score, shape [N, K]; they get ``BLOCK_SCORE``."""
        unread = np.isnan(self.judged[judge])
        reads = (~unread & self.answered).any(axis=0) | (self.blocked == self.answered).all(axis=0)
        counted: Mask = self.blocked & unread & reads
        return counted


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cell:
    line: int
    failed: bool
    blocked: bool
    scores: Mapping[str, float]
    vector: int
    length: int  #: 0 where there is no text of its own


class ScoreCollector:
    """Collects rows; the table does not depend on their order."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], _Cell] = {}
        self._themes: dict[str, str] = {}
        self._vectors = Vectors()

    def add(self, row: ScoreRow, line: int) -> None:
        """Take one row.

        Raises
        ------
        BadRow
            For a second answer of a deployment to a question, a question of two themes, or a vector that does not fit.
        """
        question, key = str(row.question_id), (str(row.question_id), row.deployment)
        if (first := self._cells.get(key)) is not None:
            raise BadRow(f"the answer of {row.deployment!r} to {question!r} is already that of line {first.line}")
        theme = str(row.theme).strip() if row.theme is not None else ""
        if theme and self._themes.get(question, theme) != theme:
            raise BadRow(f"question {question!r} has theme {theme!r} here and {self._themes[question]!r} before")
        # A block that is received as an error counts as a block: it is the deployment's reaction to the question.
        failed = bool(row.error) and not row.blocked
        vector = -1
        if row.embedding is not None:
            try:
                vector = self._vectors.add(row.embedding)
            except ValueError as error:
                raise BadRow(f"embedding {error}") from None
        if theme:
            self._themes[question] = theme
        scores = {judge: score for judge, score in (row.score or {}).items() if score is not None}
        self._cells[key] = _Cell(
            line=line,
            failed=failed,
            blocked=bool(row.blocked),
            scores={} if failed else scores,
            vector=-1 if failed else vector,
            length=len(row.response or "") if not failed and not row.blocked else 0,
        )

    @property
    def deployments(self) -> list[str]:
        """All deployments named so far, sorted."""
        return sorted({deployment for _, deployment in self._cells})

    def finish(self) -> ScoreTable:
        """Return the table of the rows."""
        questions = sorted({question for question, _ in self._cells})
        deployments = self.deployments
        judges = sorted({judge for cell in self._cells.values() for judge in cell.scores})
        shape = (len(questions), len(deployments))
        failed, blocked, answered = (np.zeros(shape, dtype=np.bool_) for _ in range(3))
        lengths, numbers = np.full(shape, np.nan), np.full(shape, -1, dtype=np.int64)
        judged = {judge: np.full(shape, np.nan) for judge in judges}
        row_of = {name: place for place, name in enumerate(questions)}
        column_of = {name: place for place, name in enumerate(deployments)}
        for (question, deployment), cell in self._cells.items():
            at = row_of[question], column_of[deployment]
            failed[at], blocked[at], answered[at] = cell.failed, cell.blocked, not cell.failed
            numbers[at] = cell.vector
            if cell.length:
                lengths[at] = cell.length
            for judge, score in cell.scores.items():
                judged[judge][at] = score
        return ScoreTable(
            questions=tuple(questions),
            themes=tuple(self._themes.get(question) for question in questions),
            deployments=tuple(deployments),
            failed=failed,
            blocked=blocked,
            answered=answered,
            lengths=lengths,
            judged=judged,
            numbers=numbers,
            vectors=self._vectors,
        )


#: More deployments than this are a mistake (a name that holds an id), and would fill the memory with empty cells.
MAX_DEPLOYMENTS: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ScoreFile:
    """The rows of a file, and the bad rows that were left out."""

    table: ScoreTable
    skipped: int
    complaints: tuple[str, ...]  #: errors of the first few bad rows


def read_scores(source: Source, *, skip_bad: bool = False, on_bytes: Callable[[int], None] | None = None) -> ScoreFile:
    """Read scores, of a file or in memory.

    Parameters
    ----------
    source
        Rows of ``question_id, theme, deployment`` and any of ``score, embedding, response, error, blocked``.
    skip_bad
        Count bad rows instead of raising; of two answers to one question the first stays.
    on_bytes
        Called from time to time with the number of bytes that have been read.

    Raises
    ------
    InputError
        For a bad row (unless skipped), a file without rows or of too many deployments, an unreadable file.
    UsageError
        For a path that names no file.
    """
    rows = Rows(source, skip_bad=skip_bad, on_bytes=on_bytes)
    collector = ScoreCollector()
    for line, row in rows.read_lines(score_row):
        try:
            collector.add(row, line)
        except BadRow as bad:
            rows.complain(line, str(bad))
    if len(collector.deployments) > MAX_DEPLOYMENTS:
        raise InputError(
            f"{rows.name}: names {len(collector.deployments):,} deployments; at most {MAX_DEPLOYMENTS} are read"
        )
    return ScoreFile(table=collector.finish(), skipped=rows.skipped, complaints=tuple(rows.complaints))
