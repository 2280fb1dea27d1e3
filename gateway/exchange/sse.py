"""Server-sent events as bytes: complete events, terminators of streams, and the data of events.

Pure functions from bytes to bytes. Nothing is rewritten.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from gateway.errors import error_body

#: CRLF, LF and CR may each end a line, also mixed. A CR before an LF does not end a line by itself.
_LINE_END = rb"(?:\r\n|\n|\r(?!\n))"
#: A blank line ends an event.
_BLANK_LINE = re.compile(_LINE_END * 2)
_DONE = re.compile(rb"(?:\A|(?<=[\r\n]))data: ?\[DONE\][ \t]*(?=[\r\n]|\Z)")
EVENT_ENDS = (b"\n\n", b"\r\n\r\n")
#: A longer event is passed on in pieces instead of being held.
HOLD_LIMIT = 1 << 20
#: The limit for the last event, which may repeat the whole answer before the usage.
LAST_LIMIT = 8 << 20
#: Bytes of an event in which its name is expected, which identifies the last event.
_HEAD = 256
#: The longest blank line without its last byte: a boundary may begin this much before new bytes.
_OVERLAP = 3


class EventSplitter:
    """Splits a byte stream after its last complete event, and holds an incomplete event until the rest arrives.

    Parameters
    ----------
    hold_limit
        Maximum bytes of an incomplete event that are held, except for the last one.
    find_last
        Returns the position of the last event, or -1 (`StreamTerminator.find`).
    last_limit
        Maximum bytes of the last event that are held.
    """

    def __init__(
        self,
        hold_limit: int = HOLD_LIMIT,
        find_last: Callable[[bytes], int] | None = None,
        last_limit: int = LAST_LIMIT,
    ) -> None:
        self._held = bytearray()
        self._hold_limit = hold_limit
        self._find_last = find_last
        self._last_limit = last_limit

    def feed(self, data: bytes) -> bytes:
        """Add bytes. Return everything up to the end of the last complete event (may be empty)."""
        if not self._held:
            if data.endswith(EVENT_ENDS):
                return data
            if blank := _blank_lines(data, 0):
                return data[:blank] + self.feed(data[blank:])
        # Only the new bytes and the three before them can contain a new boundary.
        searched = max(len(self._held) - _OVERLAP, 0)
        self._held += data
        end = _last_boundary(self._held, searched, len(self._held))
        if end:
            end += _blank_lines(self._held, end)
        elif len(self._held) > self._hold_limit and not self._holds_last():
            end = len(self._held) - _OVERLAP
        events = bytes(self._held[:end])
        del self._held[:end]
        return events

    def _holds_last(self) -> bool:
        if self._find_last is None or len(self._held) > self._last_limit:
            return False
        return self._find_last(bytes(self._held[:_HEAD])) >= 0

    @property
    def is_between_events(self) -> bool:
        """Whether nothing is held, and the next bytes begin an event."""
        return not self._held

    def rest(self) -> bytes:
        """Return the incomplete event that is held; no more will be split."""
        held = bytes(self._held)
        self._held.clear()
        return held


def _blank_lines(data: bytes | bytearray, start: int) -> int:
    """Return the length of blank lines between two events. They say nothing, and are no beginning of the next one."""
    rest = data[start:]
    return len(rest) - len(rest.lstrip(b"\r\n"))


def _last_boundary(data: bytes | bytearray, start: int, stop: int) -> int:
    end = 0
    for match in _BLANK_LINE.finditer(data, start, stop):
        end = match.end()
    return end


def find_done(events: bytes) -> int:
    """Return the position of the ``data: [DONE]`` line of the terminator in ``events``, or -1.

    The terminator is an event whose data are exactly ``[DONE]``, not inside a text and not one of several data lines.
    Takes time linear in the length of ``events``.
    """
    place = events.find(b"[DONE]")
    start = 0
    while place >= 0:
        line = place - (6 if events.endswith(b"data: ", 0, place) else 5)
        if line >= start and (match := _DONE.match(events, line)) is not None:
            began = _event_start(events, start, line)
            ends = _BLANK_LINE.search(events, match.end())
            data = _data_lines(events, began, ends.start() if ends else len(events))
            if next(data, None) is not None and next(data, None) is None:
                return line
            if ends is None:
                break
            start = ends.end()
        place = events.find(b"[DONE]", max(place + 1, start))
    return -1


def _event_start(events: bytes, start: int, place: int) -> int:
    """Return where the event around a place begins, at ``start`` or later; blank lines before it may belong to it."""
    return place if events.endswith(EVENT_ENDS, start, place) else _last_boundary(events, start, place) or start


def _lines(events: bytes, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Iterate over the lines of ``events[start:stop]``: where each begins, where it ends, and where the next begins.

    Only byte searches, which are fast, and a step of the interpreter per line, so that other threads can run meanwhile.
    """
    lf = cr = -1
    while start < stop:
        if lf < start and (lf := events.find(b"\n", start, stop)) < 0:
            lf = stop
        if cr < start and (cr := events.find(b"\r", start, stop)) < 0:
            cr = stop
        end = min(lf, cr)
        following = min(end + (2 if lf == cr + 1 else 1), stop)
        yield start, end, following
        start = following


