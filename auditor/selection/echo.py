"""Blank the parts of a response that repeat its prompt, because repeated words are not an answer.

The finders read the rest. A line that equals one of the options is kept, because repeating an option is an answer.
"""

import re
from functools import lru_cache
from typing import Final

from auditor.domain.question import Question
from auditor.selection.choices import Choices
from auditor.selection.view import blank, uniform

_LINE: Final = re.compile(r"[^\n]+")
_PIECE: Final = re.compile(r"[^\n.!?]+[.!?\"')]*")
_WORDS: Final = re.compile(r"\w+")
#: A shorter repetition is kept: it may be the model's own words ("I agree", "The statement is false").
_LONG: Final = 5


def without_echo(seen: str, question: Question, choices: Choices | None) -> str:
    """Return ``seen`` with blanks for the lines and sentences that occur in the prompt."""
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
    found = (_plain(piece) for pattern in (_LINE, _PIECE) for piece in pattern.findall(text))
    return frozenset(piece for piece in found if piece.count(" ") >= _LONG - 1)


def _plain(text: str) -> str:
    return " ".join(_WORDS.findall(text.casefold()))
