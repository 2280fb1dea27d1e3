"""Chunks of an answer's body as they arrive (RFC 9112, section 7.1), the plain ones: no extensions, no trailer."""

import re
from typing import Final, NamedTuple

#: The largest line with the size of a chunk.
SIZE_LINE: Final = 10
_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,7}")
_MOST_KNOWN: Final = 4096
_known: dict[bytes, int] = {}


class CompleteChunks(NamedTuple):
    """The complete chunks that some bytes begin with."""

    payload: bytes
    end: int  #: where they end
    is_last: bool  #: whether the last of them, which is empty, ends the body
    needed: int  #: bytes that there must be before more can be said of the next one


def read_size(word: bytes) -> int | None:
    """Return the size of a chunk, which ``word`` is to say in hexadecimal digits; None if it is not plain."""
    try:
        return _known[word]
    except KeyError:
        pass
    if _SIZE.fullmatch(word) is None:
        return None
    size = int(word, 16)
    if len(_known) < _MOST_KNOWN:
        _known[word] = size
    return size


def read_complete(data: bytes) -> CompleteChunks:
    """Read the complete chunks that ``data`` begin with. They end before a chunk that is not plain.

    Raises
    ------
    ValueError
        It begins with a chunk that is not plain.
    """
    pieces: list[bytes] = []
    at = 0
    is_last = False
    needed = len(data) + 1
    while not is_last and (line := data.find(b"\r\n", at, at + SIZE_LINE)) >= 0:
        size = read_size(data[at:line])
        begin = line + 2
        end = begin + (size or 0)
        if size is None or not b"\r\n".startswith(data[end : end + 2]):
            if at == 0:
                raise ValueError("a chunk is not plain")
            break
        if end + 2 > len(data):
            needed = max(end, len(data)) + 1
            break
        is_last = size == 0
        pieces.append(data[begin:end])
        at = end + 2
    if at == 0 and line < 0 and len(data) >= SIZE_LINE:
        raise ValueError("a chunk has no plain size")
    return CompleteChunks(pieces[0] if len(pieces) == 1 else b"".join(pieces), at, is_last, needed)
