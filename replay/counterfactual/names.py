"""Find first names, and draw their replacements. A name gets the same replacement in all texts."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

from replay.counterfactual.edits import EditRule, RefusalReason, SwapRefusal, WordChange
from replay.counterfactual.gender import gender_of
from replay.counterfactual.grammar import FUNCTION, GREETINGS, KIN, SAYING, SPEAKING, TITLES
from replay.counterfactual.lexicon import NEUTRAL, FirstName, SwapLexicon
from replay.counterfactual.terms import find_phrases
from replay.counterfactual.text import Text

#: Titles before a full name or a surname only. Others, such as "Aunt" and "Nurse", also precede a first name.
_BEFORE_SURNAME: Final = frozenset({"mr", "mrs", "ms", "mx", "dr", "prof", "professor", "doctor", "judge", "senator"})
#: Words before a month or a place, even if the word is also a name in the text.
_DATING: Final = frozenset(
    {"in", "by", "since", "until", "during", "this", "next", "last", "early", "late", "of", "at"}
)
_VOCATIVE: Final = frozenset({"dear", "hi", "hello", "hey"})


class FoundNames:
    """The first names of some texts, by text and word."""

    def __init__(self, texts: Sequence[Text], lexicon: SwapLexicon) -> None:
        self._lexicon = lexicon
        self.surnames = {low for text in texts for low in _surnames(text, lexicon)}
        clear = {low for text in texts for _, low in self._find_names(text, frozenset())}
        self.first_names: list[dict[int, FirstName]] = [
            {index: lexicon.names[low] for index, low in self._find_names(text, frozenset(clear))} for text in texts
        ]

    def _find_names(self, text: Text, clear: frozenset[str]) -> Iterator[tuple[int, str]]:
        for index, word in enumerate(text.words):
            if word.low in self._lexicon.names and self._is_name(text, index, clear):
                yield index, word.low

    def _is_name(self, text: Text, index: int, clear: frozenset[str]) -> bool:
        word = text.words[index]
        unclear = word.low in self._lexicon.also_words | self._lexicon.also_places
        if not word.text[0].isupper():
            return text.is_small and not unclear
        if word.low in self.surnames or self._is_part(text, index):
            return False
        return not unclear or self._is_clear(text, index, clear)

    def _is_clear(self, text: Text, index: int, clear: frozenset[str]) -> bool:
        """Return whether a word that can be a name or something else is a name here."""
        low = text.low(index)
        place = low in self._lexicon.also_places
        if _has_cue(text, index, SAYING if place else SPEAKING) or (not place and self._has_pronoun(text, index)):
            return True
        if low in clear and not (place and text.before(index) in _DATING):
            return not text.opens(index) or text.after(index) not in FUNCTION
        return not (place or text.opens(index) or text.is_title(index))

    def _has_pronoun(self, text: Text, index: int) -> bool:
        """Return whether a pronoun that fits the name follows, as after "Grace is late" or "Grace and I"."""
        beside = text.after(index) in {"is", "was", "has", "had"} or text.after(index, 2) == "i"
        gender = self._lexicon.names[text.words[index].low].gender
        return beside and any(gender_of(word.low) == gender for word in text.words)

    def _is_part(self, text: Text, index: int) -> bool:
        """Return whether the name is part of the name of a street, a company or a saint."""
        near = {text.before(index), text.after(index), text.after(index, 2)}
        if index and text.gap(index) == ". " and text.has_capital(index - 1):
            near.add(text.low(index - 1))  # "St. Thomas"
        beside = text.has_capital(index + 1) or text.has_capital(index - 1)
        return _is_double(text, index) or (beside and bool(near & self._lexicon.with_name))


def _is_double(text: Text, index: int) -> bool:
    """Return whether a hyphen joins the name to another one: "Mary-Jane"."""
    before = text.gap(index) == "-" and text.has_capital(index - 1)
    return before or (text.gap(index + 1) == "-" and text.has_capital(index + 1))


def _has_cue(text: Text, index: int, verbs: frozenset[str]) -> bool:
    """Return whether the adjacent words show that this is the name of a person."""
    before, after = text.before(index), text.after(index)
    titled = index > 0 and text.words[index - 1].low in TITLES and text.gap(index).strip(".") == " "
    addressed = before in GREETINGS and not after
    signed = text.gap(index).endswith("\n") and index + 1 == len(text.words)
    return titled or before in KIN or addressed or signed or (after in verbs and text.has_capital(index))


def _surnames(text: Text, lexicon: SwapLexicon) -> Iterator[str]:
    """Return the capitalised words after a first name or a title."""
    for index in range(1, len(text.words)):
        word, before = text.words[index], text.words[index - 1]
        if not word.text[0].isupper() or word.text == "I" or not before.text[0].isupper() or before.tail:
            continue
        titled = before.low in _BEFORE_SURNAME and text.gap(index) in {" ", ". "}
        whole = text.gap(index) == " " and before.low in lexicon.names and not text.opens(index)
        middle = word.low in lexicon.names and bool(text.after(index)) and text.has_capital(index + 1)
        if (whole and not middle) or (titled and not (text.after(index) and text.has_capital(index + 1))):
            yield word.low


def refuse_figures(texts: Sequence[Text], lexicon: SwapLexicon) -> None:
    """Refuse texts that name a well-known person."""
    for text in texts:
        for span in find_phrases(text, lexicon.figures):
            if text.words[span[0]].text[0].isupper() or text.is_small:
                raise SwapRefusal(RefusalReason.FIGURE, " ".join(text.words[i].text for i in span))


def refuse_unknown(texts: Sequence[Text], roster: FoundNames, lexicon: SwapLexicon) -> None:
    """Refuse texts with a first name that is not in the lexicon, because it would keep the original gender."""
    for text, known in zip(texts, roster.first_names, strict=True):
        for index, word in enumerate(text.words):
            if index in known or word.low in roster.surnames:
                continue
            if _is_double(text, index) and word.low in lexicon.names:
                raise SwapRefusal(RefusalReason.UNKNOWN_NAME, word.text)
            plain = not word.text.istitle() or text.is_title(index) or word.low in FUNCTION | KIN | TITLES
            if plain or word.low in lexicon.names:
                continue
            kin = text.before(index) in KIN - {"man", "woman", "boy", "girl", "client", "patient"}
            greeted = text.before(index) in _VOCATIVE and text.gap(index + 1).startswith((",", "\n"))
            described = text.gap(index + 1) == ", " and text.low(index + 1) in {"who", "whose"}
            introduced = not text.opens(index) and (described or text.after(index) in SAYING)
            if kin or greeted or introduced:
                raise SwapRefusal(RefusalReason.UNKNOWN_NAME, word.text)


def gender_changes(
    texts: Sequence[Text], roster: FoundNames, lexicon: SwapLexicon, genders: dict[str, str], seed: int
) -> list[list[WordChange]]:
    """Return the replacement of each name of a gender: a name of the other gender and the same origin."""
    draw = NameReplacements(texts, lexicon, seed)

    def target(name: FirstName) -> tuple[str, str] | None:
        to = genders.get(name.gender)
        return None if to is None else ("" if to == NEUTRAL else name.origin, to)

    return [[_change(text, i, draw(name, *cell)) for i, name in first_names.items() if (cell := target(name))]
            for text, first_names in zip(texts, roster.first_names, strict=True)]  # fmt: skip


def origin_changes(
    texts: Sequence[Text], roster: FoundNames, lexicon: SwapLexicon, origins: dict[str, str], seed: int
) -> list[list[WordChange]]:
    """Return the replacement of each name of an origin: a name of the other origin and the same gender."""
    draw = NameReplacements(texts, lexicon, seed)
    return [[_change(text, i, draw(name, origins[name.origin], name.gender))
             for i, name in first_names.items() if name.origin in origins]
            for text, first_names in zip(texts, roster.first_names, strict=True)]  # fmt: skip


class NameReplacements:
    """A drawer of replacements: a different one for each name, and none that occurs in the texts."""

    def __init__(self, texts: Sequence[Text], lexicon: SwapLexicon, seed: int) -> None:
        self._lexicon, self._seed = lexicon, seed
        self._drawn: dict[str, str] = {}
        self._taken = {word.low for text in texts for word in text.words}

    def __call__(self, name: FirstName, origin: str, gender: str) -> str:
        """Return the replacement of a name, always the same."""
        if name.name not in self._drawn:
            free = [each for each in self._lexicon.drawable(origin, gender) if each.lower() not in self._taken]
            if not free:
                raise SwapRefusal(RefusalReason.NO_COUNTERPART, name.name)
            # Ordered by a hash of each candidate, so that an added name rarely changes earlier draws.
            new = min(free, key=lambda each: hashlib.sha256(f"{self._seed}/{name.name}/{each}".encode()).digest())
            self._drawn[name.name] = new
            self._taken.add(new.lower())
        return self._drawn[name.name]


def _change(text: Text, index: int, new: str) -> WordChange:
    seen = text.words[index].text
    shown = new.upper() if len(seen) > 1 and seen.isupper() else new.lower() if seen.islower() else new
    return WordChange(first=index, last=index, new=shown, rule=EditRule.NAME)


def refuse_kept(texts: Sequence[Text], changes: Sequence[Sequence[WordChange]]) -> None:
    """Refuse texts in which a changed name, or a pronoun of its gender, also occurs in code or an address."""
    words: dict[EditRule, set[str]] = {EditRule.NAME: set(), EditRule.PRONOUN: set()}
    for text, each in zip(texts, changes, strict=True):
        for change in each:
            words.setdefault(change.rule, set()).add(text.low(change.first))
    genders = {gender_of(word) for word in words[EditRule.PRONOUN]}
    for kept in (kept.lower() for text in texts for kept in text.kept):
        for word in re.findall(r"\w+", kept):
            if word in words[EditRule.NAME] or gender_of(word) in genders:
                raise SwapRefusal(RefusalReason.KEPT, word)
        for name in sorted(words[EditRule.NAME]):
            if len(name) > 2 and name in kept:
                raise SwapRefusal(RefusalReason.KEPT, name)
