"""Where the events of a stream may tell something about it: usage, a finish reason, an error."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple


class _Fact(NamedTuple):
    """A member of an event that may tell something: how most servers write it, and how JSON may be written."""

    key: bytes
    nothing: bytes  #: with a value that tells nothing
    compact: bytes  #: with one that does
    any: re.Pattern[bytes]  #: the same, however it is written


#: Deployments that report usage put ``"usage":null`` into each chunk except the last, and all put
#: ``"finish_reason":null`` there.
_FACTS: Final = (
    _Fact(b'"usage"', b'"usage":null', b'"usage":{', re.compile(rb'"usage"\s*:\s*[^n\s]')),
    _Fact(b'"finish_reason"', b'"finish_reason":null', b'"finish_reason":"', re.compile(rb'"finish_reason"\s*:\s*"')),
)


def find_facts(events: bytes) -> list[int]:
    """Return the places at which events may tell something, in order."""
    places = list(_find_all(events, b'"error"'))
    for fact in _FACTS:
        telling = events.count(fact.key) - events.count(fact.nothing)
        if telling:
            compact = list(_find_all(events, fact.compact))
            places += compact if len(compact) == telling else [match.start() for match in fact.any.finditer(events)]
    return sorted(places)


def _find_all(events: bytes, text: bytes) -> Iterator[int]:
    place = events.find(text)
    while place >= 0:
        yield place
        place = events.find(text, place + 1)
