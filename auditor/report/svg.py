"""Write SVG elements, measure and cut their texts, and scale values to pixels: what all figures and charts share."""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, log10
from typing import Final

from markupsafe import Markup, escape

_NARROW_LETTERS: Final = frozenset("ijlt.,:;|!'`()[]f/ -")
_LEAST: Final = 0.37
_BROAD: Final = frozenset("mwMW@%")
#: Size of a text, in pixels.
TEXT: Final = 13.0


def text_width(text: str, size: float = TEXT) -> float:
    """Estimate the width of a line in pixels, rather too large than too small."""
    return size * sum(_share(character) for character in text)


def _share(character: str) -> float:
    """Estimate a character's width as a share of the font's size."""
    if unicodedata.east_asian_width(character) in {"W", "F"}:
        return 1.0
    if character in _NARROW_LETTERS:
        return _LEAST
    if character in _BROAD:
        return 0.92
    return 0.69 if character.isupper() else 0.6


def one_line(text: str) -> str:
    r"""Return a name as one line: characters that control a terminal or break XML become replacement characters.

    >>> one_line("one\ntwo") == "one\ufffdtwo"
    True
    """
    if text.isprintable():
        return text
    return "".join("\ufffd" if unicodedata.category(each) in {"Cc", "Cs", "Cn"} else each for each in text)


def shorten(text: str, room: float, size: float = TEXT) -> str:
    """Cut a name to ``room`` pixels in its middle, since names often differ at their end.

    >>> shorten("short", 110), shorten("a-very-long-deployment-name-mini", 110)
    ('short', 'a-very-lon…mini')
    """
    text = one_line(text)
    if text_width(text, size) <= room:
        return text
    for kept in range(min(len(text) - 1, int(room / (_LEAST * size))), 1, -1):
        tail = kept // 3
        short = f"{text[: kept - tail]}…{text[len(text) - tail :]}"
        if text_width(short, size) <= room:
            return short
    return "…"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """A linear scale from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def pixel(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def at(self, value: float) -> float:
        """Return the pixel of a value; values beyond the scale are drawn at its end."""
        return round(self.pixel(min(max(value, self.low), self.high)), 1)


def round_ticks(low: float, high: float, wanted: int) -> list[float]:
    """Choose round values within a scale, at most ``wanted`` steps of them.

    >>> round_ticks(0, 0.9, 4), round_ticks(-0.2, 0.2, 2)
    ([0.0, 0.25, 0.5, 0.75], [-0.2, 0.0, 0.2])
    """
    rough = (high - low) / wanted
    power = 10.0 ** floor(log10(rough))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= rough * (1 - 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(step * place, 10) + 0.0 for place in range(first, last + 1)]


def svg_element(name: str, content: str | Markup = "", **attributes: object) -> Markup:
    """Write an SVG element; everything is escaped. A trailing underscore of a name is dropped, others are hyphens."""
    written = "".join([f' {_attribute(key)}="{_value(value)}"' for key, value in attributes.items()])
    return Markup(f"<{name}{written}>{escape(content)}</{name}>")  # noqa: S704 -- every text in it is escaped


@lru_cache(maxsize=64)
def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _value(value: object) -> str:
    # Most values are coordinates, and escaping them would take most of the time of a chart.
    return f"{value:g}" if isinstance(value, float) else escape(value)
