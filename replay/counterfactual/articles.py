"""Mends "a" and "an" before words that have changed."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from replay.counterfactual.edits import Edit, Rule
from replay.counterfactual.grammar import article_for

_ARTICLE: Final = re.compile(r"\b(an?)[ -][^\w\s]*$", re.IGNORECASE)
#: Characters before a word in which its article stands, with a quotation mark or so between.
_REACH: Final = 8
_THE: Final = re.compile(r"^the ", re.IGNORECASE)


def mend_articles(part: int, raw: str, edits: Sequence[Edit]) -> Iterator[Edit]:
    """Give the articles that must change because what follows them at once has."""
    for edit in edits:
        found = _ARTICLE.search(raw, max(edit.start - _REACH, 0), edit.start)
        if found is None or _THE.match(edit.new):
            continue
        seen = found[1]
        new = article_for(edit.new)
        if new == seen.lower() or article_for(edit.old) != seen.lower():
            continue
        shown = new.upper() if len(seen) > 1 and seen.isupper() else new.capitalize() if seen[0].isupper() else new
        yield Edit(part=part, start=found.start(1), end=found.end(1), old=seen, new=shown, rule=Rule.ARTICLE)
