"""Usage of streams whose client did not ask for it: add the option to the request, remove its effects from the answer.

Pure functions from bytes to bytes. Everything else passes unchanged.
"""

import re

import msgspec

from gateway.exchange.sse import data_in_place, event_spans
from gateway.json_spans import JsonSpan, json_spans

_INCLUDE_USAGE = b'"include_usage":true'
_NULL = msgspec.Raw(b"null")
_NULL_AT_END = b',"usage":null}\n\n'
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_EMPTY_LIST = re.compile(rb"\[\s*\]")
#: The ends of events: two line ends of any kind.
_ENDS = (b"\n\n", b"\r\r", b"\n\r", b"\n\r\n", b"\r\r\n")


class _Chunk(msgspec.Struct):
    """The members of a chunk that show whether it exists because of the option. An absent ``usage`` is empty."""

    usage: msgspec.Raw = msgspec.Raw()
    choices: msgspec.Raw = _NULL
    error: msgspec.Raw = _NULL


_chunk = msgspec.json.Decoder(_Chunk)


def inject_usage(body: bytes, *, overrides: bool = False) -> bytes:
    """Add ``include_usage`` to a request that does not contain it.

    Parameters
    ----------
    body
        Has passed `gateway.wire.read_envelope`.
    overrides
        Whether every other value of the option than ``true`` is replaced, also if it is duplicate or of a wrong type,
        because a deployment may read any of them as false. Otherwise only the deployment judges them.

    Returns
    -------
    The same object if nothing is to be changed.
    """
    spoken_of = b"stream_options" in body or b"\\u" in body  # letters of a key can only be escaped as \uXXXX
    members = _named(body, 0, b"stream_options") if spoken_of else []
    if not members:
        return _replaced(body, body.index(b"{") + 1, 0, b'"stream_options":{%b},' % _INCLUDE_USAGE)
    if len(members) > 1 and not overrides:
        return body
    for options in reversed(members):  # so that the places of those before stay as they are
        value = body[options.value : options.end]
        if value == b"null":
            body = _replaced(body, options.value, len(value), b"{%b}" % _INCLUDE_USAGE)
        elif value.startswith(b"{"):
            body = _inject_into(body, options, overrides=overrides)
    return body


def _inject_into(body: bytes, options: JsonSpan, *, overrides: bool) -> bytes:
    members = _named(body, options.value, b"include_usage")
    if not members:
        comma = b"," if body[options.value + 1 : options.end - 1].strip() else b""
        return _replaced(body, options.value + 1, 0, _INCLUDE_USAGE + comma)
    if len(members) > 1 and not overrides:
        return body
    for member in reversed(members):
        value = body[member.value : member.end]
        if value == b"null" or (overrides and value != b"true"):
            body = _replaced(body, member.value, len(value), b"true")
    return body


def _named(body: bytes, start: int, name: bytes) -> list[JsonSpan]:
    return [member for member in json_spans(body, start) if member.named(name)]


def _replaced(body: bytes, place: int, length: int, text: bytes) -> bytes:
    return body[:place] + text + body[place + length :]


class UsageStripper:
    """Removes the effects of the added option from one stream: the usage chunk, and ``"usage":null`` in others.

    A chunk with both choices and usage is one that the deployment always sends; it stays, and so do chunks with errors.
    """

    def __init__(self) -> None:
        self._inside = False  # inside an event that is too long to be held and arrives in pieces
        self._after_cr = False  # a removed event ended with a CR, which may be the first half of a CRLF

    def strip(self, events: bytes) -> bytes:
        """Return what the client gets of events from `EventSplitter.feed` (may be empty)."""
        if self._after_cr and events:
            self._after_cr = False
            events = events.removeprefix(b"\n")
        kept = self._sift(events) if events.find(b'"usage"') >= 0 else events
        if events and events != b"\n":  # a single LF belongs to the CR before it
            self._inside = not events.endswith(_ENDS)
        return kept

    def rest(self, half: bytes) -> bytes:
        """Do the same for the incomplete event from `EventSplitter.rest`."""
        return half if self._inside else _without_usage(half)

    def _sift(self, events: bytes) -> bytes:
        if not self._inside and events.endswith(b"\n\n") and events.find(b"\r") < 0:  # most are so
            return b"".join([_without_usage(event + b"\n\n") for event in events[:-2].split(b"\n\n")])
        kept = []
        rest = 0
        inside = self._inside
        for start, end in event_spans(events):
            event = events[start:end]
            kept.append(event if inside else _without_usage(event))
            inside = False
            rest = end
        self._after_cr = rest == len(events) and events.endswith(b"\r") and not kept[-1]
        return b"".join([*kept, events[rest:]])


def _without_usage(event: bytes) -> bytes:
    if event.find(b'"usage"') < 0:
        return event
    if event.endswith(_NULL_AT_END) and _is_plain(event):
        return event[: -len(_NULL_AT_END)] + b"}\n\n"
    return _without_named_usage(event)


def _without_named_usage(event: bytes) -> bytes:
    data = data_in_place(event)
    try:
        chunk = _chunk.decode(data)
    except _UNREADABLE:
        return event
    if chunk.error != _NULL:
        return event
    if chunk.usage == _NULL:
        return _without_null(event, data)
    if bytes(chunk.usage).startswith(b"{") and _EMPTY_LIST.fullmatch(chunk.choices):
        # Blank lines before an event do not belong to it.
        return event[: len(event) - len(event.lstrip(b"\r\n"))]
    return event


def _is_plain(event: bytes) -> bool:
    """Return whether an event is a chunk on one line that names usage once, and no error.

    What then stands before the end of its object is the object's own member.
    """
    is_line = event.startswith(b"data: {") and event.find(b"\n") == len(event) - 2 and event.find(b"\r") < 0
    is_named_once = event.count(b'"usage"') == 1 and event.find(b"\\u00") < 0  # letters of a key can be escaped so
    if not is_line or not is_named_once or event.find(b'"error"') >= 0:
        return False
    try:
        _chunk.decode(event[len(b"data: ") : -2])
    except _UNREADABLE:
        return False
    return True


def _without_null(event: bytes, data: bytes) -> bytes:
    """Remove the ``usage`` member with the comma before it, or after it if it is the first."""
    all_spans = list(json_spans(data))
    at = [index for index, member in enumerate(all_spans) if member.named(b"usage")]
    if len(at) > 1:
        return event
    member = all_spans[at[0]]
    if at[0]:
        return event[: all_spans[at[0] - 1].end] + event[member.end :]
    behind = all_spans[1].start if len(all_spans) > 1 else member.end
    return event[: member.start] + event[behind:]
