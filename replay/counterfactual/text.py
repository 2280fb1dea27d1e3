"""A text as its words, without what a swap must not touch: code, addresses, identifiers, keys of JSON."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

# Each alternative is tried once a word, not once a character: the time grows with the text, not with its square.
_KEPT: Final = re.compile(
    r"""
      ```.*?(?:```|\Z) | ~~~.*?(?:~~~|\Z)                      # fenced code
    | `[^`\n]+`                                                # inline code
    | \b(?:https?|ftp|file|mailto)://\S+ | \bwww\.\S+          # addresses
    | (?<![\w.+%-])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+              # e-mail
    | (?<!\w)[@\#$]\w+                                         # handles, tags, variables
    | (?<=[{,])\s*"[^"\n]*"\s*: | (?<=[{,])\s*'[^'\n]*'\s*:    # keys of JSON
    | \{\{?[^{}\n"':]*\}?\}                                    # places in a template
    | <[/!]?\w[^<>\n]*>                                        # markup
    | (?<![\w.])~?/[\w.-]+(?:/[\w.-]+)+ | [A-Za-z]:\\\S+        # paths
    | (?<![\w-])[\w-]+\.(?:py|js|ts|json|csv|txt|md|pdf|docx?|xlsx?|html?|jpe?g|png|sql|java|rs|sh|ya?ml
        |com|org|net|io)\b                                    # files, hosts
    | (?<!\w)(?=\w*[\d_])(?=\w*[^\W\d])\w+ | \b[a-z]+[A-Z]\w*  # identifiers
    | ^[ \t]*(?:def|class|import|from\s+\w+\s+import|return|elif|print\(|const|let|var|function|public|private|
        SELECT|INSERT|UPDATE\s+\w+\s+SET|DELETE\s+FROM|\#include|@\w+)\b[^\n]*[(;:={}*'"][^\n]*$    # lines of code
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_CURLY: Final = "\N{RIGHT SINGLE QUOTATION MARK}"
_WORD: Final = re.compile(
    r"(?P<word>ma@am|[^\W\d_]+(?:(?<=n)@t)?)(?P<tail>@(?:s|d|ll|re|ve|m)(?!\w)|(?<=s)@(?=\s+\w))?".replace(
        "@", f"['{_CURLY}]"
    ),
    re.IGNORECASE,
)
_OPENS: Final = re.compile(
    r"[.!?:\n\"“”(\[*•#>—]|[\N{LEFT SINGLE QUOTATION MARK}\N{EN DASH}]|(?:^|\s)'|- ",
)
_ABBREVIATED: Final = frozenset({"mr", "mrs", "ms", "mx", "dr", "prof", "rev", "st"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """One word that may be touched. ``tail`` is what an apostrophe adds: ``'s``, ``'ll``, or the apostrophe alone."""

    start: int
    end: int  #: of the word without its tail
    text: str
    tail: str = ""

    @property
    def low(self) -> str:
        """The word in small letters, with a straight apostrophe."""
        return straight(self.text.lower())


@dataclass(frozen=True)
class Text:
    """One text and its words, in order."""

    raw: str

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """The pieces that are never touched."""
        return tuple(found[0] for found in _KEPT.finditer(self.raw))

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words outside those pieces."""
        # Blanked, not cut out, so that positions stay those of the text.
        free = _KEPT.sub(lambda found: "\x00" * len(found[0]), self.raw)
        return tuple(
            Word(start=one.start("word"), end=one.end("word"), text=one["word"], tail=one["tail"] or "")
            for one in _WORD.finditer(free)
        )

    @cached_property
    def is_small(self) -> bool:
        """Whether the text has no capitals, so that names have none either; "I" does not count."""
        return all(word.text.islower() or word.text == "I" for word in self.words)

    def gap(self, index: int) -> str:
        """Give what stands between a word and the one before it."""
        start = self.words[index - 1].end + len(self.words[index - 1].tail) if index else 0
        end = self.words[index].start if index < len(self.words) else len(self.raw)
        return self.raw[start:end]

    def before(self, index: int, far: int = 1) -> str:
        """Give the word before, in small letters; "" where anything but a space parts them."""
        joined = all(index - step > 0 and self.gap(index - step).isspace() for step in range(far))
        return self.words[index - far].low if joined else ""

    def after(self, index: int, far: int = 1) -> str:
        """Give the word after, in small letters; "" where anything but a space parts them."""
        reach = range(index + 1, index + far + 1)
        joined = all(step < len(self.words) and self.gap(step).isspace() for step in reach)
        if not joined or any(self.words[step - 1].tail for step in reach):
            return ""
        return self.words[index + far].low

    def low(self, index: int) -> str:
        """Give the word there, in small letters; "" where there is none."""
        return self.words[index].low if index < len(self.words) else ""

    def opens(self, index: int) -> bool:
        """Tell whether a sentence, a line or a quotation begins here, so that a capital says nothing."""
        gap = self.gap(index)
        if index and gap == ". " and self.words[index - 1].low in _ABBREVIATED:
            return False
        return index == 0 or _OPENS.search(gap) is not None

    def has_capital(self, index: int) -> bool:
        """Tell whether the word there exists and begins with a capital."""
        return 0 <= index < len(self.words) and self.words[index].text[0].isupper()

    def is_title(self, index: int) -> bool:
        """Tell whether the words around are capitalised too, as in a heading."""
        near = [i for i in range(index - 2, index + 3) if 0 <= i < len(self.words) and len(self.words[i].text) > 3]
        return len(near) > 2 and all(self.words[i].text[0].isupper() for i in near)


def phrase(words: str) -> tuple[str, ...]:
    """Split a phrase as texts are split: small words, hyphens and spaces alike.

    Examples
    --------
    >>> phrase("African-American"), phrase("king's pawn")
    (('african', 'american'), ('king', "'s", 'pawn'))
    """
    return tuple(re.findall(r"ma'am|[^\W\d_]+|'\w+", straight(words.lower())))


def straight(words: str) -> str:
    """Give apostrophes their plain form."""
    return words.replace(_CURLY, "'")
