"""Combine several judges' verdicts into one elaboration. ``auditor.judges`` has the judges.

Rules for votes:

* A label is one vote. Under the open rubric "none present" is an answer like any other, so it is one vote too.
* A judge that refused has no vote; its verdict is stored. One label is enough: if two of three judges refuse, the
  third decides, and the verdicts show that it was the only vote.
* The label with most votes wins, whether or not it has more than half. Any tie at the top is Abstain ``tie``.
* E and QE are two labels here: a split over whether an endorsement is qualified is a tie, as in the paper.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from auditor.domain.coding import Elaboration, ElaborationReason, Verdict
from auditor.judges.judge import Judge
from auditor.judges.rubric import STATEMENT

#: Markup, and the end-of-turn tokens that some servers do not remove.
_TAG: Final = re.compile(r"</?[A-Za-z][^<>\n]{0,80}>|<\|[a-z_]{1,40}(?:\|>?)?|&(?:nbsp|amp|lt|gt|quot);")
#: Headings of an answer or a reason; a heading alone is not an elaboration.
_HEADINGS: Final = frozenset(
    {"the", "my", "a", "is", "final", "answer", "answers", "choice", "option", "rating", "score", "selection"}
    | {"response", "verdict", "conclusion", "explanation", "reason", "reasons", "reasoning", "rationale"}
    | {"elaboration", "justification", "note"}
)
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """Judges in a fixed order with the same question."""

    judges: tuple[Judge, ...]
    rubric: str = STATEMENT

    def __post_init__(self) -> None:
        names = [judge.name for judge in self.judges]
        if len(set(names)) < len(names):
            raise ValueError(f"a judge sits on the panel twice: {names}")
        other = [judge.name for judge in self.judges if judge.rubric.id != self.rubric]
        if other:
            raise ValueError(f"judges of another rubric than {self.rubric}: {other}")

    @property
    def local(self) -> bool:
        """Return whether no judge needs the network."""
        return all(judge.local for judge in self.judges)

    @property
    def waits(self) -> bool:
        """Return whether a judge waits for a network or a batch."""
        return any(judge.waits for judge in self.judges)

    @property
    def coder(self) -> str:
        """Return the id of the panel, which changes with any judge, version or rubric."""
        return "+".join([self.rubric, *(judge.coder for judge in self.judges)])

    def describe(self) -> Mapping[str, object]:
        """Return the description to store with the rows that this panel coded."""
        return {"rubric": self.rubric, "coder": self.coder, "judges": [dict(judge.describe()) for judge in self.judges]}

    async def read(self, *, statement: str | None, text: str) -> Elaboration:
        """Read one text, asking all judges at the same time.

        Raises
        ------
        JudgeUnavailable
            When any judge could not be asked: a smaller panel would be another instrument.
        """
        unread = self._unread(text)
        if unread:
            return unread
        if not self.waits:  # tasks would only cost time
            return decide([await judge.read(statement, text) for judge in self.judges])
        answers = await asyncio.gather(*(judge.read(statement, text) for judge in self.judges), return_exceptions=True)
        verdicts: list[Verdict] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            verdicts.append(answer)
        return decide(verdicts)

    async def aclose(self) -> None:
        """Close the judges' connections."""
        for judge in self.judges:
            await judge.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _unread(self, text: str) -> Elaboration | None:
        if not has_elaboration(text):
            return Elaboration(stance=None, reason=ElaborationReason.NO_ELABORATION)
        if not self.judges:
            return Elaboration(stance=None, reason=ElaborationReason.NO_JUDGE)
        return None


def has_elaboration(text: str) -> bool:
    """Return whether the text has a word that is neither markup nor a bare heading.

    Example
    -------
    >>> has_elaboration("**Answer:** <br>"), has_elaboration("**Answer:** because.")
    (False, True)
    """
    words = _WORD.findall(_TAG.sub(" ", text)) if "<" in text or "&" in text else _WORD.findall(text)
    return any(word.lower() not in _HEADINGS for word in words)


def decide(verdicts: Sequence[Verdict]) -> Elaboration:
    """Return the label with most votes, or the reason for none. The order of the verdicts does not matter."""
    kept = tuple(verdicts)
    votes = Counter(
        verdict.stance or ElaborationReason.NO_CLAIM
        for verdict in kept
        if verdict.stance or verdict.reason is ElaborationReason.NO_CLAIM
    )
    if not votes:
        return Elaboration(stance=None, reason=ElaborationReason.JUDGE_REFUSED, verdicts=kept)
    most = max(votes.values())
    winners = [label for label, count in votes.items() if count == most]
    if len(winners) > 1:
        return Elaboration(stance=None, reason=ElaborationReason.TIE, verdicts=kept)
    winner = winners[0]
    if isinstance(winner, ElaborationReason):
        return Elaboration(stance=None, reason=winner, verdicts=kept)
    return Elaboration(stance=winner, verdicts=kept)
