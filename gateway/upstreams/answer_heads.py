"""Heads of answers. Plain ones are read line by line, because most lines are the same in each answer of a deployment.

Only what every reader of HTTP understands in one way is read by `AnswerHeads`. Everything else is left to the parser,
and `read_fields` makes the same of it.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from auditor.domain.retry_after import read_retry_after
from gateway.headers import is_returned, returned_lines
from gateway.primitives import split_head

_OK: Final = b"HTTP/1.1 200 OK"
_REFUSED: Final = re.compile(rb"HTTP/1\.1 (4[0-9]{2}) [\x20-\x7e]{0,100}")
#: These may say after which time the request may be sent again.
_RETRIED: Final = frozenset({408, 409, 429})
_MOST_HEAD: Final = 8192
_MOST_LINES: Final = 64
_MOST_KNOWN: Final = 4096
_MOST_WHOLE: Final = 512
_FIELD: Final = re.compile(r"([A-Za-z0-9_-]{1,100}): ([\x21-\x7e](?:[\x20-\x7e]{0,2000}[\x21-\x7e])?)")
_DIGITS: Final = re.compile(r"[0-9]{1,8}")
#: They say that the answer is read in another way.
_PARSED: Final = frozenset({"content-encoding", "trailer", "upgrade"})
_EVENTS: Final = "text/event-stream"
#: Seconds for which an idle connection is kept, and how many seconds before its server would close it.
KEPT: Final = 30.0
_MARGIN: Final = 1.0
_TIMEOUT: Final = re.compile(r"timeout=(\d{1,9})")


class AnswerHead(msgspec.Struct, frozen=True, gc=False):
    """The head of a final answer."""

    status: int
    fields: bytes  #: the lines for the client, each with a line break before it
    length: int  #: bytes of the body; -1: something else says where it ends
    body_at: int  #: where the body begins, in the bytes that `AnswerHeads.read` has got
    seconds: float  #: for which the connection is kept, if it is
    is_stream: bool | None  #: of events; None: nothing says what the content is
    content_encoding: str | None = None
    retry_after: float | None = None  #: seconds

    @property
    def is_compressed(self) -> bool:
        """Whether the body cannot be read as it is."""
        return self.content_encoding is not None and self.content_encoding != "identity"


class _Line(msgspec.Struct, frozen=True, gc=False):
    """What a line says."""

    name: str  #: of a field that the client gets; empty: it gets nothing
    text: bytes  #: the line for the client
    is_type: bool = False  #: the type of the content
    is_stream: bool = False  #: the type of a stream of events
    length: int | None = None
    is_chunked: bool = False
    seconds: float | None = None


_NOTHING: Final = _Line("", b"")
#: The parser reads an answer with such a line.
_PARSED_LINE: Final = _Line("", b"")
_NO_DIGITS: Final = -1  #: no digits have been split off
#: The line of a length whose digits have been split off.
_SPLIT_LENGTH: Final = _Line("", b"", length=0)


class AnswerHeads:
    """Reads heads, and remembers the lines that it has read."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Line] = {}
        #: Heads that consist of known lines, without their lengths.
        self._whole: dict[bytes, AnswerHead] = {}

    def read(self, data: bytes) -> AnswerHead | None:
        """Read the head that ``data`` begin with; None if it is incomplete or must be parsed."""
        split = split_head(data, _MOST_HEAD)
        if split is None:
            end = data.find(b"\r\n\r\n", 0, _MOST_HEAD)
            return None if end < 0 else self._read_lines(data[:end], _NO_DIGITS, end + 4)
        head, length, body_at = split
        known = self._whole.get(head)
        if known is not None:
            return AnswerHead(known.status, known.fields, length, body_at, known.seconds, known.is_stream)
        lines = len(self._known)
        read = self._read_lines(head, length, body_at)
        # A head with a line that has not come before is not likely to come again: the line may be an id.
        if read is not None and len(self._known) == lines:
            if len(self._whole) >= _MOST_WHOLE:
                self._whole.clear()
            self._whole[head] = read
        return read

    def _read_lines(self, head: bytes, split_off: int, body_at: int) -> AnswerHead | None:
        """Read a head without its empty line, and without the digits of its length if those have been split off."""
        lines = head.split(b"\r\n")
        status = 200 if lines[0] == _OK else _read_refusal(lines[0])
        if not status or len(lines) > _MOST_LINES:
            return None
        del lines[0]
        known = self._known
        returned: dict[str, bytes] = {}
        length: int | None = None
        kind: _Line | None = None
        is_chunked, seconds = False, KEPT
        for line in lines:
            parsed = known.get(line) or self._remember(line)
            if parsed is _NOTHING:
                continue
            if parsed is _PARSED_LINE:
                return None
            if parsed.name:
                returned[parsed.name] = parsed.text
                kind = parsed if parsed.is_type else kind
            elif parsed.seconds is not None:
                seconds = min(seconds, parsed.seconds)
            elif length is not None or is_chunked:  # two fields say how long it is
                return None
            else:
                length, is_chunked = split_off if parsed is _SPLIT_LENGTH else parsed.length, parsed.is_chunked
        if kind is None or (length is None and not is_chunked) or length == _NO_DIGITS:
            return None
        body_length = -1 if length is None else length
        return AnswerHead(status, b"".join(returned.values()), body_length, body_at, seconds, kind.is_stream)

    def _remember(self, line: bytes) -> _Line:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        parsed = self._known[line] = _read_line(line) or _PARSED_LINE
        return parsed


