"""Find the nouns, adjectives and ages that name a group, with their counterparts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from replay.counterfactual.edits import Edit, EditRule, RefusalReason, SwapRefusal, WordChange, match_case
from replay.counterfactual.grammar import ADDRESSED, AUXILIARIES, DETERMINERS, FUNCTION, VERBS
from replay.counterfactual.lexicon import Axis, Phrase, SwapLexicon
from replay.counterfactual.text import Text, phrase, straight


@dataclass(frozen=True, slots=True)
class Term:
    """One form of a listed word, and its counterpart in the other group."""

    listed: str
    new: str | None
    rule: EditRule


@lru_cache(maxsize=256)
def _terms(axis: Axis, source: str, target: str) -> Mapping[Phrase, tuple[Term, ...]]:
    """Return the terms of a group by their words. The first row with a word in a part of speech takes precedence."""
    at, to = axis.groups.index(source), axis.groups.index(target)
    terms_by_rule: dict[Phrase, dict[EditRule, Term]] = {}
    for row in axis.rows:
        old, new = row.words[at], row.words[to]
        if old is None:
            continue
        rule = EditRule.NOUN if row.noun else EditRule.ADJECTIVE
        for number in range(2 if row.noun else 1):
            term = Term(old[number], new[number] if new is not None else None, rule)
            terms_by_rule.setdefault(phrase(old[number]), {}).setdefault(rule, term)
    return {words: tuple(terms.values()) for words, terms in terms_by_rule.items()}


@lru_cache(maxsize=256)
def _longest(axis: Axis, source: str, target: str) -> int:
    return max((len(words) for words in _terms(axis, source, target)), default=0)


def find_terms(
    text: Text, lexicon: SwapLexicon, axis: Axis, source: str, target: str, taken: set[int]
) -> Iterator[WordChange]:
    """Find the terms that name the group ``source``, with their counterparts in ``target``.

    Parameters
    ----------
    taken
        Words that are already used (names, phrases that must not change). Those found are added.

    Raises
    ------
    SwapRefusal
        A word has no counterpart.
    """
    terms, longest = _terms(axis, source, target), _longest(axis, source, target)
    for first in range(len(text.words)):
        for length in range(min(longest, len(text.words) - first), 0, -1):
            span = range(first, first + length)
            choices = terms.get(tuple(text.words[i].low for i in span))
            if choices is None or taken & set(span) or not is_joined(text, span):
                continue
            term = _chosen(text, span, choices)
            if not _names_group(text, lexicon, axis, span, term):
                continue
            yield _change(text, span, term)
            taken.update(span)
            break


def is_joined(text: Text, span: range) -> bool:
    """Return whether only spaces or hyphens separate the words of a span."""
    return all(text.gap(i) == "-" or text.gap(i).isspace() for i in span[1:])


def _change(text: Text, span: range, term: Term) -> WordChange:
    seen = text.raw[text.words[span[0]].start : text.words[span[-1]].end]
    if term.new is None:
        raise SwapRefusal(RefusalReason.NO_COUNTERPART, seen)
    new = match_case(seen, term.listed, term.new, opens=text.opens(span[0]))
    return WordChange(first=span[0], last=span[-1], new=new, rule=term.rule)


def _chosen(text: Text, span: range, choices: tuple[Term, ...]) -> Term:
    """Choose noun or adjective for a word that is both. A noun has an article and describes nothing."""
    if len(choices) == 1:
        return choices[0]
    described = _describes(text, span)
    near = text.before(span[0])
    before = text.before(span[0], 2) if near not in FUNCTION else near
    noun = not described and before in DETERMINERS - {"all", "both", "more", "most"}
    return next(term for term in choices if (term.rule is EditRule.NOUN) == noun)


def _describes(text: Text, span: range) -> bool:
    """Return whether a word follows that an adjective at this position would describe."""
    following = text.after(span[-1])
    return bool(following) and following not in FUNCTION


def _names_group(text: Text, lexicon: SwapLexicon, axis: Axis, span: range, term: Term) -> bool:
    """Return whether a listed word names its group here, and is not another word with the same letters."""
    first, last = text.words[span[0]], text.words[span[-1]]
    capital = first.text[0].isupper() and not (len(first.text) > 1 and first.text.isupper())
    if term.listed[0].isupper() and first.text[0].islower() and not (text.is_small or term.listed == "Black"):
        return False
    if capital and _is_part_of_name(text, span, term):
        return False
    if last.low in axis.with_people and len(span) == 1:
        # "a 20-year-old man" names his age, not the group of the old.
        return text.gap(span[0]) != "-" and _before_people(text, lexicon, span[-1])
    if term.rule is EditRule.ADJECTIVE and last.low in axis.languages:
        return _describes(text, span) or text.before(span[0]) in AUXILIARIES
    return True


def _is_part_of_name(text: Text, span: range, term: Term) -> bool:
    """Return whether a capitalised word is part of a longer name: "Indian Ocean", "Burger King", "King Street"."""
    following = span[-1] + 1
    joined = following < len(text.words) and text.gap(following).isspace() and not text.words[span[-1]].tail
    raised = joined and text.has_capital(following) and text.words[following].text != "I"
    if term.listed[0].isupper():
        return raised and not text.is_title(span[0]) and term.rule is EditRule.ADJECTIVE
    if text.is_title(span[0]):
        return False
    return term.listed not in ADDRESSED and (raised or not text.opens(span[0]))


def _before_people(text: Text, lexicon: SwapLexicon, index: int) -> bool:
    """Return whether a word for people follows, directly or after another adjective."""
    follows = text.after(index)
    between = follows in lexicon.adjectives or follows.endswith(("ed", "ing", "less", "ful"))
    return follows in lexicon.people or (between and text.after(index, 2) in lexicon.people)


def find_phrases(text: Text, phrases: frozenset[Phrase]) -> Iterator[range]:
    """Find listed phrases, the longest first at each position. A possessive ending counts as a separate word."""
    longest = max(map(len, phrases), default=0)
    for first in range(len(text.words)):
        spoken: list[str] = []
        best: range | None = None
        for index in range(first, min(first + longest, len(text.words))):
            if index > first and not is_joined(text, range(index - 1, index + 1)):
                break
            word = text.words[index]
            spoken.append(word.low)
            if tuple(spoken) in phrases:
                best = range(first, index + 1)
            if word.tail:
                spoken.append(straight(word.tail))
                if tuple(spoken) in phrases:
                    best = range(first, index + 1)
        if best is not None:
            yield best


_AGE: Final = re.compile(
    r"(?<![\w.,$€£-])(?P<years>\d{2})(?P<unit>[- ]years?[- ]old\b)(?P<plural>s?\b)(?=(?P<next>[ -][^\W\d_]+)?)"
    r"|\b(?P<cue>(?i:aged?|age of|turned|turning|turns))(?P<space> )(?P<bare>\d{2})(?![\w%]|\.\d)"
)
#: Whole years, both ends included.
_SPANS: Final = {"young": range(18, 41), "old": range(58, 86)}
#: Years between the generations. Ages stay those of adults: 18 to 40 become 58 to 80.
_YEARS: Final = 40


def find_ages(part: int, raw: str, lexicon: SwapLexicon, source: str, target: str) -> Iterator[Edit]:
    """Find the ages of people of one generation. Ages of things ("a 20-year-old car") are ignored."""
    if {source, target} != set(_SPANS):
        return
    for match in _AGE.finditer(raw):
        group = "years" if match["years"] else "bare"
        age = int(match[group])
        following = (match["next"] or "").strip(" -").lower()
        whose = not following or following in FUNCTION | VERBS | lexicon.people | lexicon.adjectives
        if age not in _SPANS[source] or not whose:
            continue
        new = age + _YEARS if target == "old" else age - _YEARS
        start, end = match.span(group)
        yield Edit(part=part, start=start, end=end, old=str(age), new=str(new), rule=EditRule.AGE)
