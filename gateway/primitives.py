"""Small steps that every request takes: in C where that was compiled, in Python elsewhere.

Both do the same. `PYTHON` has those in Python, by their names.
"""

import re
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

_END: Final = b"\r\n\r\n"
_TOLD: Final = b"ength: "
_LENGTH: Final = b"\r\ncontent-length: "
_MOST_DIGITS: Final = 7
#: A key of any object that is ``model``, or differs from it only in case; each letter may be escaped.
MODEL_KEY: Final = re.compile(
    rb'"(?:[mM]|\\u00[46][dD])(?:[oO]|\\u00[46][fF])(?:[dD]|\\u00[46]4)(?:[eE]|\\u00[46]5)(?:[lL]|\\u00[46][cC])"\s*+:'
)
#: The same where no letter is escaped, in less time: most bytes have a dozen strings, and no escape.
_PLAIN_MODEL_KEY: Final = re.compile(rb'"[mM][oO][dD][eE][lL]"\s*+:')
SALT_BYTES: Final = 8
#: A record of the spool: the salt of its segment, its size, its checksum, and its time in milliseconds since 1970.
FRAME: Final = struct.Struct(f"<{SALT_BYTES}sIIQ")
_CHECKED: Final = struct.Struct("<IQ")


def split_head(data: bytes, most: int) -> tuple[bytes, int, int] | None:
    r"""Split off the length that the head of a message says.

    Parameters
    ----------
    data
        Bytes that begin with the head.
    most
        The largest head, in bytes.

    Returns
    -------
    The head without the digits of its length and without its empty line, the length, and where the body begins. None if
    the head is not complete, if its first field that ends in "ength" is not ``content-length``, or if that is not one
    to seven digits.

    >>> split_head(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\na: b\r\n\r\nHello, world", 4096)
    (b'HTTP/1.1 200 OK\r\nContent-Length: \r\na: b', 12, 45)
    """
    end = data.find(_END, 0, most)
    place = data.find(_TOLD, 0, end) + len(_TOLD)
    if end < 0 or place < len(_LENGTH) or data[place - len(_LENGTH) : place].lower() != _LENGTH:
        return None
    stop = data.find(b"\r", place)
    digits = data[place:stop]
    if not digits.isdigit() or len(digits) > _MOST_DIGITS:
        return None
    return data[:place] + data[stop:end], int(digits), end + len(_END)


def repeats_model_key(body: bytes) -> bool:
    """Return whether keys that spell ``model``, in capitals or not, escaped or not, occur more than once in JSON.

    >>> repeats_model_key(b'{"model": "a", "metadata": {"Model" : "b"}}')
    True
    """
    # One byte is found in a tenth of the time of four.
    is_escaped = body.find(b"\\") >= 0 and body.find(b"\\u00") >= 0
    return len((MODEL_KEY if is_escaped else _PLAIN_MODEL_KEY).findall(body)) > 1


def checksum(payload: bytes, unix_ms: int) -> int:
    """Return the checksum of a record of the spool: CRC-32 of its size, its time and its bytes."""
    # It includes the header: the zeros that a power cut leaves in a file must not pass for an empty record.
    return zlib.crc32(payload, zlib.crc32(_CHECKED.pack(len(payload), unix_ms)))


def frame_head(salt: bytes, payload: bytes, unix_ms: int) -> bytes:
    """Return what stands before the bytes of a record in the spool, as `FRAME`."""
    return FRAME.pack(salt, len(payload), checksum(payload, unix_ms), unix_ms)


PYTHON: Final[dict[str, Callable[..., Any]]] = {
    "frame_head": frame_head, "repeats_model_key": repeats_model_key, "split_head": split_head
}  # fmt: skip
if not TYPE_CHECKING:
    with suppress(ImportError):
        from gateway._primitives import frame_head, repeats_model_key, split_head
__test__ = PYTHON  # where `doctest` looks for examples: the C has none
#: Whether the C is in use.
IS_COMPILED: Final = frame_head is not PYTHON["frame_head"]
