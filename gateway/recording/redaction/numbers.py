"""Detection of telephone and card numbers in a text by the form of their groups of digits."""

import re
from collections.abc import Iterator

#: Characters allowed between groups of digits: spaces and dashes of any width, a dot, a slash.
_GAPS = " \u00a0\u2009\u202f.-\u2010\u2011\u2013/"
_GAP = f"[{re.escape(_GAPS)}]"
_NUMBER = re.compile(rf"[+(0-9](?:[0-9()]|{_GAP}){{8,}}+")
#: Characters after a number that show whether it is part of something else.
_LOOK_AHEAD = 2
_NATIONAL = (
    # North America: (212) 555-0123, 1-212-555-0123
    rf"(?:1{_GAP})?(?:\([2-9][0-9]{{2}}\){_GAP}?|[2-9][0-9]{{2}}{_GAP})[2-9][0-9]{{2}}{_GAP}[0-9]{{4}}",
    # with a leading zero, or two: 020 7946 0958, (030) 1234567, 06 12 34 56 78; and no date
    rf"(?![0-9]{{2}}([./-])[0-9]{{2}}\1[0-9]{{4}})\(?00?[1-9][0-9]{{0,3}}\)?{_GAP}[0-9]{{2,8}}(?:{_GAP}[0-9]{{2,8}}){{0,4}}",
    # mobiles in China and Brazil: 138 0013 8000, (11) 91234-5678
    rf"1[3-9][0-9]{_GAP}[0-9]{{4}}{_GAP}[0-9]{{4}}|\([1-9][0-9]\){_GAP}?9?[0-9]{{4}}{_GAP}[0-9]{{4}}",
)
_INTERNATIONAL = rf"\+[1-9](?:(?:[()]|{_GAP}){{0,2}}[0-9]){{8,14}}"
_PHONE = re.compile(
    rf"(?<![A-Za-z0-9+])(?<![0-9][.,:/-])(?:{'|'.join((_INTERNATIONAL, *_NATIONAL))})(?![A-Za-z0-9])(?![.,/-][0-9])"
)
#: In four groups of four, or in three for American Express and Diners, or in none.
_CARD = re.compile(
    r"(?<![A-Za-z0-9])(?<![0-9]\.)(?:"
    rf"(?P<four>[2-6][0-9]{{3}}(?P<a>{_GAP})[0-9]{{4}}(?P=a)[0-9]{{4}}(?P=a)[0-9]{{4}})(?:(?P=a)[0-9]{{1,3}})?"
    rf"|3[0-9]{{3}}(?P<b>{_GAP})[0-9]{{6}}(?P=b)[0-9]{{4,5}}"
    r"|[2-6][0-9]{12,18})(?![A-Za-z0-9])(?!\.[0-9])"
)
#: Issuers' prefixes and lengths: Visa, Mastercard, American Express, Diners, Discover, UnionPay, JCB.
_ISSUED = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720))[0-9]{12,14}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[689][0-9])[0-9]{11}|6(?:011|5[0-9]{2}|4[4-9][0-9]|2[0-9]{2})[0-9]{12,15}"
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12}"
)
_NO_DIGIT = re.compile("[^0-9]")
_PLUS = re.compile(rb"\+[1-9][0-9 ().\-/\\\x80-\xff]{8}")
#: Digits and what stands for one as ``0``, what may part groups of digits as ``-``: the last byte of a wide space or
#: dash, whose other bytes, like a bracket or the backslash before a slash, then count as digits.
_NUMBER_CLASS = bytes(
    48 if c in b"0123456789)\\\xc2\xe2\x80" else 45 if c in b" .-/\xa0\x89\xaf\x90\x91\x93" else 120 for c in range(256)
)
#: Every number written in groups contains one of these, and no date does.
_SHAPES = (b"00-000", b"00-00-00-00", b"00000-00-00")
_IN_ALL = b"00-00"
#: Nine digits or more, in groups.
_GROUPS = re.compile(rb"0(?:-?-?0){8,}+")
_LONG_GROUP = b"0" * 13
_ONE_GROUP = re.compile(rb"(?<![0-9])(?<![0-9]\.)[2-6][0-9]{12,18}(?![0-9])")


def suspects_number(data: bytes) -> bool:
    """Return whether bytes, with or without JSON escapes, may contain such a number."""
    if data.find(b"+") >= 0 and _PLUS.search(data) is not None:
        return True
    classes = data.translate(_NUMBER_CLASS)
    if classes.find(_LONG_GROUP) >= 0 and any(_ONE_GROUP.search(data, *run) for run in _runs(classes, _LONG_GROUP)):
        return True
    return classes.find(_IN_ALL) >= 0 and any(_has_number(classes, shape) for shape in _SHAPES)


def _has_number(classes: bytes, shape: bytes) -> bool:
    return any(shape in group[0] for run in _runs(classes, shape) for group in _GROUPS.finditer(classes, *run))


def _runs(classes: bytes, shape: bytes) -> Iterator[tuple[int, int]]:
    """Iterate over the start and end of runs of digits and gaps that contain a shape."""
    at = classes.find(shape)
    while at >= 0:
        start, end = classes.rfind(b"x", 0, at) + 1, classes.find(b"x", at)
        end = len(classes) if end < 0 else end
        yield start, end
        at = classes.find(shape, end)


def _digits(text: str) -> str:
    return _NO_DIGIT.sub("", text)


def find_phones(text: str) -> Iterator[tuple[int, int]]:
    """Find telephone numbers in a text without escapes: international ones, and common national forms with gaps."""
    for number in _NUMBER.finditer(text):
        at, end = number.start(), number.end() + _LOOK_AHEAD
        while (match := _PHONE.search(text, at, end)) is not None:
            place = _trim(text, *match.span())
            if len(_digits(text[slice(*place)])) >= 9:
                yield place
            at = place[1]


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Remove the last groups while there are more digits than a number has; they belong to the next number."""
    most = 15 if text.startswith(("+", "00"), start) else 12
    while len(_digits(text[start:end])) > most:
        end = start + len(text[start:end].rstrip("0123456789").rstrip(_GAPS))
    return start, end


def find_cards(text: str) -> Iterator[tuple[int, int]]:
    """Find card numbers in a text without escapes: an issuer's prefix and length, and the right last digit."""
    for number in _NUMBER.finditer(text):
        for card in _CARD.finditer(text, number.start(), number.end() + _LOOK_AHEAD):
            # After sixteen digits there may be three more of the same number, or other digits.
            if _is_card(card[0]):
                yield card.span()
            elif card["four"] and _is_card(card["four"]):
                yield card.span("four")


def _is_card(text: str) -> bool:
    digits = _digits(text)
    return _ISSUED.fullmatch(digits) is not None and _luhn(digits)


#: The digit sum of a doubled digit.
_DOUBLED = dict(zip("0123456789", (0, 2, 4, 6, 8, 1, 3, 5, 7, 9), strict=True))


def _luhn(digits: str) -> bool:
    """Return whether the last digit is the correct check digit (Luhn)."""
    return (sum(map(int, digits[::-2])) + sum(map(_DOUBLED.__getitem__, digits[-2::-2]))) % 10 == 0
