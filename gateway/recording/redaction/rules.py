"""The redaction rules: each kind of secret, with a fast search over bytes and an exact one over text.

Every search takes time linear in the length of the text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One kind of secret.

    ``suspects`` returns whether bytes, with or without JSON escapes, may contain one. It has no false negatives, except
    for escapes of characters that need none. ``find`` returns the start and end of each one in a text without escapes.
    """

    name: str
    placeholder: str
    suspects: Callable[[bytes], bool]
    find: Callable[[str], Iterator[tuple[int, int]]]


# -- keys, tokens, passwords and private keys -------------------------------------------------------------------------

#: The minimum length of a key; shorter text is taken for a word.
_KEY_LENGTH = 20
_RUN = re.compile(r"[A-Za-z0-9_+/-]{20,}+")
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-[\w-]{17,}+|gh[opsur]_\w{16,}+|github_pat_\w{9,}+|xox[abeprs]-[\w-]{15,}+|AIza[\w-]{30,}+"
    r"|hf_[A-Za-z0-9]{17,}+|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])|eyJ[\w-]{17,}+)",
    re.ASCII,
)
#: The beginning of a key, in bytes that may contain escapes; the letter of an escape does not belong to the next word.
_BEGINS = re.compile(rb"[sgxAhe](?:k-|h[opsur]_|ithub_pat_|ox[abeprs]-|Iza|f_|KIA|SIA|yJ)")
_TOKEN_PARTS = re.compile(r"(?:\.[\w-]+)+", re.ASCII)
_BEARER_REST = re.compile(r"[\w.~+/=-]+", re.ASCII)
#: Lower-case words with hyphens are not keys: ``sk-`` ends "task-" and begins many invented names.
_UNLIKE_WORDS = re.compile(r"[0-9]|[a-z][A-Z]")

#: Names that a secret is assigned to with an equals sign. They are searched within `_NAME_WINDOW` before the sign.
_NAMES = (
    "password", "passwd", "pwd", "secret", "api_key", "apikey", "api-key", "access_key", "secret_key", "private_key",
    "_token", "-token",
)  # fmt: skip
_NAMES_BYTES = tuple(name.encode() for name in _NAMES)
#: Before a colon, which is common in JSON and prose, only these.
_COLON_NAMES = ("assword", "api_key", "_secret")
_NAME_WINDOW = 24
_SIGN = re.compile("[=:]")
_VALUE = re.compile(r"\s{0,2}[\"']?([^\s\"'`,;&<>(){}\[\]\\]{6,})")
_DIGIT = re.compile("[0-9]")

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----")
_PEM_REST = re.compile(r"[A-Za-z0-9+/=\s:,\-]*?-----END [A-Z ]{0,30}PRIVATE KEY-----|[A-Za-z0-9+/=\s:,\-]*+")

#: Maps bytes that occur in keys to ``a``, and all others to a space.
_RUN_CLASS = bytes(97 if chr(c) in "+/-_" or (c < 128 and chr(c).isalnum()) else 32 for c in range(256))
_LONG_RUN = b"a" * _KEY_LENGTH


def _suspects_key(data: bytes) -> bool:
    # `find`, since `in` is slower where nothing is found: it raises an exception and drops it.
    return data.find(b"PRIVATE KEY") >= 0 or _suspects_assignment(data) or _suspects_run(data)


def _suspects_assignment(data: bytes) -> bool:
    if data.find(b"assword") >= 0 or data.find(b"api_key") >= 0 or data.find(b"_secret") >= 0:
        return True
    if data.find(b"=") < 0:  # rare in prose, and fast to check
        return False
    small = data.lower()
    return any(name in small for name in _NAMES_BYTES)


def _suspects_run(data: bytes) -> bool:
    classes = data.translate(_RUN_CLASS)
    at = classes.find(_LONG_RUN)
    while at >= 0:
        start = classes.rfind(b" ", 0, at) + 1
        end = classes.find(b" ", at)
        end = len(data) if end < 0 else end
        if data.endswith(b"earer ", 0, start):
            return True
        while (begin := _BEGINS.search(data, start, end)) is not None:
            start = begin.end()
            before = data[max(0, begin.start() - 2) : begin.start()]
            if not before[-1:].isalnum() or before[:1] == b"\\":
                return True
        at = classes.find(_LONG_RUN, end)
    return False


