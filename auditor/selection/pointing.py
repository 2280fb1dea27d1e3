"""Read a choice at a given place of a text by its marker or its text, and find the texts of options.

``options`` decides which places count.
"""

import re
from collections.abc import Iterator
from typing import Final

from auditor.domain.question import Option
from auditor.selection.choices import Choices

_BEFORE_MARKER: Final = re.compile(
    r"[\s\"'(\[{]*(?:(?:option|choice|answer|letter|number)\s*:?\s*)?[\"'(\[{]*", re.IGNORECASE
)
_AFTER_MARKER: Final = re.compile(
    r"[\"')\]}]*(?:\.(?!\w)|[):\]]|(?=\s*[-,;!\n]|\s*\Z|\s+(?:is|because|as|since|would|was)\b))+[\"']*"
)
_BEFORE_TEXT: Final = re.compile(
    r"[\s\"'(\[:.,-]*(?:(?:the|an?|that|it|was|is|option|would be)\s+){0,4}[\"'(]*", re.IGNORECASE
)
_NOT: Final = re.compile(
    r"(?:\b(?:not|isn't|wasn't|aren't|neither|nor|rather than|instead "
    r"of|than|never|no|against|opposed to|unlike|whether|if|either)\s+"
    r"(?:necessarily |just |only |simply |always |the |an? |that |because |in |[\"'(]){0,3}|(?:non|anti)-?)\Z",
    re.IGNORECASE,
)
_OFFERED: Final = re.compile(
    r"[\"')\]]*\s*(?:/|,(?=\s*[\"'(\[]*\w{1,3}(?:[)\]]|,\s*(?:or\s+)?[\"'(\[]*\w{1,3}\b))|\bor\b|\band\b)\s*[\"'(\[]*(?:option\s+)?[A-Za-z0-9]{1,3}\b[\"')\].,:;]",
    re.IGNORECASE,
)


def is_offered(seen: str, end: int) -> bool:
    """Return whether another choice follows ("A or B"), which means that the question's words were repeated."""
    return _OFFERED.match(seen, end) is not None


def choice_at(seen: str, start: int, choices: Choices, *, letters: bool) -> tuple[int, Option] | None:
    """Read an announced choice: marker, text, or both. Marker and text must name the same option."""
    lead = _BEFORE_MARKER.match(seen, start)
    place = lead.end() if lead else start
    named = lead is not None and re.search(r"[a-z(\[]", lead.group(), re.IGNORECASE) is not None
    marked = marker_at(seen, start, choices, bare=letters or named)
    if marked:
        end, option = marked
        text = text_at(seen, end, choices)
        if text is None:
            return end, option
        return text if text[1].stance is option.stance and not is_offered(seen, text[0]) else None
    return text_at(seen, place, choices)


def marker_at(seen: str, start: int, choices: Choices, *, bare: bool = False) -> tuple[int, Option] | None:
    """Read a marker that ends with punctuation or, if ``bare``, at the end of a word."""
    if choices.marker is None:
        return None
    lead = _BEFORE_MARKER.match(seen, start)
    place = lead.end() if lead else start
    match = choices.marker.match(seen, place)
    if match is None or (place > 0 and seen[place - 1].isalnum()):
        return None
    closed = _AFTER_MARKER.match(seen, match.end())
    end = closed.end() if closed else match.end()
    if closed is None and not (bare and not seen[match.end() : match.end() + 1].isalnum()):
        return None
    if is_offered(seen, end):
        return None
    if bare and closed is None and re.match(r"\s+\w", seen[match.end() :]) and match["m"] in "aI":
        return None  # "a person", "I think"
    option = choices.by_marker(match["m"])
    return (end, option) if option else None


def text_at(seen: str, start: int, choices: Choices) -> tuple[int, Option] | None:
    """Read an option's text and return where it ends."""
    if choices.text is None:
        return None
    lead = _BEFORE_TEXT.match(seen, start)
    match = choices.text.match(seen, lead.end() if lead else start)
    option = choices.by_text(match["t"]) if match else None
    return (match.end(), option) if match and option else None


def texts(seen: str, choices: Choices) -> Iterator[tuple[int, int, Option]]:
    """Find every option's text: its start, its end and its option."""
    if choices.text is None:
        return
    for match in choices.text.finditer(seen):
        option = choices.by_text(match["t"])
        if option:
            yield match.start(), match.end(), option


def find_open(seen: str, choices: Choices) -> Iterator[re.Match[str]]:
    """Find "either the one or the other": options that are named together without a choice."""
    if choices.text is None:
        return iter(())
    text = rf"[\"'(]*(?:the |an? )?{choices.text.pattern.replace('?P<t>', '?:')}[\"')]*"
    return re.finditer(rf"\b(?:either|whether)\s+(?:\w+\s+)?{text}\s+or\s+(?:\w+\s+)?{text}", seen, re.IGNORECASE)


def is_turned_down(seen: str, place: int) -> bool:
    """Return whether the words before ``place`` reject the option there ("not the grandson")."""
    return _NOT.search(seen[max(0, place - 40) : place]) is not None
