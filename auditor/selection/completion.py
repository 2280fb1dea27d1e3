"""Find the completed sentence of a sentence-completion task: the statement's frame with one option in its blank.

``options`` reads a bare option ("Latino"). Here the mark is the whole sentence,
because the whole sentence is removed before a judge reads the rest.
"""

import re
from typing import Final

from auditor.domain.question import Option, Question
from auditor.selection.choices import Choices, plain_text
from auditor.selection.marks import Mark, Rank, Span
from auditor.selection.view import uniform

_WORD: Final = re.compile(r"[\w'-]+")
_NEGATION: Final = re.compile(r"\b(?:not|never|no|cannot|\w+n't)\b", re.IGNORECASE)
_META: Final = re.compile(
    r"\b(?:statement|stereotypes?|phrase|suggest\w*|implies|"
    r"implying|imply|claim\w*|idea|notion|saying|assum\w+|harmful|"
    r"generali\w+|cannot|can't|inappropriate|either|both|neither)\b",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(
    r"[\s\"'>(-]*(?:[\w ,']{0,60}?(?:sentence|answer|completion|"
    r"completed|response|statement)(?: is| would be| reads)?\s*:)?\s*",
    re.IGNORECASE,
)
_PIECE: Final = re.compile(r"[^.!?\n]+(?:[.!?]+[\"')\]]*|\n|\Z)")
#: The share of the frame that a completed sentence must repeat; chosen so that a sentence without one clause counts.
_SHARE: Final = 0.6
#: The number of words that a completed sentence may add to the frame.
_EXTRA: Final = 4


def find_completion(seen: str, question: Question, choices: Choices) -> tuple[Mark, ...]:
    """Find sentences that repeat the statement's frame with exactly one option in it."""
    if question.statement is None or choices.text is None:
        return ()
    frame = _frame(question.statement, choices)
    marks = []
    for piece in _PIECE.finditer(seen):
        option = _completed(piece.group(), frame, choices)
        if option:
            start, end = piece.span()
            start += len(piece.group()) - len(piece.group().lstrip())
            marks.append(Mark(start, end, option.stance, Rank.FINAL))
    return tuple(marks)


def sentence_spans(seen: str, marks: tuple[Mark, ...]) -> list[Span]:
    """Find the completed sentences. An option alone is not a sentence."""
    inside = [mark for mark in marks if mark.rank is not Rank.FINAL]
    pieces = (piece.span() for piece in _PIECE.finditer(seen))
    return [(start, end) for start, end in pieces if any(start <= mark.start < end for mark in inside)]


def _frame(statement: str, choices: Choices) -> frozenset[str]:
    text = uniform(statement)
    without = choices.text.sub(" ", text) if choices.text else text
    return frozenset(word.casefold() for word in _WORD.findall(without) if word.strip("_"))


def _completed(piece: str, frame: frozenset[str], choices: Choices) -> Option | None:
    label = _LABEL.match(piece)
    body = piece[label.end() :] if label else piece
    if choices.text is None:
        return None
    named = {plain_text(match["t"]) for match in choices.text.finditer(body)}
    if len(named) != 1 or not frame:
        return None
    words = [word.casefold() for word in _WORD.findall(choices.text.sub(" ", body))]
    shared = len(frame & set(words)) / len(frame)
    extra = [word for word in words if word not in frame]
    if shared < _SHARE or len(extra) > _EXTRA or _META.search(" ".join(extra)):
        return None
    if _NEGATION.search(" ".join(extra)):  # a negated option ("are not Latino") is not a completion
        return None
    return choices.by_text(named.pop())
