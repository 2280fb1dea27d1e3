"""Find and replace the pronouns and titles of a gender. For "they" the number of the verb changes too."""

from collections.abc import Iterator
from typing import Final

from replay.counterfactual.edits import EditRule, RefusalReason, SwapRefusal, WordChange, match_case
from replay.counterfactual.grammar import (
    ADVERBS,
    AUXILIARIES,
    CALLING,
    CAUSATIVES,
    CONJUNCTIONS,
    COUNTS,
    DETERMINERS,
    DITRANSITIVES,
    DONE,
    FUNCTION,
    GIVEN,
    LY_NOUNS,
    POSSESSABLE,
    SPEAKING,
    STATES,
    TELLING,
    VERBS,
    base_form,
)
from replay.counterfactual.lexicon import NEUTRAL
from replay.counterfactual.text import Text

_FORMS: Final = {
    "male": {"subject": "he", "object": "him", "possessive": "his", "alone": "his", "reflexive": "himself"},
    "female": {"subject": "she", "object": "her", "possessive": "her", "alone": "hers", "reflexive": "herself"},
    NEUTRAL: {"subject": "they", "object": "them", "possessive": "their", "alone": "theirs", "reflexive": "themselves"},
}
_DASHES: Final = "-\N{EN DASH}\N{EM DASH}"
_THEY: Final = frozenset({*_FORMS[NEUTRAL].values(), "themself"})


def gender_of(low: str) -> str | None:
    """Return the gender of a pronoun."""
    return next((gender for gender in ("male", "female") if low in _FORMS[gender].values()), None)


def find_pronouns(text: Text, source: str, taken: set[int]) -> list[int]:
    """Find the pronouns of a gender, except those that include everybody: "he or she", "his/her"."""
    inclusive = set(_inclusive(text))
    return [
        index
        for index, word in enumerate(text.words)
        if index not in taken | inclusive and gender_of(word.low) == source and not _is_code_word(text, index)
    ]


def _is_code_word(text: Text, index: int) -> bool:
    """Return whether the word is an abbreviation in capitals, such as "HE", in a text that is not all capitals."""
    if text.words[index].text != "HE":
        return False
    return all(not word.text.isupper() or len(word.text) < 2 for i, word in enumerate(text.words) if i != index)


def _inclusive(text: Text) -> Iterator[int]:
    for index in range(len(text.words)):
        if text.raw.endswith((")", "s/"), 0, text.words[index].start):  # (s)he, s/he
            yield index
        for step in (1, 2):
            other = index + step
            if other >= len(text.words):
                continue
            linked = text.gap(other).strip() == "/" if step == 1 else text.words[index + 1].low in {"or", "and"}
            genders = {gender_of(text.words[index].low), gender_of(text.words[other].low)}
            if linked and genders == {"male", "female"} and (step == 1 or text.after(index, 2)):
                yield from (index, other)


def names_they(text: Text) -> bool:
    """Return whether the text already uses "they" for a person."""
    return any(word.low in _THEY for word in text.words)


def change_pronoun(text: Text, index: int, target: str, taken: set[int]) -> Iterator[WordChange]:
    """Replace a pronoun by the other gender's pronoun in the same case, and make the verb agree.

    Parameters
    ----------
    taken
        Words that already have a change or must not change. The words changed here are added.
    """
    word = text.words[index]
    case = _case(text, index)
    new = _FORMS[target][case]
    tail, verbs = None, list[WordChange]()
    if target == NEUTRAL and case == "subject":
        tail, verbs = _agreeing(text, index, taken)
    taken.update([index, *(verb.first for verb in verbs)])
    yield WordChange(
        first=index,
        last=index,
        new=match_case(word.text, word.low, new, opens=text.opens(index)),
        rule=EditRule.PRONOUN,
        tail=tail,
    )
    yield from verbs


def _case(text: Text, index: int) -> str:
    low = text.words[index].low
    if low == "her":
        return "object" if _is_object(text, index) else "possessive"
    if low == "his":
        return "alone" if _stands_alone(text, index) else "possessive"
    return next(case for forms in _FORMS.values() for case, form in forms.items() if form == low)


def _stands_alone(text: Text, index: int) -> bool:
    following = text.after(index)
    if not following:
        return not _goes_on(text, index)
    return following in AUXILIARIES | CONJUNCTIONS or (text.before(index) == "of" and following in SPEAKING)


def _goes_on(text: Text, index: int) -> bool:
    """Return whether code, a quotation or a number follows, because it may be the possessed thing."""
    gap = text.gap(index + 1)
    return gap[:1] == " " and len(gap.strip()) > 0 and gap.strip()[0] not in _DASHES


