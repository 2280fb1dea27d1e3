"""The results of a swap: the texts with every edit, or the reason why there is none."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from replay.counterfactual.grammar import article_for
from replay.counterfactual.text import Text, straight


class EditRule(StrEnum):
    """Why a word was changed."""

    NAME = "name"
    PRONOUN = "pronoun"
    NOUN = "noun"
    ADJECTIVE = "adjective"
    TITLE = "title"
    AGE = "age"
    VERB = "verb"  #: agreement with "they"
    ARTICLE = "article"  #: agreement of "a" and "an" with the following word


class RefusalReason(StrEnum):
    """Why a text was not changed at all."""

    NOTHING_TO_SWAP = "nothing_to_swap"
    NOT_ENGLISH = "not_english"
    MIXED_REFERENTS = "mixed_referents"  #: the text already names the other group
    NUMBER = "number"  #: a verb would not agree with "they"
    NO_COUNTERPART = "no_counterpart"  #: the lexicon has no word for it in the other group
    BOUND = "bound"  #: a word that applies to one group only
    UNKNOWN_NAME = "unknown_name"  #: a name that is not in the lexicon would keep its group
    FIGURE = "figure"  #: a well-known person
    KEPT = "kept"  #: code or an address, which is never changed, would reveal the group


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Edit:
    """One change. ``start`` and ``end`` count characters of the original text with the number ``part``."""

    part: int
    start: int
    end: int
    old: str
    new: str
    rule: EditRule


@dataclass(frozen=True, kw_only=True, slots=True)
class SwappedTexts:
    """The texts about the other group."""

    texts: tuple[str, ...]
    edits: tuple[Edit, ...]  #: in order; they never overlap


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedSwap:
    """Why a text cannot be swapped, and the words that prevent it."""

    reason: RefusalReason
    what: str = ""


class SwapRefusal(Exception):  # noqa: N818 -- a way out of the search, seen by ``swap`` alone
    """An error for a word that cannot be swapped."""

    def __init__(self, reason: RefusalReason, what: str) -> None:
        super().__init__(what)
        self.refused = RefusedSwap(reason=reason, what=what)


@dataclass(frozen=True, kw_only=True, slots=True)
class WordChange:
    """One change to the words ``first`` to ``last`` of a text, and to the last word's tail if ``tail`` is given."""

    first: int
    last: int
    new: str
    rule: EditRule
    tail: str | None = None


def edit_of(part: int, text: Text, change: WordChange) -> Edit:
    """Return the edit of a change to words, with the possessive ending that the new word needs."""
    first, last = text.words[change.first], text.words[change.last]
    tail = change.tail
    if tail is None and straight(last.tail) == "'" and not change.new.endswith("s"):
        tail = last.tail + "s"
    if tail is None and straight(last.tail) == "'s" and _is_plural(change, last.low):
        tail = last.tail[0]
    end = last.end if tail is None else last.end + len(last.tail)
    new = change.new + (tail or "")
    return Edit(part=part, start=first.start, end=end, old=text.raw[first.start : end], new=new, rule=change.rule)


def _is_plural(change: WordChange, old: str) -> bool:
    """Return whether a plural in -s replaces a plural without -s: "women's" becomes "gentlemens'"."""
    irregular = old.endswith(("men", "people", "children"))
    return change.rule is EditRule.NOUN and irregular and change.new.endswith("s")


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Apply the edits of one text.

    Examples
    --------
    >>> apply("a man", [Edit(part=0, start=2, end=5, old="man", new="woman", rule=EditRule.NOUN)])
    'a woman'
    """
    pieces: list[str] = []
    at = 0
    for edit in sorted(edits):
        pieces += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*pieces, text[at:]])


def match_case(seen: str, listed: str, new: str, *, opens: bool) -> str:
    """Return the new word with the capitals of the old one, in addition to those of the lexicon.

    Examples
    --------
    >>> match_case("ACTOR", "actor", "actress", opens=False), match_case("Mom", "mom", "dad", opens=False)
    ('ACTRESS', 'Dad')
    >>> match_case("Christian", "Christian", "atheist", opens=False), match_case("Jew", "Jew", "atheist", opens=True)
    ('atheist', 'Atheist')
    """
    if len(seen) > 1 and seen.isupper() and not listed.isupper():
        return new.upper()
    if seen == seen.lower() != listed:
        return new.lower()
    raised = seen[0].isupper() and (opens or not listed[0].isupper())
    return new[0].upper() + new[1:] if raised else new


_ARTICLE: Final = re.compile(r"\b(an?)[ -][^\w\s]*$", re.IGNORECASE)
#: Characters before a word that are searched for its article; a quotation mark may stand between.
_REACH: Final = 8
_THE: Final = re.compile(r"^the ", re.IGNORECASE)


def mend_articles(part: int, raw: str, edits: Sequence[Edit]) -> Iterator[Edit]:
    """Yield the changes of articles whose following word has changed."""
    for edit in edits:
        article = _ARTICLE.search(raw, max(edit.start - _REACH, 0), edit.start)
        if article is None or _THE.match(edit.new):
            continue
        seen = article[1]
        new = article_for(edit.new)
        if new == seen.lower() or article_for(edit.old) != seen.lower():
            continue
        shown = new.upper() if len(seen) > 1 and seen.isupper() else new.capitalize() if seen[0].isupper() else new
        yield Edit(part=part, start=article.start(1), end=article.end(1), old=seen, new=shown, rule=EditRule.ARTICLE)
