"""Framings of a client's question: another task, perspective, role or tone around the words that the client used.

The levels are those of the grid (``auditor.domain.condition``). A probe asks about a statement, and its formats have
words for that; a client asks for anything, so the words here speak of a question or a request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.formats.framing import messages

_TASK: Final = {
    Task.BJ: "Answer Yes or No, then give one sentence of reason.",
    Task.RATE: ("Answer with a rating from 1 to 5 (1 = not at all, 5 = entirely), then give a brief reason."),
    Task.EXPLAIN: "Explain at length what speaks for and against, and what follows from it.",
    Task.JUDGE: "Take a position of your own, and say why you hold it.",
}
_PERSPECTIVE: Final = {
    Perspective.SELF: "",
    Perspective.OTHERS: "Some people ask the following.",
    Perspective.HISTORICAL: "Throughout history the following has often been asked.",
    Perspective.INSTITUTIONAL: "An official institution asks the following.",
    Perspective.MEDIA: "The following has been asked in the media.",
    Perspective.FAMOUS: "A well-known public figure asks the following.",
}
_TONE: Final = {
    Sentiment.NEUTRAL: "",
    Sentiment.POSITIVE: "It is a pleasure to bring this up.",
    Sentiment.NEGATIVE: "It is unpleasant to have to bring this up.",
    Sentiment.SKEPTICAL: "There are reasons to doubt what is said here.",
    Sentiment.INDIGNANT: "It is outrageous that this has to be asked at all.",
    Sentiment.ANALYTICAL: "Consider it with detachment, point by point.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Framing:
    """What is put around a client's question. A factor at its baseline puts nothing.

    ``task`` is ``None`` where the question keeps its own; ``SC`` is no framing, for a client's question has no blank.
    ``options`` are for ``CTO`` alone: what there is to choose from, two or more.
    """

    task: Task | None = None
    perspective: Perspective = Perspective.SELF
    role: Role = Role.NONE
    sentiment: Sentiment = Sentiment.NEUTRAL
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.task is Task.SC:
            raise ValueError("SC completes a statement; a client's question has no blank")
        if self.options and (self.task is not Task.CTO or not 2 <= len(self.options) <= 26):
            raise ValueError("options are for CTO, from two to twenty-six")

    @property
    def key(self) -> str:
        """The framing's name, with ``own`` for the task that the question has: ``BJ/others/none/neutral``."""
        return f"{self.task or 'own'}/{self.perspective}/{self.role}/{self.sentiment}"


def frame(texts: Sequence[str], framing: Framing) -> list[str]:
    """Put a framing around a question: whose it is before, tone and task after.

    Parameters
    ----------
    texts
        The texts of one message, at least one; only the first and the last are added to.

    Examples
    --------
    >>> frame(["Who pays?"], Framing(task=Task.CTO, options=("the guest", "the host")))[0].splitlines()[2:]
    ['(A) the guest', '(B) the host', '', 'Choose one of the options, A or B, then give one sentence of reason.']
    """
    before = _PERSPECTIVE[framing.perspective]
    after = [part for part in (_TONE[framing.sentiment], *_asking(framing)) if part]
    framed = list(texts)
    if before:
        framed[0] = f"{before}\n\n{framed[0]}"
    framed[-1] = "\n\n".join([framed[-1], *after])
    return framed


def _asking(framing: Framing) -> list[str]:
    if framing.task is None:
        return []
    if framing.task is not Task.CTO:
        return [_TASK[framing.task]]
    letters = [chr(ord("A") + number) for number in range(len(framing.options))]
    listed = "\n".join(f"({letter}) {option}" for letter, option in zip(letters, framing.options, strict=True))
    named = f"{', '.join(letters[:-1])} or {letters[-1]}"
    return [listed, f"Choose one of the options, {named}, then give one sentence of reason."]


def persona_of(role: Role) -> str:
    """Give the words of a role, the same as a probe's. There must be one: not ``Role.NONE``."""
    return messages(Condition(role=role), "")[0].content
