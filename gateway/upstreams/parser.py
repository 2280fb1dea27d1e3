"""Parsing one answer, with `httptools`: every answer that is not plain.

It accepts harmless deviations of real servers, and refuses what two readers could understand differently.
"""

from typing import Final

import httptools

from gateway.upstreams.answer_heads import AnswerHead, read_fields

#: Maximum bytes without a body byte: the head (some servers send long policies there), chunk sizes, trailers.
_MAX_OVERHEAD: Final = 64 << 10
_MAX_FIELDS: Final = 128
#: Stands before the chunks of an answer whose head has been read.
_CHUNKED: Final = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class _NotHttp(Exception):  # noqa: N818 -- never leaves this file
    """The received bytes are not a valid answer."""


class AnswerParser:
    """Parses one answer.

    Parameters
    ----------
    head
        Its head, if that has been read already and chunks follow.

    Attributes
    ----------
    head
        Its head, once it has come.
    ends_with_connection
        Whether its body has no other end.
    is_valid
        Whether what has come may be an answer.
    is_complete
        Whether the whole answer has come.
    is_kept
        Whether the server keeps the connection after it.
    """

    __slots__ = ("_fields", "_overhead", "_parser", "_pieces", "ends_with_connection", "head", "is_complete", "is_kept",
                 "is_valid")  # fmt: skip

    def __init__(self, head: AnswerHead | None = None) -> None:
        self.head = head
        self.ends_with_connection = False
        self.is_valid = True
        self.is_complete = False
        self.is_kept = False
        self._fields: list[tuple[str, str]] = []
        self._pieces: list[bytes] = []
        self._overhead = 0
        self._parser = httptools.HttpResponseParser(self)
        # As aiohttp's client does.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        if head is not None:
            self._parser.feed_data(_CHUNKED)

    def close(self) -> None:
        """Read no more. Otherwise a reference cycle would keep the parser in memory."""
        del self._parser

    def feed(self, data: bytes) -> bytes:
        """Parse what has come. Return what it contains of the body."""
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.is_valid = self.is_kept = False
        if self._overhead > _MAX_OVERHEAD:
            self.is_valid = False
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # -- callbacks of the parser --------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Start the answer or an interim one before it; a second answer is an error."""
        if self.is_complete:
            raise _NotHttp
        self._fields = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field of the head; fields of the trailer are dropped."""
        if self.head is not None:
            return
        # With a space before its colon the parser ignores a length, and another reader may not.
        if len(self._fields) == _MAX_FIELDS or b"\0" in value or name.endswith((b" ", b"\t")):
            raise _NotHttp
        name_text = name.decode("latin-1").lower()
        if name_text == "transfer-encoding" and b"\t" in value:  # the parser does not take a tab for a blank there
            raise _NotHttp
        self._fields.append((name_text, value.rstrip(b" \t").decode("utf-8", "surrogateescape")))

    def on_headers_complete(self) -> None:
        """Set the head. Interim answers are ignored. Status 101 is an error: no other protocol was requested."""
        if self.head is not None:  # `_CHUNKED`
            return
        status, fields = self._parser.get_status_code(), self._fields
        if status < 100 or status == 101 or (self._overhead > _MAX_OVERHEAD and _size(fields) > _MAX_OVERHEAD):
            raise _NotHttp
        if status < 200:
            return
        self._overhead = 1  # the head has arrived
        self.head = read_fields(status, fields)
        self.ends_with_connection = _ends_with_connection(fields)

    def on_body(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._overhead = 1
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Mark the answer as complete."""
        if self.head is not None:
            self.is_kept = self._parser.should_keep_alive()
            self.is_complete = True


def _size(fields: list[tuple[str, str]]) -> int:
    return sum(len(name) + len(value) for name, value in fields)


def _ends_with_connection(fields: list[tuple[str, str]]) -> bool:
    """Return whether the body ends with the connection (RFC 9112, section 6.3)."""
    return not any(
        name == "content-length"
        or (name == "transfer-encoding" and value.rpartition(",")[2].strip().lower() == "chunked")
        for name, value in fields
    )
