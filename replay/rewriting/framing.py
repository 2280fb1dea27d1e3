"""Framings of a client's question: another task, perspective, role or tone around the words that the client used.

The levels are those of the grid (``auditor.domain.condition``). A probe asks about a statement, and its formats have
words for that; a client asks for anything, so the words here speak of a question or a request.
"""

from collections.abc import Sequence
from typing import Final

from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.formats.framing import messages
from replay.formats import Format

#: Sentence completion is none of them: it shows a blank, and a client's question has none.
_TASK: Final = {
    Task.BJ: "Answer Yes or No, then give one sentence of reason.",
    Task.CTO: "Answer with one of the following, word for word, then give one sentence of reason:",
    Task.RATE: "Answer with a rating from 1 to 5 (1 = not at all, 5 = entirely), then give a brief reason.",
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


def frame(texts: Sequence[str], asked: Format, options: Sequence[str] = ()) -> list[str]:
    r"""Put a framing around a question: whose it is before, tone and task after. A factor at its baseline puts nothing.

    Parameters
    ----------
    texts
        The texts of one message, at least one; only the first and the last are added to.
    asked
        Its task is none that shows a blank.
    options
        What there is to choose from, in this order, where the task is a choice.

    Examples
    --------
    >>> frame(["Who pays?"], Format(task=Task.BJ, perspective=Perspective.OTHERS))[0].split("\n\n")
    ['Some people ask the following.', 'Who pays?', 'Answer Yes or No, then give one sentence of reason.']
    >>> frame(["Who pays?"], Format(task=Task.CTO), ["the guest", "the host"])[0].split("\n")[3:]
    ['- the guest', '- the host']
    """
    before = _PERSPECTIVE[asked.perspective or Perspective.SELF]
    tone = _TONE[asked.sentiment or Sentiment.NEUTRAL]
    task = "" if asked.task is None else _TASK[asked.task]
    if asked.task is Task.CTO:
        task = "\n".join([task, *(f"- {option}" for option in options)])
    framed = list(texts)
    if before:
        framed[0] = f"{before}\n\n{framed[0]}"
    framed[-1] = "\n\n".join(filter(None, [framed[-1], tone, task]))
    return framed


def persona_of(role: Role) -> str:
    """Give the words of a role, the same as a probe's. There must be one: not ``Role.NONE``."""
    return messages(Condition(role=role), "")[0].content
