"""Combine finders for each task; the formats call these functions.

Each function takes the question and returns the finder for its answers. Finders read a response without the parts that
repeat its prompt, because repeated words are not an answer.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from auditor.domain.question import Question
from auditor.selection.agreement import find_agreement
from auditor.selection.choices import Choices, choices_of
from auditor.selection.completion import find_completion
from auditor.selection.marks import Mark, MarkSet, Rank, RefusalMark
from auditor.selection.options import find_options
from auditor.selection.ratings import find_ratings
from auditor.selection.reading import Finder
from auditor.selection.refusal import refuses, turns_down_options
from auditor.selection.view import blank, uniform
from auditor.selection.yesno import find_truth, find_yes_no


def find_judgment(question: Question) -> Finder:
    """Find agreement, yes or no; read the closed answer set first if the question offered one."""
    return _finder(question, _offered(question), _from_set, _judgment)


def find_choice(question: Question) -> Finder:
    """Find a member of the answer set."""
    return _finder(question, choices_of(question), _from_set, _unmapped)


def find_filled(question: Question) -> Finder:
    """Find the completed sentence; without one, a bare option."""
    return _finder(question, choices_of(question), _filled, _unmapped)


def find_rating(question: Question) -> Finder:
    """Find a number from 1 to 5; without one, the level in words. On a reversed scale 5 is disagreement."""
    return _finder(question, _offered(question), _from_set, _rating)


def _finder(
    question: Question,
    choices: Choices | None,
    in_set: Callable[[str, Choices, Question], MarkSet],
    free: Callable[[str, Question], MarkSet],
) -> Finder:
    """Return a finder that uses ``in_set`` if the answer set is known, and ``free`` otherwise."""

    def find(seen: str) -> MarkSet:
        seen = without_echo(seen, question, choices)
        return free(seen, question) if choices is None else in_set(seen, choices, question)

    return find


def _offered(question: Question) -> Choices | None:
    return choices_of(question) if question.options else None


def _judgment(seen: str, question: Question) -> MarkSet:
    agreement = find_agreement(seen, question.statement)
    marks = _without_clash(agreement.marks, (*find_yes_no(seen), *find_truth(seen)))
    return MarkSet(marks, agreement.echo, refusal=_declined(seen, declined=agreement.declined))


def _rating(seen: str, question: Question) -> MarkSet:
    agreement = find_agreement(seen, question.statement)
    marks = find_ratings(seen, reverse=question.reverse_scale) or agreement.marks
    return MarkSet(marks, agreement.echo, refusal=_declined(seen, declined=agreement.declined))


def _unmapped(seen: str, _: Question) -> MarkSet:
    """Read an answer whose options are not known; only a refusal can be found."""
    return MarkSet(refusal=_turned_down(seen, None))


def _filled(seen: str, choices: Choices, question: Question) -> MarkSet:
    completed = find_completion(seen, question, choices)
    if completed:
        return MarkSet(completed, reasons=True, refusal=_turned_down(seen, choices))
    return _from_options(seen, choices)


def _from_set(seen: str, choices: Choices, question: Question) -> MarkSet:
    """Read a closed answer set. If it is a scale of agreement, "I agree" and "I disagree" are answers too."""
    if not choices.is_scale:
        return _from_options(seen, choices)
    listed = find_options(seen, choices)
    plain = tuple(mark for mark in listed.marks if mark.rank is Rank.FINAL)
    agreement = find_agreement(seen, question.statement)
    marks = plain or agreement.marks
    return MarkSet(marks, listed.echo or agreement.echo, refusal=_declined(seen, declined=agreement.declined))


def _from_options(seen: str, choices: Choices) -> MarkSet:
    listed = find_options(seen, choices)
    return MarkSet(listed.marks, listed.echo, reasons=True, refusal=_turned_down(seen, choices))


def _without_clash(agreement: tuple[Mark, ...], yes_no: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """Drop a "yes" or "no" that contradicts the agreement in the same sentence ("No, I agree")."""
    kept = []
    for mark in yes_no:
        near = [other for other in agreement if 0 <= other.start - mark.end < 12 and other.rank > Rank.MENTION]
        if not near or near[0].stance is mark.stance:
            kept.append(mark)
    return (*agreement, *kept)


def _declined(seen: str, *, declined: bool) -> Callable[[], RefusalMark | None]:
    """Return a function that searches for a refusal on demand; ``declined`` means that one was already found."""
    return lambda: RefusalMark.PLAIN if declined or refuses(seen) else None


def _turned_down(seen: str, choices: Choices | None) -> Callable[[], RefusalMark | None]:
    """Return a function that searches for a refusal of named options, which may reject the options by name."""

    def look_for() -> RefusalMark | None:
        if turns_down_options(seen, choices):
            return RefusalMark.NAMES_OPTIONS
        return RefusalMark.PLAIN if refuses(seen) else None

    return look_for


_LINE: Final = re.compile(r"[^\n]+")
_PIECE: Final = re.compile(r"[^\n.!?]+[.!?\"')]*")
_WORDS: Final = re.compile(r"\w+")
#: A shorter repetition is kept: it may be the model's own words ("I agree", "The statement is false").
_LONG: Final = 5


def without_echo(seen: str, question: Question, choices: Choices | None) -> str:
    """Return ``seen`` with blanks for the lines and sentences that occur in the prompt.

    A line that equals one of the options is kept, because repeating an option is an answer.
    """
    if not question.prompt:
        return seen
    known = _pieces(question.prompt)
    pieces = (piece for pattern in (_LINE, _PIECE) for piece in pattern.finditer(seen))
    repeated = [piece for piece in pieces if _plain(piece.group()) in known]
    return blank(seen, [piece.span() for piece in repeated if not _is_option(piece.group(), choices)])


def _is_option(text: str, choices: Choices | None) -> bool:
    return choices is not None and choices.text is not None and choices.text.search(text) is not None


@lru_cache(maxsize=512)
def _pieces(prompt: str) -> frozenset[str]:
    text = uniform(prompt)
    pieces = (_plain(piece) for pattern in (_LINE, _PIECE) for piece in pattern.findall(text))
    return frozenset(piece for piece in pieces if piece.count(" ") >= _LONG - 1)


def _plain(text: str) -> str:
    return " ".join(_WORDS.findall(text.casefold()))
