"""Support a judge that locates an answer: check whether a text can contain an answer, and find a token in it.

The judge only copies words. This module and the task's finders decide whether the words count and what they mean.
"""

import re
from typing import Final

from auditor.domain.question import Question
from auditor.selection.choices import choices_of
from auditor.selection.marks import Span
from auditor.selection.phrases import sentence
from auditor.selection.speech import is_negated
from auditor.selection.view import uniform

#: A negation before one of these, in the same sentence, does not apply to the words after it.
_CLAUSE: Final = re.compile(r"[,;:]|\s-\s|\b(?:but|so|and)\b", re.IGNORECASE)


def may_hold_answer(text: str, question: Question, words: re.Pattern[str] | None, *, offers_options: bool) -> bool:
    """Return whether a word of the text could be an answer; if not, no judge is asked.

    Parameters
    ----------
    words
        Words that may answer a question without options; ``None``: such a question has no discrete answer.
    offers_options
        Whether the task offers two options.
    """
    seen = uniform(text)
    choices = choices_of(question) if question.options or offers_options else None
    if choices is None:
        return words is not None and words.search(seen) is not None
    used = set(re.findall(r"[\w'-]+", seen.casefold()))
    marked = choices.marker and re.search(rf"(?<!\w){choices.marker.pattern}(?!\w)", seen)
    return bool(
        marked
        or (choices.text and choices.text.search(seen))
        or any(option_words & used for option_words in choices.words)
    )


def token_spans(text: str, token: str) -> list[Span]:
    """Find the places of a token as whole words, without a negation before it in its clause."""
    seen = uniform(text)
    matches = re.finditer(rf"(?<!\w){re.escape(uniform(token))}(?!\w)", seen)
    return [span.span() for span in matches if not is_negated(_clause(seen, span.start()))]


def _clause(seen: str, place: int) -> str:
    return _CLAUSE.split(seen[sentence(seen, place)[0] : place])[-1]
