"""Names from the data, cut to the room there is. The reader's fonts are not known: widths are those of a broad one."""

import unicodedata
from typing import Final

_NARROW: Final = frozenset("ijlt.,:;|!'`()[]f/ -")
_LEAST: Final = 0.37
_BROAD: Final = frozenset("mwMW@%")


def text_width(text: str, size: float = 11.0) -> float:
    """Guess the width of a line in pixels, rather too much than too little."""
    return size * sum(_share(character) for character in text)


def _share(character: str) -> float:
    """Guess a character's width as a share of the font's size."""
    if unicodedata.east_asian_width(character) in {"W", "F"}:
        return 1.0
    if character in _NARROW:
        return _LEAST
    if character in _BROAD:
        return 0.92
    return 0.69 if character.isupper() else 0.6


def one_line(text: str) -> str:
    r"""Put a name on one line: what controls a terminal or breaks XML becomes a replacement character.

    >>> one_line("one\ntwo") == "one\ufffdtwo"
    True
    """
    return "".join("\ufffd" if unicodedata.category(each) in {"Cc", "Cs", "Cn"} else each for each in text)


def cut(text: str, room: float, size: float = 11.0) -> str:
    """Cut a name to ``room`` pixels in its middle, since names often differ at their end.

    >>> cut("short", 90), cut("a-very-long-deployment-name-mini", 90)
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
