"""Which finders serve which task: the one place where they are put together. The formats call these.

Each function takes the question and returns the finder for its answers.
"""

from collections.abc import Callable

from auditor.domain.question import Question
from auditor.selection.agreement import find_agreement
from auditor.selection.choices import Choices, choices_of
from auditor.selection.completion import find_completion
from auditor.selection.echo import without_echo
from auditor.selection.marks import Found, Mark, Rank, Refusal
from auditor.selection.options import find_options
from auditor.selection.ratings import find_ratings
from auditor.selection.reading import Finder
from auditor.selection.refusal import refuses, turns_down_options
from auditor.selection.truth import find_truth
from auditor.selection.yesno import find_yes_no


def find_judgment(question: Question) -> Finder:
    """Look for agreement and yes or no; a closed answer set, where one was offered, comes first."""
    return _finder(question, _offered(question), _from_set, _judgment)


def find_choice(question: Question) -> Finder:
    """Look for a member of the answer set."""
    return _finder(question, choices_of(question), _from_set, _unmapped)


def find_filled(question: Question) -> Finder:
    """Look for the completed sentence, then for a bare option."""
    return _finder(question, choices_of(question), _filled, _unmapped)


def find_rating(question: Question) -> Finder:
    """Look for a number from 1 to 5, then for the level in words."""
    return _finder(question, _offered(question), _from_set, _rating)


def _finder(
    question: Question,
    choices: Choices | None,
    in_set: Callable[[str, Choices, Question], Found],
    free: Callable[[str, Question], Found],
) -> Finder:
    """Return the finder that reads a known answer set by ``in_set``, and by ``free`` where none is known."""

    def find(seen: str) -> Found:
        seen = without_echo(seen, question, choices)
        return free(seen, question) if choices is None else in_set(seen, choices, question)

    return find


def _offered(question: Question) -> Choices | None:
    return choices_of(question) if question.options else None


def _judgment(seen: str, question: Question) -> Found:
    agreement = find_agreement(seen, question.statement)
    marks = _without_clash(agreement.marks, (*find_yes_no(seen), *find_truth(seen)))
    return Found(marks, agreement.echo, refusal=_declined(seen, told=agreement.declined))


def _rating(seen: str, question: Question) -> Found:
    agreement = find_agreement(seen, question.statement)
    marks = find_ratings(seen) or agreement.marks
    return Found(marks, agreement.echo, refusal=_declined(seen, told=agreement.declined))


def _unmapped(seen: str, _: Question) -> Found:
    """Read an answer whose options nobody named: it can only be a refusal."""
    return Found(refusal=_turned_down(seen, None))


def _filled(seen: str, choices: Choices, question: Question) -> Found:
    completed = find_completion(seen, question, choices)
    if completed:
        return Found(completed, reasons=True, refusal=_turned_down(seen, choices))
    return _from_options(seen, choices)


def _from_set(seen: str, choices: Choices, question: Question) -> Found:
    """Read a closed answer set; where it is a scale of agreement, prose that agrees or disagrees answers as well."""
    if not choices.is_scale:
        return _from_options(seen, choices)
    found = find_options(seen, choices)
    plain = tuple(mark for mark in found.marks if mark.rank is Rank.FINAL)
    agreement = find_agreement(seen, question.statement)
    marks = plain or agreement.marks
    return Found(marks, found.echo or agreement.echo, refusal=_declined(seen, told=agreement.declined))


def _from_options(seen: str, choices: Choices) -> Found:
    found = find_options(seen, choices)
    return Found(found.marks, found.echo, reasons=True, refusal=_turned_down(seen, choices))


def _without_clash(agreement: tuple[Mark, ...], yes_no: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """Drop a "yes" or "no" that the same sentence explains otherwise ("No, I agree")."""
    kept = []
    for mark in yes_no:
        near = [other for other in agreement if 0 <= other.start - mark.end < 12 and other.rank > Rank.MENTION]
        if not near or near[0].stance is mark.stance:
            kept.append(mark)
    return (*agreement, *kept)


def _declined(seen: str, *, told: bool) -> Callable[[], Refusal | None]:
    """Return how to find a refusal, when somebody asks; ``told``: one has been found already."""
    return lambda: Refusal.PLAIN if told or refuses(seen) else None


def _turned_down(seen: str, choices: Choices | None) -> Callable[[], Refusal | None]:
    """Return how to find a refusal where options were offered by name, and may be turned down by name."""

    def look_for() -> Refusal | None:
        if turns_down_options(seen, choices):
            return Refusal.NAMES_OPTIONS
        return Refusal.PLAIN if refuses(seen) else None

    return look_for
