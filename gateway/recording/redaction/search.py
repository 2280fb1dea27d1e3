"""Search of a text for secrets, with escapes decoded, and their replacement."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from json import loads
from typing import NamedTuple

from gateway.recording.redaction.rules import RULES


def _compiled() -> Callable[[bytes], bool] | None:
    try:
        from gateway.recording.redaction import _prefilter  # noqa: PLC0415 -- only where it has been compiled
    except ImportError:
        return None
    return _prefilter.may_hold


#: The optional C. It returns False for most bytes in which no rule finds anything, in an eighth of the time.
may_hold = _compiled()

#: Escapes that may hide a secret from the searches over bytes: of ASCII, and of wide spaces and dashes.
_RELEVANT_ESCAPE = re.compile(rb"\\(?:u00[2-7aA]|u20(?:09|2[fF]|1[013])|/)")
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[\"\\/bfnrt])")
_SHORT = {rf"\{letter}": loads(rf'"\{letter}"') for letter in '"\\/bfnrt'}
#: The maximum depth of nested escapes (a tool's arguments are JSON inside a JSON string).
_DEPTH = 4
#: A JSON string within one line; the last one of a truncated copy may have no closing quote.
STRING = re.compile(r'"([^"\\\r\n]*+(?:\\[^\r\n][^"\\\r\n]*+)*+)"?')
_IMAGE = re.compile(r";base64,[A-Za-z0-9+/=]*+")


class Span(NamedTuple):
    """Characters ``[start, end)`` of a text, and their replacement."""

    start: int
    end: int
    placeholder: str


class Unescaped:
    """A text with its escapes decoded, and the original position of each character."""

    def __init__(self, raw: str) -> None:
        self._raw_at, self._at = [0], [0]
        pieces: list[str] = []
        at = raw_at = 0
        for escape in _ESCAPE.finditer(raw):
            start, end = escape.span()
            pieces.append(raw[raw_at:start])
            pieces.append(_SHORT.get(escape[0]) or loads(f'"{escape[0]}"'))
            at += start - raw_at + 1
            raw_at = end
            self._raw_at.append(raw_at)
            self._at.append(at)
        self.text = "".join((*pieces, raw[raw_at:]))

    def raw(self, index: int) -> int:
        """Return the original position of the character at ``index``."""
        last = bisect_right(self._at, index) - 1
        return self._raw_at[last] + index - self._at[last]


class Searcher:
    """Searches texts with some of the rules.

    Parameters
    ----------
    names
        The rules, by name.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._rules = [rule for rule in RULES if rule.name in names]
        self._suspects = list(dict.fromkeys(rule.suspects for rule in self._rules))

    def suspects(self, data: bytes) -> bool:
        """Return whether there may be something to find. Takes a few microseconds per kilobyte."""
        if may_hold is not None and not may_hold(data):
            return False
        if data.find(b"\\") >= 0 and _RELEVANT_ESCAPE.search(data) is not None:
            return True
        return any(suspects(data) for suspects in self._suspects)

    def find(self, text: str) -> list[Span]:
        """Return what is to be replaced, in order and without overlaps. Nested escapes are decoded."""
        seen = text
        levels: list[Unescaped] = []
        while len(levels) < _DEPTH and _ESCAPE.search(seen) is not None:
            levels.append(Unescaped(seen))
            seen = levels[-1].text
        # An image in base64 is long and contains no text.
        seen = _IMAGE.sub(lambda picture: " " * len(picture[0]), seen)
        data = seen.encode(errors="surrogatepass")
        rules = [rule for rule in self._rules if rule.suspects(data)]
        spans = [Span(*place, rule.placeholder) for rule in rules for place in rule.find(seen)]
        for level in reversed(levels):
            spans = [Span(level.raw(start), level.raw(end), placeholder) for start, end, placeholder in spans]
        return merge(spans)


def merge(spans: Sequence[Span]) -> list[Span]:
    """Sort spans, and merge those that overlap."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            last = merged.pop()
            span = last._replace(end=max(last.end, span.end))  # noqa: PLW2901
        merged.append(span)
    return merged


def replace_spans(text: str, spans: Sequence[Span]) -> str:
    """Replace ordered spans of a text by their placeholders."""
    pieces: list[str] = []
    at = 0
    for start, end, placeholder in spans:
        pieces += text[at:start], placeholder
        at = end
    return "".join((*pieces, text[at:]))
