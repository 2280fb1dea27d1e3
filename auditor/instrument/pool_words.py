"""Provide the English that the checks of a pool need: words without their endings, and the places of group names.

A pool in another language has no such checks, and the report states this.
"""

import re
from typing import Final


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


#: Words without a theme of their own.
FUNCTION_WORDS: Final = _set(
    "about after all also am and any anybody anything are as at be because been before both but by can cannot could did"
    " do does each every everybody everything for from get go had has have he her him his how if in into is it its just"
    " keep less let like more most nobody no not nothing of off on once one only or other others out over own people"
    " person rather shall she so somebody something than that their them themselves there they thing things this those"
    " through to too turn up was well were what when where wherever whether which who whom whose will with without"
    " would"
)

_WORD: Final = re.compile(r"[^\W_]+(?:['\N{RIGHT SINGLE QUOTATION MARK}-][^\W_]+)*")
_ARTICLES: Final = frozenset({"a", "an", "the"})
_IRREGULAR: Final = {
    "men": "man",
    "women": "woman",
    "people": "person",
    "children": "child",
    "wives": "wife",
    "teeth": "tooth",
}
_GENDERS: Final = (
    _set("woman girl mother daughter wife female"),
    _set("man boy father son husband male"),
)
_PRONOUNS: Final = _set("he him his himself she her hers herself")
_VOWELS: Final = re.compile(r"[aeiouy]+")


def stems(text: str) -> list[str]:
    """Split a text into its words, in lower case and singular, without articles.

    Examples
    --------
    >>> stems("Another woman who uses a wheelchair")
    ['other', 'woman', 'who', 'use', 'wheelchair']
    """
    return [_stem(word) for word in _words(text)]


def content(text: str) -> set[str]:
    """Return the stems that describe a theme."""
    return {_stem(word) for word in _words(text) if word not in FUNCTION_WORDS}


def _words(text: str) -> list[str]:
    words = _WORD.findall(text.casefold().replace("another", "an other"))
    return [word for word in words if word not in _ARTICLES]


def _stem(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("sses"):
        return word[:-2]
    plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if plural else word


def mention(option: str, other: str, text: str) -> int | None:
    """Return the index of the word that names a group: by its whole name, or by the words that the other group lacks.

    Examples
    --------
    >>> mention("women", "men", "A man and a woman met."), mention("men", "women", "A woman slept.")
    (2, None)
    """
    seen, name = stems(text), stems(option)
    whole = (start for start in range(len(seen)) if name and seen[start : start + len(name)] == name)
    apart = content(option) - content(other)
    part = (index for index, word in enumerate(seen) if word in apart)
    return next(whole, next(part, None))


def reveals_gender(stereotype: str, counter: str, text: str) -> bool:
    """Return whether a pronoun identifies one of the two groups, because one is of women and the other of men."""
    words = set(stems(stereotype)), set(stems(counter))
    of = [[bool(option & gender) for gender in _GENDERS] for option in words]
    return sorted(of) == [[False, True], [True, False]] and bool(_PRONOUNS & set(stems(text)))


def grade(*sentences: str) -> float:
    """Return the Flesch-Kincaid grade of some sentences (years of school needed to read them), at least 0.

    A syllable is a group of vowels; a silent final e is not counted.
    """
    words = [word.casefold() for sentence in sentences for word in _WORD.findall(sentence)]
    if not words:
        return 0.0
    syllables = sum(max(1, len(_VOWELS.findall(word.removesuffix("e")))) for word in words)
    return max(0.0, 0.39 * len(words) / len(sentences) + 11.8 * syllables / len(words) - 15.59)
