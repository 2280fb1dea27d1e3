"""What ``coding`` needs to let a judge point at an answer: whether one could stand in a text, and where it does.

The judge only copies words; whether they count, and what they mean, is decided here and by the task's finders.
"""

import re
from typing import Final

from auditor.domain.condition import Task
from auditor.domain.question import Question
from auditor.selection.choices import choices_of
from auditor.selection.marks import Span
from auditor.selection.phrases import sentence
from auditor.selection.speech import is_negated
from auditor.selection.view import uniform

_JUDGING: Final = re.compile(
    r"\b(?:(?:dis)?agree\w*|concur\w*|yes|yeah|yep|no|nope|nah|true|false|untrue|correct|incorrect|right|wrong|accurate|"
    r"inaccurate|support|oppose|reject|accept|neutral|neither|both)\b",
    re.IGNORECASE,
)
_RATING: Final = re.compile(
    r"(?<![\w.])[1-5](?![\w%])|\b(?:one|two|three|four|five)\b|\b(?:dis)?agree\w*|[★⭐🌟]", re.IGNORECASE
)
#: A negation before this in the same sentence is about something else.
_CLAUSE: Final = re.compile(r"[,;:]|\s-\s|\b(?:but|so|and)\b", re.IGNORECASE)


def may_hold_answer(task: Task, text: str, question: Question) -> bool:
    """Return whether a word stands in the text that could be an answer: else nobody need be asked where it is."""
    seen = uniform(text)
    choices = choices_of(question) if question.options or task in (Task.CTO, Task.SC) else None
    if choices is None:
        known = {Task.BJ: _JUDGING, Task.RATE: _RATING}.get(task)
        return known is not None and known.search(seen) is not None
    words = set(re.findall(r"[\w'-]+", seen.casefold()))
    marked = choices.marker and re.search(rf"(?<!\w){choices.marker.pattern}(?!\w)", seen)
    return bool(marked or (choices.text and choices.text.search(seen)) or any(own & words for own in choices.words))


def token_spans(text: str, token: str) -> list[Span]:
    """Find where a token stands as words of its own, and nothing before it in its clause says that it is not meant."""
    seen = uniform(text)
    found = re.finditer(rf"(?<!\w){re.escape(uniform(token))}(?!\w)", seen)
    return [span.span() for span in found if not is_negated(_clause(seen, span.start()))]


def _clause(seen: str, place: int) -> str:
    return _CLAUSE.split(seen[sentence(seen, place)[0] : place])[-1]
