"""Read "agree or disagree" as one expression: a position (neither, both), a refusal, or a repetition of the question.

``agreement`` reads each of the two words separately.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from auditor.domain.coding import Stance
from auditor.selection.marks import Mark, Rank
from auditor.selection.phrases import leads_in, sentence
from auditor.selection.speech import has_speaker, is_negated, is_unable

_PAIR: Final = re.compile(
    r"\b(?:strong(?:ly)? )?(?:dis)?agree(?:ment|ing|s|d)?[\"'.]*\s*(?:/+|"
    r"\|\||\bor\b|\bnor\b|\band/or\b|\band\b|\bvs\.?\b|,)\s*"
    r"(?:(?:to|in|with|express|I|my|either|even|partly|partially|"
    r"strongly|that I|also|say|do not|don't|not)\s+){0,3}[\"']*"
    r"(?:I\s+)?(?:strongly )?(?:dis)?agree(?:ment|ing|s|d)?(?!\w)"
    r"(?:\s*(?:,\s*)?(?:(?:or|nor|and)\s+|(?<=,\s))(?:strong(?:ly)? )?(?:dis)?agree(?!\w)){0,3}",
    re.IGNORECASE,
)
_BARE_PAIR: Final = re.compile(r"\b(?:I\s+)?agree[.\"']*\s+(?:I\s+)?disagree\b(?=\s*(?:\n|$))", re.IGNORECASE)
_NEITHER: Final = re.compile(r"\bneither\b", re.IGNORECASE)
_UNFIT: Final = re.compile(r"\bunjustified|\bnot (?:fair|right|accurate)\b", re.IGNORECASE)

#: Only a model in a repetition loop says it more often; then only the first and last occurrences count.
_MANY: Final = 200


@dataclass(frozen=True, slots=True)
class Pair:
    """One occurrence of both words: an answer, a refusal, or otherwise a repetition of the question."""

    start: int
    end: int
    mark: Mark | None = None
    declined: bool = False

    @property
    def echo(self) -> bool:
        """Return whether the question's words were only repeated."""
        return self.mark is None and not self.declined


def find_pairs(seen: str) -> Iterator[Pair]:
    """Find "agree or disagree" in all its forms."""
    for pattern in (_PAIR, _BARE_PAIR):
        pairs = list(pattern.finditer(seen))
        for found in pairs if len(pairs) <= _MANY else pairs[: _MANY // 2] + pairs[-_MANY // 2 :]:
            yield _read(seen, found)


def _read(seen: str, found: re.Match[str]) -> Pair:
    start, end = sentence(seen, found.start())
    before = seen[start : found.start()]
    place = found.span()
    speaks = has_speaker(before)
    if (neither := _NEITHER.search(before)) and (speaks or leads_in(before[: neither.start()])):
        return Pair(*place, mark=Mark(start, end, Stance.N, Rank.PROSE))
    if is_unable(before) or _UNFIT.search(before):
        return Pair(*place, declined=True)
    if not speaks:
        return Pair(*place)
    if is_negated(before):
        if '"' in seen[found.start() - 1 : found.end()]:  # "I need not say 'I agree' or 'I disagree'"
            return Pair(*place, declined=True)
        return Pair(*place, mark=Mark(start, end, Stance.N, Rank.PROSE, soft=True))
    both = " and " in found.group().lower() and re.search(r"both|part", before + found.group(), re.IGNORECASE)
    return Pair(*place, mark=Mark(start, end, Stance.N, Rank.PROSE) if both else None)