def _is_object(text: Text, index: int) -> bool:
    """Return whether "her" is an object ("I saw her"), not a possessive ("her book"), by the adjacent words."""
    before, following, third = text.before(index), text.after(index), text.after(index, 2)
    closed = not third or third in FUNCTION
    if not following:
        return not _goes_on(text, index) or before in DITRANSITIVES | TELLING  # "give her 3 tips"
    if text.gap(index + 2) == "-" and index + 2 < len(text.words):
        return False  # "her once-famous book"
    if following in {"back", "home"}:
        return before in CALLING if closed else False
    if following in FUNCTION and following not in POSSESSABLE:
        return True
    if before in CAUSATIVES and following in VERBS:
        return third in FUNCTION or not third or following not in {"care", "change", "call", "study", "plan"}
    adverb = following.endswith("ly") and following not in LY_NOUNS
    return (adverb and closed) or (before in TELLING | DITRANSITIVES and _receives(before, following, third))


def _receives(before: str, following: str, third: str) -> bool:
    """Return whether "her" receives something: "give her advice", but not "give her books to the school"."""
    if following in COUNTS:
        return True
    many = before in DITRANSITIVES and following.endswith("s") and third not in {"to", "for"}
    return (not third or third in FUNCTION) and (following in GIVEN or many)


def _agreeing(text: Text, index: int, taken: set[int]) -> tuple[str | None, list[WordChange]]:
    """Change the verb of "he" or "she" to the plural. A word in ``taken`` is not its verb.

    Raises
    ------
    Refusal
        Another verb of the same subject may follow, or "'s" may be "is" or "has".
    """
    word = text.words[index]
    if word.tail[1:] == "s":
        _refuse_further(text, index + 1)
        return word.tail[0] + ("ve" if _is_perfect(text, index) else "re"), []
    if word.tail:
        return word.tail, []
    if text.gap(index + 1).startswith(","):
        raise SwapRefusal(RefusalReason.NUMBER, word.text)
    verb = index + 1
    while text.after(index, verb - index) in ADVERBS or text.after(index, verb - index).endswith("ly"):
        verb += 1
    follows = text.after(index, verb - index) and verb not in taken
    if follows and (base := base_form(text.words[verb].low)) is not None:
        _refuse_further(text, verb + 1)
        return None, [_verb(text, verb, base)]
    # In "what he was he became", the verb between the pronouns belongs to the first.
    before = text.before(index) if index - 1 not in taken else ""
    if before in AUXILIARIES and (base := base_form(before)) is not None:
        return None, [_verb(text, index - 1, base)]
    return None, []


def _verb(text: Text, index: int, base: str) -> WordChange:
    seen = text.words[index]
    shown = match_case(seen.text, base, base, opens=False)
    return WordChange(first=index, last=index, new=shown, rule=EditRule.VERB)


def _is_perfect(text: Text, index: int) -> bool:
    low = text.words[index + 1].low if index + 1 < len(text.words) else ""
    if low in {"done", "gone"} or (low.endswith("ed") and low not in STATES):
        raise SwapRefusal(RefusalReason.NUMBER, f"{text.words[index].text}'s {low}")
    return low in DONE


def _refuse_further(text: Text, start: int) -> None:
    """Refuse a sentence in which a further verb may have the same subject: "she works and lives"."""
    for index in range(start, len(text.words)):
        gap = text.gap(index)
        if any(mark in gap for mark in ".!?;:\n"):
            return
        word = text.words[index].low
        linked = "," in gap or text.before(index) in {"and", "or", "but", "then"} | ADVERBS
        third = base_form(word)
        known = third in VERBS or word in {"is", "was", "has", "does", "goes"}
        # An article may follow an unknown verb ("and signs every form"), but not a plural noun ("cats and dogs").
        if linked and third is not None and (known or text.after(index) in DETERMINERS | {"to"}):
            raise SwapRefusal(RefusalReason.NUMBER, word)


_TITLES: Final = {"male": ("mr",), "female": ("ms", "mrs", "miss")}
_NEW: Final = {"male": "Mr", "female": "Ms", NEUTRAL: "Mx"}


def find_titles(text: Text, source: str, target: str, taken: set[int]) -> Iterator[WordChange]:
    """Find the titles of a gender. A title has a capital and a name after it, unlike "miss" in "I miss you".

    Parameters
    ----------
    taken
        Words that are already used; those found are added.
    """
    for index, word in enumerate(text.words[:-1]):
        named = text.has_capital(index + 1) and text.gap(index + 1) in {" ", ". "}
        # "Mr and Mrs Smith" is a couple in either order.
        couple = text.before(index) == "and" and index > 1 and text.low(index - 2) in _TITLES["male"]
        if word.low not in _TITLES[source] or not word.text[0].isupper() or not named or couple or index in taken:
            continue
        taken.add(index)
        new = _NEW[target].upper() if word.text.isupper() else _NEW[target]
        yield WordChange(first=index, last=index, new=new, rule=EditRule.TITLE)
