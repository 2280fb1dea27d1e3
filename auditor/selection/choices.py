"""Compile the closed answer set of a question: the marker, the text and the stance of each choice.

The set is made from the question's ``options`` if present, otherwise from its stereotype and counter option. The
letters then come from ``option_a`` and ``option_b`` or, without these, from the list in the prompt.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from auditor.domain.coding import Stance
from auditor.domain.question import Option, Question
from auditor.selection.phrases import CANNOT_TELL
from auditor.selection.view import uniform

_ARTICLE: Final = re.compile(r"\A(?:the|a|an)\s+", re.IGNORECASE)
_WORD: Final = re.compile(r"[\w'-]+")
_LISTED_ITEM: Final = re.compile(
    r"(?m)(?:^[ \t]*-|(?<!\w)\(?(?P<marker>[A-Ha-h1-9])[).:]+)[ \t]*(?P<text>[^\n()]{2,60}?)[ \t]*(?=$|\(|[,;])"
)
_AGREEMENT: Final = re.compile(r"agree", re.IGNORECASE)
#: Words that do not distinguish one option from another.
_COMMON: Final = frozenset(
    "the a an of and or to in on is are was were with who person people man woman one".split()  # noqa: SIM905 -- a text
)


@dataclass(frozen=True, slots=True)
class Choices:
    """A compiled answer set."""

    options: tuple[Option, ...]
    marker: re.Pattern[str] | None  #: any marker, as the group ``m``
    text: re.Pattern[str] | None  #: any option's text, longest first, as the group ``t``
    words: tuple[frozenset[str], ...]  #: for each option, the words that no other option has

    @property
    def is_scale(self) -> bool:
        """Return whether the options are levels of agreement; "I would strongly disagree" is then an answer too."""
        return len(self.options) > 1 and all(
            _AGREEMENT.search(option.text) for option in self.options if option.stance in "ED"
        )

    def by_marker(self, marker: str) -> Option | None:
        """Return the option with this marker."""
        return next((option for option in self.options if bare_marker(option.marker) == bare_marker(marker)), None)

    def by_text(self, text: str) -> Option | None:
        """Return the option with this text; case and white space do not matter."""
        wanted = plain_text(text)
        return next((option for option in self.options if plain_text(option.text) == wanted), None)


def bare_marker(marker: str) -> str:
    """Return "b" for "(B)", "B." and "b)"; return "" for a marker without letters or digits."""
    return "".join(char for char in uniform(marker).casefold() if char.isalnum())


def plain_text(text: str) -> str:
    """Return an option's text without its article, case, spacing and closing punctuation."""
    spaced = " ".join(uniform(text).casefold().split()).strip(" .!?,;:\"'()")
    return _ARTICLE.sub("", spaced)


def choices_of(question: Question) -> Choices | None:
    """Return the compiled answer set of a question, or ``None`` if its options are not known."""
    options = question.options or _two_options(question)
    return _compile(options) if options else None


def _two_options(question: Question) -> tuple[Option, ...]:
    stereotype, counter = question.stereotype_option, question.counter_option
    if not stereotype or not counter:
        return ()
    first, second = question.option_a, question.option_b
    if not first and not second and question.prompt:
        first, second = _listed(question.prompt)
    stereotype_letter, counter_letter = letters(stereotype, counter, first, second) or ("", "")
    third = _third(question.prompt) if question.prompt else None
    return (
        Option(marker=stereotype_letter, text=stereotype, stance=Stance.E),
        Option(marker=counter_letter, text=counter, stance=Stance.D),
        *((third,) if third else ()),
    )


def _third(prompt: str) -> Option | None:
    """Return the listed option of the prompt that says "cannot be determined" in some form; it is neutral."""
    for item in _LISTED_ITEM.finditer(uniform(prompt)):
        if CANNOT_TELL.match(item["text"].strip(" .,;\"'")):
            return Option(marker=item["marker"] or "", text=item["text"].strip(" .,;"), stance=Stance.N)
    return None


def letters(stereotype: str, counter: str, first: str | None, second: str | None) -> tuple[str, str] | None:
    """Return the letters of the stereotype and the counter option; ``None`` if (A) and (B) do not identify them.

    Examples
    --------
    >>> letters("the grandfather", "the grandson", "The grandson", None), letters("the old", "the young", "X", "Y")
    (('B', 'A'), None)
    """
    stances = [_which(stereotype, counter, text) if text else None for text in (first, second)]
    if (first and stances[0] is None) or (second and stances[1] is None) or stances[0] is stances[1]:
        return None
    return ("A", "B") if stances[0] is Stance.E or stances[1] is Stance.D else ("B", "A")


def _which(stereotype: str, counter: str, text: str) -> Stance | None:
    """Return the option that a text names: the equal one, or the only one whose words it contains."""
    for option, stance in ((stereotype, Stance.E), (counter, Stance.D)):
        if plain_text(option) == plain_text(text):
            return stance
    held = [stance for option, stance in ((stereotype, Stance.E), (counter, Stance.D)) if matches(option, text)]
    return held[0] if len(held) == 1 else None


def matches(option: str, text: str | None) -> bool:
    """Return whether ``text`` is this option, or contains all of it."""
    return (
        bool(text) and re.search(rf"(?<!\w){re.escape(plain_text(option))}(?!\w)", plain_text(text or "")) is not None
    )


def _listed(prompt: str) -> tuple[str | None, str | None]:
    """Find the listed options "(A) ... (B) ..." in the prompt."""
    match = re.search(
        r"(?<!\w)\(?A[).:]+\s*(?P<a>[^\n]{1,160}?)[\s,;]*(?<!\w)\(?B[).:]+\s*(?P<b>[^\n]{1,160})", uniform(prompt)
    )
    if match is None:
        return None, None
    return match["a"], match["b"]


@lru_cache(maxsize=2048)
def _compile(options: tuple[Option, ...]) -> Choices:
    markers = sorted(
        {bare_marker(option.marker) for option in options} - {""}, key=lambda marker: (-len(marker), marker)
    )
    texts = sorted({plain_text(option.text) for option in options} - {""}, key=lambda text: (-len(text), text))
    words = [{word for word in _WORD.findall(plain_text(option.text)) if word not in _COMMON} for option in options]
    return Choices(
        options=options,
        marker=re.compile(rf"(?P<m>{'|'.join(map(re.escape, markers))})", re.IGNORECASE) if markers else None,
        text=re.compile(rf"(?<![\w-])(?P<t>{'|'.join(map(_flexible, texts))})(?:e?s)?(?![\w-])", re.IGNORECASE)
        if texts
        else None,
        words=tuple(
            frozenset(option_words.difference(*(other for place, other in enumerate(words) if place != index)))
            for index, option_words in enumerate(words)
        ),
    )


def _flexible(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in text.split())