def _find_keys(text: str) -> Iterator[tuple[int, int]]:
    """Find keys; only the key of ``Bearer KEY`` and ``password=KEY``."""
    for run in _RUN.finditer(text):
        if text.endswith("earer ", 0, run.start()):
            token = _BEARER_REST.match(text, run.start())
            if token is not None and _UNLIKE_WORDS.search(token[0]):
                yield token.span()
            continue
        for key in _KEY.finditer(text, run.start(), run.end()):
            yield from _key_at(text, key)
    yield from _find_assigned(text)
    yield from _find_pem(text)


def _key_at(text: str, key: re.Match[str]) -> Iterator[tuple[int, int]]:
    if key[0].startswith("eyJ"):  # the other parts of a web token follow after dots
        parts = _TOKEN_PARTS.match(text, key.end())
        if parts is not None:
            yield key.start(), parts.end()
    elif _UNLIKE_WORDS.search(key[0]):
        yield key.span()


def _find_assigned(text: str) -> Iterator[tuple[int, int]]:
    sign = _SIGN.search(text)
    while sign is not None:
        at = sign.end()
        before = text[max(0, at - _NAME_WINDOW) : at - 1].rstrip(" \t\"'")
        named = before.lower().endswith(_NAMES) if sign[0] == "=" else before.endswith(_COLON_NAMES)
        if named and (value := _VALUE.match(text, at)) is not None:
            at = value.end()
            if _DIGIT.search(value[1]):
                yield value.span(1)
        sign = _SIGN.search(text, at)


def _find_pem(text: str) -> Iterator[tuple[int, int]]:
    begin = _PEM_BEGIN.search(text) if "PRIVATE KEY" in text else None
    while begin is not None:
        rest = _PEM_REST.match(text, begin.end())
        end = rest.end() if rest is not None else begin.end()
        yield begin.start(), end
        begin = _PEM_BEGIN.search(text, end)


# -- e-mail addresses -------------------------------------------------------------------------------------------------

#: Matched backwards from the ``@``: a local part has at most 64 characters, a domain 253.
_LOCAL_REVERSED = re.compile(r"[\w.%+'-]*\w")
_AT = re.compile(r"(?<=\w)@(?=[\w-]{1,63}+\.\w)")
_DOMAIN = re.compile(r"(?:[\w-]++\.)+[^\W\d_]{2,24}")


def _suspects_address(data: bytes) -> bool:
    return data.find(b"@") >= 0


def _find_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Find e-mail addresses whose domain ends in letters; ``name@4.17.21`` is a version."""
    for sign in _AT.finditer(text):
        at = sign.start()
        local = _LOCAL_REVERSED.match(text[max(0, at - 64) : at][::-1])
        domain = _DOMAIN.match(text, at + 1, at + 254)
        if local is not None and domain is not None:
            yield at - local.end(), domain.end()


# -- telephone and card numbers, by the form of their groups of digits ------------------------------------------------

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
#: The digit sum of a doubled digit.
_DOUBLED = dict(zip("0123456789", (0, 2, 4, 6, 8, 1, 3, 5, 7, 9), strict=True))
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


def _suspects_number(data: bytes) -> bool:
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


def _find_phones(text: str) -> Iterator[tuple[int, int]]:
    """Find telephone numbers: international ones, and common national forms with gaps."""
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


def _find_cards(text: str) -> Iterator[tuple[int, int]]:
    """Find card numbers: an issuer's prefix and length, and the right last digit."""
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


def _luhn(digits: str) -> bool:
    """Return whether the last digit is the correct check digit (Luhn)."""
    return (sum(map(int, digits[::-2])) + sum(map(_DOUBLED.__getitem__, digits[-2::-2]))) % 10 == 0


# -- the rules --------------------------------------------------------------------------------------------------------

RULES = (
    SecretRule("keys", "[key]", _suspects_key, _find_keys),
    SecretRule("email", "[email]", _suspects_address, _find_addresses),
    SecretRule("phone", "[phone]", _suspects_number, _find_phones),
    SecretRule("card", "[card]", _suspects_number, _find_cards),
)
