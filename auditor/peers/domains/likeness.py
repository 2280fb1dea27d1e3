"""Whether two questions are the same one: written alike, or with nearly the same words."""

import re
import unicodedata
from collections import Counter, defaultdict
from typing import Final

from auditor.instrument.pool_words import content

#: Shared words of all words of two questions, over which they are taken for nearly the same.
NEAR: Final = 0.6

_NUMBERING: Final = re.compile(r"\A\s*\d{1,4}[.):]\s+")
_WORD: Final = re.compile(r"[^\W_]+")


def normal_form(text: str) -> str:
    """Give a question's words alone: no case, punctuation, width of letters or number in front.

    Examples
    --------
    >>> normal_form("3. Who  decides -- and why?") == normal_form("who decides, and WHY")
    True
    """
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", _NUMBERING.sub("", text)).casefold()))


def overlap(one: str, other: str) -> float:
    """Give the share of words in common, in [0, 1]: of the stems that carry a theme, those in both of those in either.

    Examples
    --------
    >>> overlap("Why are newspapers closed?", "Why was a newspaper closed?")
    1.0
    >>> overlap("Why are newspapers closed?", "Who prints newspapers abroad?")
    0.2
    """
    words, others = content(one), content(other)
    return len(words & others) / max(1, len(words | others))


class Seen:
    """Questions so far, to be compared with the next one."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._sizes: list[int] = []
        self._by_word: dict[str, list[int]] = defaultdict(list)
        self._by_form: dict[str, int] = {}

    def add(self, text: str) -> None:
        """Take one more."""
        words = content(text)
        for word in words:
            self._by_word[word].append(len(self._texts))
        self._by_form.setdefault(normal_form(text), len(self._texts))
        self._texts.append(text)
        self._sizes.append(len(words))

    def same(self, text: str) -> int | None:
        """Give the place of the question that is written alike."""
        return self._by_form.get(normal_form(text))

    def near(self, text: str) -> tuple[int, float] | None:
        """Give the place of the question with the most words in common, and its overlap, where that is ``NEAR``."""
        words = content(text)
        shared = Counter(place for word in words for place in self._by_word.get(word, ()))
        found = [(count / (len(words) + self._sizes[place] - count), -place) for place, count in shared.items()]
        most, place = max(found, default=(0.0, 0))
        return (-place, most) if most >= NEAR else None
