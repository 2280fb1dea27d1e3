"""Parsing the requests of one connection, with `httptools`.

It is strict: what two readers could understand differently is refused.
"""

from functools import lru_cache
from typing import Final, Protocol

import httptools

from gateway.errors import BadRequest, GatewayError
from gateway.http.request import Client, Request, framing_error

#: Maximum bytes without a body byte: a head, chunk sizes, a trailer.
_MAX_OVERHEAD: Final = 64 << 10
_MAX_FIELDS: Final = 128
_NOT_HTTP: Final = BadRequest("This is not a valid HTTP/1.1 request.", code="http_error")
_TOO_MUCH: Final = BadRequest("The request's header fields are too large.", code="headers_too_large", status=431)


class Receiver(Client, Protocol):
    """The connection whose requests are parsed."""

    def request_began(self) -> None:
        """Take note that the first byte of a request has come."""

    def head_came(self, request: Request) -> bool:
        """Take a request whose head has come. Return False if it is one too many."""

    def body_came(self, request: Request, piece: bytes) -> None:
        """Take a piece of its body."""

    def request_ended(self, request: Request) -> None:
        """Take note that it is complete."""


class _NotHttp(Exception):  # noqa: N818 -- never leaves this file
    """The received bytes are not a request that can be answered."""


class RequestParser:
    """Makes requests of the bytes of one connection.

    Parameters
    ----------
    receiver
        Receiver of the requests.

    Attributes
    ----------
    coming
        The request whose body is incomplete.
    is_in_message
        Whether a part of a request has been read.
    """

    __slots__ = ("_error", "_fields", "_head_bytes", "_headers", "_overhead", "_parser", "_receiver", "_target",
                 "coming", "is_in_message")  # fmt: skip

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._parser = httptools.HttpRequestParser(self)
        self.coming: Request | None = None
        self.is_in_message = False
        self._error: GatewayError | None = None
        self._target = b""
        self._headers: dict[str, str] = {}
        self._fields = 0
        self._head_bytes = 0
        self._overhead = 0

    def close(self) -> None:
        """Read no more. Otherwise a reference cycle would keep the requests in memory."""
        del self._parser
        self.coming = None

    def feed(self, data: bytes) -> None:
        """Parse what has come.

        Raises
        ------
        GatewayError
            It is no request that can be answered; nothing more can be read.
        """
        self._overhead += len(data)
        try:
            while data:
                try:
                    self._parser.feed_data(data)
                except httptools.HttpParserUpgrade as upgrade:
                    data = self._head_without_offer() + data[upgrade.args[0] :]
                else:
                    break
        except httptools.HttpParserError:
            raise self._error or _NOT_HTTP from None
        if self._overhead > _MAX_OVERHEAD:
            raise _TOO_MUCH

    # -- callbacks of the parser --------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Start a new request."""
        self.is_in_message = True
        self._target = b""
        self._headers = {}
        self._fields = 0
        self._head_bytes = 0
        self._receiver.request_began()

    def on_url(self, piece: bytes) -> None:
        """Append a piece of the request target."""
        self._target += piece
        self._head_bytes += len(piece)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field of the head; fields of the trailer are dropped."""
        if self.coming is not None:
            return
        self._fields += 1
        self._head_bytes += len(name) + len(value)
        if self._fields > _MAX_FIELDS or self._head_bytes > _MAX_OVERHEAD:  # also if it arrived in one piece
            self._error = _TOO_MUCH
            raise _NotHttp
        lower = _lower(name)
        if lower not in self._headers:
            self._headers[lower] = value.rstrip(b" \t").decode("utf-8", "surrogateescape")
        elif lower in {"host", "transfer-encoding"}:
            raise _NotHttp

    def on_headers_complete(self) -> None:
        """Create the request from its head."""
        version = self._parser.get_http_version()
        if version not in {"1.1", "1.0"}:
            raise _NotHttp
        if self._parser.should_upgrade():
            return
        if "host" not in self._headers or "transfer-encoding" in self._headers:
            self._error = framing_error(version, self._headers)
            if self._error is not None:
                raise _NotHttp
        request = self.coming = Request(
            self._receiver,
            self._parser.get_method().decode("ascii"),
            self._target.decode("utf-8", "surrogateescape"),
            self._headers,
            minor=1 if version == "1.1" else 0,
            stays=self._parser.should_keep_alive(),
        )
        if not self._receiver.head_came(request):
            raise _NotHttp

    def on_body(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._overhead = 0
        assert self.coming is not None
        self._receiver.body_came(self.coming, piece)

    def on_message_complete(self) -> None:
        """Mark the request as complete."""
        self._overhead = 0
        self.is_in_message = False
        request, self.coming = self.coming, None
        if request is not None:  # None: see `_head_without_offer`
            request.end()
            self._receiver.request_ended(request)

    def _head_without_offer(self) -> bytes:
        """Return the last head without its offer of another protocol.

        Otherwise the parser would take the body for that protocol. The parser has already refused fields with line
        breaks, so the head cannot contain others.
        """
        if self._parser.get_method() == b"CONNECT":
            raise httptools.HttpParserError
        fields = {name: value for name, value in self._headers.items() if name not in {"connection", "upgrade"}}
        offered = self._headers["connection"].lower().split(",")
        if any(token.strip() == "close" for token in offered):
            fields["connection"] = "close"
        first = b"%b %b HTTP/%b" % (self._parser.get_method(), self._target, self._parser.get_http_version().encode())
        lines = [first, *[f"{name}: {value}".encode("utf-8", "surrogateescape") for name, value in fields.items()]]
        return b"\r\n".join(lines) + b"\r\n\r\n"


@lru_cache(maxsize=1000)  # clients use few different names
def _lower(name: bytes) -> str:
    return name.decode("latin-1").lower()
