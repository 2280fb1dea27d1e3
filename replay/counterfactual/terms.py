"""Finds the nouns and adjectives that name a group, and their counterparts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from replay.counterfactual.edits import Change, Reason, Refusal, Rule, match_case
from replay.counterfactual.grammar import ADDRESSED, AUXILIARIES, DETERMINERS, FUNCTION
from replay.counterfactual.lexicon import Axis, Lexicon, Phrase
from replay.counterfactual.text import Text, phrase, straight


@dataclass(frozen=True, slots=True)
class Term:
    """One form of a listed word, and what stands for it in the other group."""

    listed: str
    new: str | None
    rule: Rule


@lru_cache(maxsize=256)
def _terms(axis: Axis, source: str, target: str) -> Mapping[Phrase, tuple[Term, ...]]:
    """Give the terms of a group by their words; the first row that has a word in a part of speech holds for it."""
    at, to = axis.groups.index(source), axis.groups.index(target)
    found: dict[Phrase, dict[Rule, Term]] = {}
    for row in axis.rows:
        old, new = row.words[at], row.words[to]
        if old is None:
            continue
        rule = Rule.NOUN if row.noun else Rule.ADJECTIVE
        for number in range(2 if row.noun else 1):
            term = Term(old[number], new[number] if new is not None else None, rule)
            found.setdefault(phrase(old[number]), {}).setdefault(rule, term)
    return {words: tuple(terms.values()) for words, terms in found.items()}


@lru_cache(maxsize=256)
def _longest(axis: Axis, source: str, target: str) -> int:
    return max((len(words) for words in _terms(axis, source, target)), default=0)


def find_terms(text: Text, lexicon: Lexicon, axis: Axis, source: str, target: str, taken: set[int]) -> Iterator[Change]:
    """Find what names the group ``source``, and give its counterpart in ``target``.

    Parameters
    ----------
    taken
        Words that are spoken for (names, phrases to be left alone); those found are added.

    Raises
    ------
    Refusal
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
    """Tell whether the words of a span stand together, with nothing but spaces or hyphens between."""
    return all(text.gap(i) == "-" or text.gap(i).isspace() for i in span[1:])


def _change(text: Text, span: range, term: Term) -> Change:
    seen = text.raw[text.words[span[0]].start : text.words[span[-1]].end]
    if term.new is None:
        raise Refusal(Reason.NO_COUNTERPART, seen)
    new = match_case(seen, term.listed, term.new, opens=text.opens(span[0]))
    return Change(first=span[0], last=span[-1], new=new, rule=term.rule)


def _chosen(text: Text, span: range, choices: tuple[Term, ...]) -> Term:
    """Tell noun from adjective where a word is both: a noun has an article and nothing that it describes."""
    if len(choices) == 1:
        return choices[0]
    described = _describes(text, span)
    near = text.before(span[0])
    before = text.before(span[0], 2) if near not in FUNCTION else near
    noun = not described and before in DETERMINERS - {"all", "both", "more", "most"}
    return next(term for term in choices if (term.rule is Rule.NOUN) == noun)


def _describes(text: Text, span: range) -> bool:
    """Tell whether something follows that an adjective here would describe."""
    following = text.after(span[-1])
    return bool(following) and following not in FUNCTION


def _names_group(text: Text, lexicon: Lexicon, axis: Axis, span: range, term: Term) -> bool:
    """Tell whether a listed word stands here for its group, not for something else that has the same letters."""
    first, last = text.words[span[0]], text.words[span[-1]]
    capital = first.text[0].isupper() and not (len(first.text) > 1 and first.text.isupper())
    if term.listed[0].isupper() and first.text[0].islower() and not (text.is_small or term.listed == "Black"):
        return False
    if capital and _is_part_of_name(text, span, term):
        return False
    if last.low in axis.with_people and len(span) == 1:
        # "a 20-year-old man" names his age, not the group of the old.
        return text.gap(span[0]) != "-" and _before_people(text, lexicon, span[-1])
    if term.rule is Rule.ADJECTIVE and last.low in axis.languages:
        return _describes(text, span) or text.before(span[0]) in AUXILIARIES
    return True


def _is_part_of_name(text: Text, span: range, term: Term) -> bool:
    """Tell whether a capital is that of a longer name: "Indian Ocean", "Burger King", "King Street"."""
    following = span[-1] + 1
    joined = following < len(text.words) and text.gap(following).isspace() and not text.words[span[-1]].tail
    raised = joined and text.has_capital(following) and text.words[following].text != "I"
    if term.listed[0].isupper():
        return raised and not text.is_title(span[0]) and term.rule is Rule.ADJECTIVE
    if text.is_title(span[0]):
        return False
    return term.listed not in ADDRESSED and (raised or not text.opens(span[0]))


def _before_people(text: Text, lexicon: Lexicon, index: int) -> bool:
    """Tell whether a word for people follows, at once or after another adjective."""
    follows = text.after(index)
    between = follows in lexicon.adjectives or follows.endswith(("ed", "ing", "less", "ful"))
    return follows in lexicon.people or (between and text.after(index, 2) in lexicon.people)


def find_phrases(text: Text, phrases: frozenset[Phrase]) -> Iterator[range]:
    """Find listed phrases, the longest first at each place; a possessive's ending counts as a word of its own."""
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
