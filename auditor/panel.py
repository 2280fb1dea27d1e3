"""A panel: several judges' verdicts become one elaboration. The judges themselves are in ``auditor.judges``.

How votes count (the rules this module holds to):

* A label is one vote. Under the open rubric "none present" is an answer like any other, so it is one vote too.
* A judge that refused gave no vote; it is kept among the verdicts. One label is enough to decide: with two of three
  judges refusing, the third decides, and the verdicts show that it did so alone.
* The label with most votes wins, whether or not it has more than half. Any tie at the top is Abstain ``tie``.
* E and QE are two labels here: a split over whether an endorsement is qualified is a tie, as in the paper.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self, cast

from auditor.domain.coding import Elaboration, ElaborationReason, Verdict
from auditor.judges import Judge, LocalJudge
from auditor.judges.rubric import STATEMENT

#: Markup, and the end-of-turn tokens some servers let through.
_TAG: Final = re.compile(r"</?[A-Za-z][^<>\n]{0,80}>|<\|[a-z_]{1,40}(?:\|>?)?|&(?:nbsp|amp|lt|gt|quot);")
#: Headings that stand above an answer or a reason: alone they say nothing.
_HEADINGS: Final = frozenset(
    {"the", "my", "a", "is", "final", "answer", "answers", "choice", "option", "rating", "score", "selection"}
    | {"response", "verdict", "conclusion", "explanation", "reason", "reasons", "reasoning", "rationale"}
    | {"elaboration", "justification", "note"}
)
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """Judges in a fixed order, all asked the same question."""

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
        """Whether no judge needs the network."""
        return all(isinstance(judge, LocalJudge) for judge in self.judges)

    @property
    def coder(self) -> str:
        """One string for the whole panel: changes when any judge, version or rubric does."""
        return "+".join([self.rubric, *(judge.coder for judge in self.judges)])

    def describe(self) -> Mapping[str, object]:
        """Return what is stored beside the rows this panel coded."""
        return {"rubric": self.rubric, "coder": self.coder, "judges": [dict(judge.describe()) for judge in self.judges]}

    def read(self, *, statement: str | None, text: str) -> Elaboration:
        """Read one text with judges that all are local.

        Raises
        ------
        TypeError
            When a judge needs the network; ``read_async`` serves any panel.
        """
        unread = self._unread(text)
        return unread or decide([_local(judge).read_now(statement, text) for judge in self.judges])

    async def read_async(self, *, statement: str | None, text: str) -> Elaboration:
        """Read one text, asking all judges at the same time.

        Raises
        ------
        JudgeUnavailable
            When any judge could not be asked: a smaller panel would be another instrument.
        """
        unread = self._unread(text)
        if unread:
            return unread
        answers = await asyncio.gather(*(judge.read(statement, text) for judge in self.judges), return_exceptions=True)
        verdicts: list[Verdict] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            verdicts.append(answer)
        return decide(verdicts)

    async def aclose(self) -> None:
        """Give back what the judges hold open."""
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
    """Return whether anything is left to read: a word that is neither markup nor a bare heading.

    Example
    -------
    >>> has_elaboration("**Answer:** <br>"), has_elaboration("**Answer:** because.")
    (False, True)
    """
    words = _WORD.findall(_TAG.sub(" ", text)) if "<" in text or "&" in text else _WORD.findall(text)
    return any(word.lower() not in _HEADINGS for word in words)


def decide(verdicts: Sequence[Verdict]) -> Elaboration:
    """Return the label with most votes, or why there is none. The order of the verdicts never matters to it."""
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


def _local(judge: Judge) -> LocalJudge:
    # Not isinstance: a runtime-checked protocol evaluates every property of the judge, which costs more than reading.
    if not hasattr(judge, "read_now"):
        raise TypeError(f"judge {judge.name!r} needs the network: use read_async")
    return cast("LocalJudge", judge)
