"""Split a text into words, except the parts that a swap must not change: code, addresses, identifiers, JSON keys."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

# Each alternative is tried once per word, not per character, so the time is linear in the length of the text.
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
    """One word that may be changed. ``tail``, if any, begins with an apostrophe: ``'s``, ``'ll`` or ``'``."""

    start: int
    end: int  #: of the word without its tail
    text: str
    tail: str = ""

    @property
    def low(self) -> str:
        """The word in lower case, with a straight apostrophe."""
        return straight(self.text.lower())


@dataclass(frozen=True)
class Text:
    """One text and its words, in order."""

    raw: str

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """The parts that are never changed."""
        return tuple(match[0] for match in _KEPT.finditer(self.raw))

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words outside the parts in ``kept``."""
        # Blanked, not cut out, so that positions stay those of the text.
        free = _KEPT.sub(lambda match: "\x00" * len(match[0]), self.raw)
        return tuple(
            Word(start=word.start("word"), end=word.end("word"), text=word["word"], tail=word["tail"] or "")
            for word in _WORD.finditer(free)
        )

    @cached_property
    def is_small(self) -> bool:
        """Whether the text has no capitals, so that names have none either. "I" is ignored."""
        return all(word.text.islower() or word.text == "I" for word in self.words)

    def gap(self, index: int) -> str:
        """Return the characters between a word and the previous one."""
        start = self.words[index - 1].end + len(self.words[index - 1].tail) if index else 0
        end = self.words[index].start if index < len(self.words) else len(self.raw)
        return self.raw[start:end]

    def before(self, index: int, far: int = 1) -> str:
        """Return the previous word in lower case; "" if anything except a space separates them."""
        joined = all(index - step > 0 and self.gap(index - step).isspace() for step in range(far))
        return self.words[index - far].low if joined else ""

    def after(self, index: int, far: int = 1) -> str:
        """Return the next word in lower case; "" if anything except a space separates them."""
        reach = range(index + 1, index + far + 1)
        joined = all(step < len(self.words) and self.gap(step).isspace() for step in reach)
        if not joined or any(self.words[step - 1].tail for step in reach):
            return ""
        return self.words[index + far].low

    def low(self, index: int) -> str:
        """Return the word at this position in lower case; "" if there is none."""
        return self.words[index].low if index < len(self.words) else ""

    def opens(self, index: int) -> bool:
        """Return whether a sentence, a line or a quotation begins here, so that a capital has no meaning."""
        gap = self.gap(index)
        if index and gap == ". " and self.words[index - 1].low in _ABBREVIATED:
            return False
        return index == 0 or _OPENS.search(gap) is not None

    def has_capital(self, index: int) -> bool:
        """Return whether the word at this position exists and begins with a capital."""
        return 0 <= index < len(self.words) and self.words[index].text[0].isupper()

    def is_title(self, index: int) -> bool:
        """Return whether the adjacent words are capitalised too, as in a heading."""
        near = [i for i in range(index - 2, index + 3) if 0 <= i < len(self.words) and len(self.words[i].text) > 3]
        return len(near) > 2 and all(self.words[i].text[0].isupper() for i in near)


def phrase(words: str) -> tuple[str, ...]:
    """Split a phrase into words in lower case as texts are split; hyphens and spaces are equal.

    Examples
    --------
    >>> phrase("African-American"), phrase("king's pawn")
    (('african', 'american'), ('king', "'s", 'pawn'))
    """
    return tuple(re.findall(r"ma'am|[^\W\d_]+|'\w+", straight(words.lower())))


def straight(words: str) -> str:
    """Replace curly apostrophes by straight ones."""
    return words.replace(_CURLY, "'")
