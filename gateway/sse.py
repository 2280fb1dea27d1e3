"""Server-sent events as bytes: where complete events end, which one is the terminator, what an event carries.

Pure: bytes in, bytes out, nothing re-written. What goes in comes out, in order, once.
"""

import re
from collections.abc import Iterator

#: A blank line ends an event; CRLF, LF and CR may each end a line, also mixed.
_BLANK_LINE = re.compile(rb"\r\n\r\n|\r\n\n|\n\r\n|\n\n|\r\r(?!\n)")
_DONE = re.compile(rb"(?:\A|(?<=[\r\n]))data: ?\[DONE\][ \t]*(?=[\r\n]|\Z)")
_DATA_LINE = re.compile(rb"(?:\A|(?<=[\r\n]))data: ?([^\r\n]*)")
_USUAL_ENDS = (b"\n\n", b"\r\n\r\n")
#: An event longer than this is passed on in pieces rather than held.
HOLD_LIMIT = 1 << 20


class EventSplitter:
    """Cuts a byte stream behind its last complete event; the half event after it is held until the rest comes."""

    def __init__(self, hold_limit: int = HOLD_LIMIT) -> None:
        self._held = b""
        self._hold_limit = hold_limit

    def feed(self, data: bytes) -> bytes:
        """Take bytes; give back everything up to the end of the last complete event (may be empty)."""
        if not self._held and data.endswith(_USUAL_ENDS):
            return data
        # Only the new bytes and the three before them can hold a boundary that was not seen yet.
        searched = max(len(self._held) - 3, 0)
        data = self._held + data
        end = _last_boundary(data, searched)
        if end == 0 and len(data) > self._hold_limit:
            end = len(data)
        self._held = data[end:]
        return data[:end]

    def rest(self) -> bytes:
        """Give up the half event that is held: the stream has ended."""
        held, self._held = self._held, b""
        return held


def _last_boundary(data: bytes, start: int) -> int:
    end = 0
    for match in _BLANK_LINE.finditer(data, start):
        end = match.end()
    return end


def find_done(events: bytes) -> int:
    """Say where the ``data: [DONE]`` event begins in ``events``, or -1. A "[DONE]" inside a text is not one."""
    if b"[DONE]" not in events:
        return -1
    match = _DONE.search(events)
    return match.start() if match else -1


def data_lines(events: bytes) -> Iterator[bytes]:
    """Give the payload of each ``data:`` line."""
    for match in _DATA_LINE.finditer(events):
        yield match[1]
