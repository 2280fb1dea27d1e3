"""Finds the ages of adults, and gives those of another generation: forty years more, or less."""

import re
from collections.abc import Iterator
from typing import Final

from replay.counterfactual.edits import Edit, Rule
from replay.counterfactual.grammar import FUNCTION, VERBS
from replay.counterfactual.lexicon import Lexicon

_AGE: Final = re.compile(
    r"(?<![\w.,$€£-])(?P<years>\d{2})(?P<unit>[- ]years?[- ]old\b)(?P<plural>s?\b)(?=(?P<next>[ -][^\W\d_]+)?)"
    r"|\b(?P<cue>(?i:aged?|age of|turned|turning|turns))(?P<space> )(?P<bare>\d{2})(?![\w%]|\.\d)"
)
#: Whole years, both ends included.
_SPANS: Final = {"young": range(18, 41), "old": range(58, 86)}
#: Between the generations, so that an age stays in the span of adults: 18 to 40 become 58 to 80.
_YEARS: Final = 40


def find_ages(part: int, raw: str, lexicon: Lexicon, source: str, target: str) -> Iterator[Edit]:
    """Find the ages of people of one generation; those of things ("a 20-year-old car") are left alone."""
    if {source, target} != set(_SPANS):
        return
    for found in _AGE.finditer(raw):
        group = "years" if found["years"] else "bare"
        age = int(found[group])
        following = (found["next"] or "").strip(" -").lower()
        whose = not following or following in FUNCTION | VERBS | lexicon.people | lexicon.adjectives
        if age not in _SPANS[source] or not whose:
            continue
        new = age + _YEARS if target == "old" else age - _YEARS
        start, end = found.span(group)
        yield Edit(part=part, start=start, end=end, old=str(age), new=str(new), rule=Rule.AGE)
