"""The redaction rules: each kind of secret, with a fast search over bytes and an exact one over text.

Every search takes time linear in the length of the text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.recording.redaction.keys import find_keys, suspects_key
from gateway.recording.redaction.numbers import find_cards, find_phones, suspects_number

#: Matched backwards from the ``@``: a local part has at most 64 characters, a domain 253.
_LOCAL_REVERSED = re.compile(r"[\w.%+'-]*\w")
_AT = re.compile(r"(?<=\w)@(?=[\w-]{1,63}+\.\w)")
_DOMAIN = re.compile(r"(?:[\w-]++\.)+[^\W\d_]{2,24}")


def suspects_address(data: bytes) -> bool:
    """Return whether bytes may contain an e-mail address."""
    return data.find(b"@") >= 0


def find_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Find e-mail addresses whose domain ends in letters; ``name@4.17.21`` is a version."""
    for sign in _AT.finditer(text):
        at = sign.start()
        local = _LOCAL_REVERSED.match(text[max(0, at - 64) : at][::-1])
        domain = _DOMAIN.match(text, at + 1, at + 254)
        if local is not None and domain is not None:
            yield at - local.end(), domain.end()


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One kind of secret.

    ``suspects`` returns whether bytes may contain one. It has no false negatives, except for escapes of characters that
    need none. ``find`` returns the start and end of each one in a text without escapes.
    """

    name: str
    placeholder: str
    suspects: Callable[[bytes], bool]
    find: Callable[[str], Iterator[tuple[int, int]]]


RULES = (
    SecretRule("keys", "[key]", suspects_key, find_keys),
    SecretRule("email", "[email]", suspects_address, find_addresses),
    SecretRule("phone", "[phone]", suspects_number, find_phones),
    SecretRule("card", "[card]", suspects_number, find_cards),
)
