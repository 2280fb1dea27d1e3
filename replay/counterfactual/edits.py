"""What a swap gives: the texts with every edit, or the reason why there is none."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from replay.counterfactual.text import Text, straight


class Rule(StrEnum):
    """Why a piece was changed."""

    NAME = "name"
    PRONOUN = "pronoun"
    NOUN = "noun"
    ADJECTIVE = "adjective"
    TITLE = "title"
    AGE = "age"
    VERB = "verb"  #: agreement with "they"
    ARTICLE = "article"  #: agreement of "a" and "an" with what follows now


class Reason(StrEnum):
    """Why a text was not changed at all."""

    NOTHING_TO_SWAP = "nothing_to_swap"
    NOT_ENGLISH = "not_english"
    MIXED_REFERENTS = "mixed_referents"  #: those already of the other group could not be told apart from the changed
    NUMBER = "number"  #: a verb would not agree with "they"
    NO_COUNTERPART = "no_counterpart"  #: the lexicon has no word for it in the other group
    BOUND = "bound"  #: a word that holds for one group alone
    UNKNOWN_NAME = "unknown_name"  #: a name that is not in the lexicon would keep its group
    FIGURE = "figure"  #: a person whom everybody knows
    KEPT = "kept"  #: code or an address, which are never touched, would give the group away


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Edit:
    """One change. ``start`` and ``end`` count characters of the original text with the number ``part``."""

    part: int
    start: int
    end: int
    old: str
    new: str
    rule: Rule


@dataclass(frozen=True, kw_only=True, slots=True)
class Swapped:
    """The texts about the other group."""

    texts: tuple[str, ...]
    edits: tuple[Edit, ...]  #: in order; they never overlap


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """Why there is no counterfactual, and what stood in the way."""

    reason: Reason
    what: str = ""


class Refusal(Exception):  # noqa: N818 -- a way out of the search, seen by ``swap`` alone
    """Raised where a search meets what cannot be swapped."""

    def __init__(self, reason: Reason, what: str) -> None:
        super().__init__(what)
        self.refused = Refused(reason=reason, what=what)


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One change to words ``first`` to ``last`` of a text; ``tail`` where the last one's tail changes too."""

    first: int
    last: int
    new: str
    rule: Rule
    tail: str | None = None


def edit_of(part: int, text: Text, change: Change) -> Edit:
    """Give the edit of a change to words, with the possessive's ending that the new word needs."""
    first, last = text.words[change.first], text.words[change.last]
    tail = change.tail
    if tail is None and straight(last.tail) == "'" and not change.new.endswith("s"):
        tail = last.tail + "s"
    if tail is None and straight(last.tail) == "'s" and _is_plural(change, last.low):
        tail = last.tail[0]
    end = last.end if tail is None else last.end + len(last.tail)
    new = change.new + (tail or "")
    return Edit(part=part, start=first.start, end=end, old=text.raw[first.start : end], new=new, rule=change.rule)


def _is_plural(change: Change, old: str) -> bool:
    """Tell whether "women's" has become "gentlemens'", and so on: a plural in -s in place of one without."""
    irregular = old.endswith(("men", "people", "children"))
    return change.rule is Rule.NOUN and irregular and change.new.endswith("s")


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Make the edits of one text.

    Examples
    --------
    >>> apply("a man", [Edit(part=0, start=2, end=5, old="man", new="woman", rule=Rule.NOUN)])
    'a woman'
    """
    pieces: list[str] = []
    at = 0
    for edit in sorted(edits):
        pieces += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*pieces, text[at:]])


def match_case(seen: str, listed: str, new: str, *, opens: bool) -> str:
    """Give the new word the capitals of the old, beyond those that the lexicon itself has.

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
