"""Heads of usual answers, read line by line; most lines, and many heads, are the same in each answer of a deployment.

Only what every reader of HTTP understands in one way is read here. Everything else is left to the parser.
"""

import re
from typing import Final

import msgspec

from gateway.headers import is_returned
from gateway.http.answer import own_lines
from gateway.primitives import split_head
from gateway.routing.failures import retry_may_help
from gateway.upstreams.connection import KEPT, seconds_kept

_OK: Final = b"HTTP/1.1 200 OK"
_REFUSED: Final = re.compile(rb"HTTP/1\.1 (4[0-9]{2}) [\x20-\x7e]{0,100}")
_MOST_HEAD: Final = 8192
_MOST_LINES: Final = 64
_MOST_KNOWN: Final = 4096
_MOST_WHOLE: Final = 512
#: The largest line with the size of a chunk.
_SIZE_LINE: Final = 10
_HEX: Final = b"0123456789abcdefABCDEF"
_FIELD: Final = re.compile(r"([A-Za-z0-9_-]{1,100}): ([\x21-\x7e](?:[\x20-\x7e]{0,2000}[\x21-\x7e])?)")
_DIGITS: Final = re.compile(r"[0-9]{1,8}")
#: They say that the answer is read in another way than usual.
_UNUSUAL: Final = frozenset({"content-encoding", "trailer", "upgrade"})
_EVENTS: Final = "text/event-stream"
_CACHING: Final = re.compile(rb"\r\ncache-control: [^\r]*")
_UNCACHED: Final = b"\r\ncache-control: no-cache"
_UNBUFFERED: Final = b"\r\nx-accel-buffering: no"


class AnswerHead(msgspec.Struct, frozen=True, gc=False):
    """The head of a final answer whose connection is kept: of status 200, or a refusal."""

    status: int
    fields: bytes  #: the lines for the client, each with a line break before it
    length: int  #: bytes of the body; -1: it is chunked
    body_at: int  #: where the body begins
    seconds: float  #: for which the connection is kept
    is_stream: bool  #: of events

    def of_stream(self, naming: bytes) -> bytes:
        """Return the head of a stream for the client; ``naming`` are `gateway.headers.naming_lines`."""
        fields, is_said = _CACHING.subn(_UNCACHED, self.fields, 1)
        return b"HTTP/1.1 200 OK%b%b%b%b%b\r\ntransfer-encoding: chunked\r\n\r\n" % (
            fields, naming, b"" if is_said else _UNCACHED, _UNBUFFERED, own_lines(),
        )  # fmt: skip


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
_UNUSUAL_LINE: Final = _Line("", b"")
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
        """Read the head that ``data`` begin with; None if it is incomplete or not usual."""
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
            said = known.get(line) or self._learn(line)
            if said is _NOTHING:
                continue
            if said is _UNUSUAL_LINE:
                return None
            if said.name:
                returned[said.name] = said.text
                kind = said if said.is_type else kind
            elif said.seconds is not None:
                seconds = min(seconds, said.seconds)
            elif length is not None or is_chunked:  # two fields say how long it is
                return None
            else:
                length, is_chunked = split_off if said is _SPLIT_LENGTH else said.length, said.is_chunked
        if kind is None or (length is None and not is_chunked) or length == _NO_DIGITS:
            return None
        body_length = -1 if length is None else length
        return AnswerHead(status, b"".join(returned.values()), body_length, body_at, seconds, kind.is_stream)

    def _learn(self, line: bytes) -> _Line:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        said = self._known[line] = _read_line(line) or _UNUSUAL_LINE
        return said


def _read_refusal(line: bytes) -> int:
    """Return the status that the first line says if the client is to get it, whoever would be asked next; else 0."""
    refused = _REFUSED.fullmatch(line)
    status = 0 if refused is None else int(refused[1])
    return 0 if retry_may_help(status) else status


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
    if name in _UNUSUAL:
        return None
    if name in _FRAMING:
        return _FRAMING[name](value.lower())
    if not is_returned(name):
        return _NOTHING
    is_type = name == "content-type"
    is_stream = is_type and value.lower().startswith(_EVENTS)
    return _Line(name, f"\r\n{name}: {value}".encode(), is_type=is_type, is_stream=is_stream)


def read_chunks(data: bytes, start: int) -> bytes | None:
    """Return the body of a chunked answer, whose chunks begin at ``start``; None if it is incomplete.

    Raises
    ------
    ValueError
        The chunks are not usual: they have extensions or a trailer, or something follows them.
    """
    pieces: list[bytes] = []
    while True:
        line = data.find(b"\r\n", start, start + _SIZE_LINE)
        size = data[start:] if line < 0 else data[start:line]
        if (
            size.rstrip(b"\r" if line < 0 else b"").strip(_HEX)
            or (line < 0 and len(size) >= _SIZE_LINE)
            or line == start
        ):
            raise ValueError("a chunk has no usual size")
        begin = line + 2
        end = begin + int(size, 16) if line >= 0 else len(data)
        after = data[end : end + 2]
        if not b"\r\n".startswith(after) or (end == begin and len(data) > end + 2):
            raise ValueError("a chunk does not end as usual")
        if len(after) < 2:
            return None
        if end == begin:
            return b"".join(pieces)
        pieces.append(data[begin:end])
        start = end + 2
