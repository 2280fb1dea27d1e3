"""Finds Mr, Mrs, Ms and Miss before a name, and gives the other gender's title, with its full stop or without."""

from collections.abc import Iterator
from typing import Final

from replay.counterfactual.edits import Change, Rule
from replay.counterfactual.lexicon import NEUTRAL
from replay.counterfactual.text import Text

_TITLES: Final = {"male": ("mr",), "female": ("ms", "mrs", "miss")}
_NEW: Final = {"male": "Mr", "female": "Ms", NEUTRAL: "Mx"}


def find_titles(text: Text, source: str, target: str, taken: set[int]) -> Iterator[Change]:
    """Find the titles of a gender; a word that is no title ("I miss you") has a small letter, or no name after it.

    Parameters
    ----------
    taken
        Words that are spoken for; those found are added.
    """
    for index, word in enumerate(text.words[:-1]):
        named = text.has_capital(index + 1) and text.gap(index + 1) in {" ", ". "}
        # "Mr and Mrs Smith" are a couple whichever way round.
        couple = text.before(index) == "and" and index > 1 and text.low(index - 2) in _TITLES["male"]
        if word.low not in _TITLES[source] or not word.text[0].isupper() or not named or couple or index in taken:
            continue
        taken.add(index)
        new = _NEW[target].upper() if word.text.isupper() else _NEW[target]
        yield Change(first=index, last=index, new=new, rule=Rule.TITLE)
