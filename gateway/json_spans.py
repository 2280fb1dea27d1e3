"""Positions of the members of a JSON object, and of the items of a list, in their bytes.

They allow to replace, add or remove one of them without changing any other byte.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

# Possessive, because a string may hold a long picture, and backtracking would store a state for each byte.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
#: A key and its value, as far as that has no members of its own.
_MEMBER = re.compile(rb'[\s,]*+(%b)\s*+:\s*+(%b|[^"{}\[\],\s]++|(?=[{\[]))' % (_STRING, _STRING), re.DOTALL)
#: An item, as far as that has no members or items of its own.
_ITEM = re.compile(rb'[\s,]*+(%b|[^"{}\[\],\s]++|(?=[{\[]))' % _STRING, re.DOTALL)
_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|%b)*+([{}\[\]])' % _STRING, re.DOTALL)


class JsonSpan(NamedTuple):
    """The position of a member: its key begins at ``start``, its value at ``value``, and both end before ``end``."""

    key: bytes  #: as it is written, in its quotes
    start: int
    value: int
    end: int

    def named(self, name: bytes) -> bool:
        r"""Return whether this is the key; it may contain escapes, e.g. ``"\u006dodel"``."""
        return self.key[1:-1] == name or (b"\\" in self.key and msgspec.json.decode(self.key) == name.decode())


def json_spans(text: bytes, start: int = 0) -> Iterator[JsonSpan]:
    """Iterate over the members of the object that begins at or after ``start``, without those of inner objects.

    The object must be valid JSON; for other text the result is undefined.
    """
    place = text.index(b"{", start) + 1
    while match := _MEMBER.match(text, place):
        place = match.end() if match[2] else _closing(text, match.end())
        yield JsonSpan(match[1], match.start(1), match.start(2), place)


def json_items(text: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Iterate over the items of the list that begins at ``start``: where each begins, and where it ends.

    The list must be valid JSON; for other text the result is undefined.
    """
    place = start + 1
    while match := _ITEM.match(text, place):
        place = match.end() if match[1] else _closing(text, match.end())
        yield match.start(1), place


def _closing(text: bytes, start: int) -> int:
    """Return the position after the object or list that begins at ``start``."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[1] in b"{[" else -1
        if depth == 0:
            return bracket.end()
    raise ValueError("The text is not valid JSON: a bracket is not closed.")
