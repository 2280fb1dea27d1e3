"""Detection of keys, tokens, passwords and private keys in a text."""

import re
from collections.abc import Iterator

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


def suspects_key(data: bytes) -> bool:
    """Return whether bytes, with or without JSON escapes, may contain a key."""
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


def find_keys(text: str) -> Iterator[tuple[int, int]]:
    """Find keys in a text without escapes; only the key of ``Bearer KEY`` and ``password=KEY``."""
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
