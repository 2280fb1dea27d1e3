"""All rows of a scores file as arrays, questions by deployments, in an order that the file's does not change."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.peers.score_rows import HIGHEST, ScoreRow
from auditor.peers.vectors import Indices, Vectors
from auditor.rows import BadRow
from auditor.stats.intervals import Floats

#: Whether a content filter's block is an answer, or is dropped.
Blocked = Literal["answer", "drop"]
Mask = NDArray[np.bool_]

#: What a block that no judge has read is given: the rubric's score for a question that is rejected entirely.
BLOCK_SCORE: Final = HIGHEST


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ScoreTable:
    """N questions by K deployments, both sorted by name. NaN marks what is not there; nothing of it leaves unmasked."""

    questions: tuple[str, ...]
    themes: tuple[str | None, ...]  #: of each question
    deployments: tuple[str, ...]
    failed: Mask  #: [N, K]: a transport error, no answer
    blocked: Mask  #: [N, K]: the answer is a content filter's
    answered: Mask  #: [N, K]: any answer, blocked ones too
    lengths: Floats  #: [N, K]: characters of what the deployment wrote, positive; a block's words are not its own
    judged: Mapping[str, Floats]  #: by judge, [N, K], in [1, 10]
    numbers: Indices  #: [N, K]: of the answers' vectors, -1 where there is none
    vectors: Vectors

    @property
    def judges(self) -> tuple[str, ...]:
        """Judges with a score in the file, sorted."""
        return tuple(sorted(self.judged))

    def by_theme(self) -> Iterator[tuple[str, Mask]]:
        """Give each theme, sorted, and which questions are of it, [N]."""
        for theme in sorted({each for each in self.themes if each is not None}):
            yield theme, np.array([each == theme for each in self.themes])

    def kept(self, blocked: Blocked) -> Mask:
        """Tell which answers count in a reading of blocked ones, [N, K]."""
        return self.answered if blocked == "answer" else self.answered & ~self.blocked

    def scores(self, judge: str, blocked: Blocked) -> Floats:
        """Give a judge's scores in a reading of blocked answers, [N, K].

        A block is kept with the score it was given. One that the judge never saw counts ``BLOCK_SCORE``, if the judge
        read this deployment at all (or there was nothing but blocks to read).
        """
        given = np.where(self.kept(blocked), self.judged[judge], np.nan)
        return np.where(self.by_rule(judge), BLOCK_SCORE, given) if blocked == "answer" else given

    def by_rule(self, judge: str) -> Mask:
        """Tell which blocked answers have no score of the judge and get the rule's, [N, K]."""
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
    """Takes rows in any order; the same rows make the same table."""

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
        # A block that came as an error is a block: it is what the deployment does with the question.
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
        """Everybody who was named, sorted."""
        return sorted({deployment for _, deployment in self._cells})

    def finish(self) -> ScoreTable:
        """Lay out what was taken."""
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