def event_spans(events: bytes) -> Iterator[tuple[int, int]]:
    """Iterate over the starts of complete events and their ends, after the blank line."""
    began, follows_line = 0, False
    for start, end, following in _lines(events, 0, len(events)):
        if start == end and follows_line:
            yield began, following
            began = following
        follows_line = began != following


def _data_lines(events: bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Iterate over the starts and ends of the values of ``data:`` lines."""
    for began, end, _ in _lines(events, start, stop):
        if events.startswith(b"data:", began, end):
            value = began + 5
            yield value + events.startswith(b" ", value, end), end
        elif end == began + 4 and events.startswith(b"data", began):
            yield end, end


def payloads(events: bytes) -> Iterator[bytes]:
    """Iterate over the data of each event: its ``data:`` lines, joined by line feeds."""
    rest = 0
    for start, end in event_spans(events):
        yield from _payload(events, start, end)
        rest = end
    yield from _payload(events, rest, len(events))


def _payload(events: bytes, start: int, end: int) -> Iterator[bytes]:
    values = [events[value:value_end] for value, value_end in _data_lines(events, start, end)]
    if values:
        yield b"\n".join(values)


def payloads_at(events: bytes, places: Sequence[int]) -> Iterator[bytes]:
    """Iterate over the data of the events that contain some places, which are in order, and perhaps over others."""
    if places and events.find(b"\r") >= 0:
        yield from payloads(events)
        return
    end = 0
    for place in places:
        if place >= end:
            before = events.rfind(b"\n\n", end, place)
            start = end if before < 0 else before + 2
            following = events.find(b"\n\n", place)
            end = len(events) if following < 0 else following + 2
            yield from _payload(events, start, end)


def data_in_place(event: bytes) -> bytes:
    """Replace everything except the event's data by line feeds, so that positions stay the same.

    JSON allows line feeds between its parts, and never within a string.
    """
    kept = []
    end = 0
    for start, value_end in _data_lines(event, 0, len(event)):
        kept += [b"\n" * (start - end), event[start:value_end]]
        end = value_end
    return b"".join([*kept, b"\n" * (len(event) - end)])


#: The finished response, or the error that replaces it.
_LAST_RESPONSE = re.compile(
    rb"(?:event: ?|data: ?\{\s*\"type\"\s*:\s*\")"
    rb"(?:response\.(?:completed|failed|incomplete)|error)(?=[\s\"]|\Z)"
)
#: One of them is in each of these.
_LAST_MARKS = (b".completed", b".failed", b".incomplete", b"error")
_LAST_TYPES = frozenset({"response.completed", "response.failed", "response.incomplete", "error"})
_LAST_TYPE = re.compile(rb"\"type\"\s*:\s*\"(?:response\.(?:completed|failed|incomplete)|error)\"")


class _Event(msgspec.Struct):
    type: str


_event = msgspec.json.Decoder(_Event)


@dataclass(frozen=True, slots=True)
class StreamTerminator:
    """How the streams of an endpoint end.

    ``find`` returns the position of the last event in some events, or -1. ``broken`` returns an error event and the
    terminator for a stream that was cut. ``optional``: a stream may also end without it.
    """

    find: Callable[[bytes], int]
    broken: Callable[[str, str], bytes]
    optional: bool = False


def _error_and_done(message: str, code: str) -> bytes:
    return b"data: " + error_body(message, type_="api_error", code=code) + b"\n\ndata: [DONE]\n\n"


def _find_last_response(events: bytes) -> int:
    if max(map(events.find, _LAST_MARKS)) < 0:
        return -1
    for start, _, _ in _lines(events, 0, len(events)):
        if _LAST_RESPONSE.match(events, start):
            return start
    return _find_type(events) if _LAST_TYPE.search(events) else -1


def _find_type(events: bytes) -> int:
    """Find the last event by its ``type`` member, because the text of an answer may contain the same words."""
    for start, end in event_spans(events):
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if _event.decode(data_in_place(events[start:end])).type in _LAST_TYPES:
                return start
    return -1


def _error_event(message: str, code: str) -> bytes:
    event = {"type": "error", "code": code, "message": message, "param": None}
    return b"event: error\ndata: " + json.dumps(event).encode() + b"\n\n"


#: ``data: [DONE]``: chat/completions and completions.
DONE = StreamTerminator(find_done, _error_and_done)
#: The event that carries the finished response, or an error: responses.
LAST_RESPONSE = StreamTerminator(_find_last_response, _error_event)
#: An endpoint that the gateway does not know: perhaps ``[DONE]``, otherwise the end of the body.
UNKNOWN_ENDING = StreamTerminator(find_done, _error_event, optional=True)