def _read_refusal(line: bytes) -> int:
    """Return the status of a refusal that says nothing about a later time, or 0."""
    refused = _REFUSED.fullmatch(line)
    status = 0 if refused is None else int(refused[1])
    return 0 if status in _RETRIED else status


def _read_length(value: str) -> _Line | None:
    return _Line("", b"", length=int(value)) if _DIGITS.fullmatch(value) else None


def _read_coding(value: str) -> _Line | None:
    return _Line("", b"", is_chunked=True) if value == "chunked" else None


def _read_connection(value: str) -> _Line | None:
    return _NOTHING if value == "keep-alive" else None


def _read_keep_alive(value: str) -> _Line | None:
    return _Line("", b"", seconds=seconds_kept([("keep-alive", value)]))


#: Fields that the client does not get, because they are about the connection to the deployment.
_FRAMING: Final = {
    "content-length": _read_length,
    "transfer-encoding": _read_coding,
    "connection": _read_connection,
    "keep-alive": _read_keep_alive,
}


def _read_line(line: bytes) -> _Line | None:
    if line.lower() == b"content-length: ":
        return _SPLIT_LENGTH
    field = _FIELD.fullmatch(line.decode("latin-1"))
    if field is None:
        return None
    name, value = field[1].lower(), field[2]
    if name in _PARSED:
        return None
    if name in _FRAMING:
        return _FRAMING[name](value.lower())
    if not is_returned(name):
        return _NOTHING
    is_type = name == "content-type"
    is_stream = is_type and value.lower().startswith(_EVENTS)
    return _Line(name, f"\r\n{name}: {value}".encode(), is_type=is_type, is_stream=is_stream)


def read_fields(status: int, fields: Sequence[tuple[str, str]]) -> AnswerHead:
    """Return the head that the parser has read; names in lower case."""
    last = dict(fields)
    kind = last.get("content-type")
    return AnswerHead(
        status,
        returned_lines(fields),
        -1,
        0,
        seconds_kept(fields),
        None if kind is None else kind.lower().startswith(_EVENTS),
        last.get("content-encoding"),
        read_retry_after(last),
    )


def seconds_kept(fields: Sequence[tuple[str, str]]) -> float:
    """Return the seconds to keep the connection: 30, or a little less than the server announces."""
    for name, value in fields:
        if name == "keep-alive" and (timeout := _TIMEOUT.search(value)):
            return min(KEPT, int(timeout[1]) - _MARGIN)
    return KEPT
