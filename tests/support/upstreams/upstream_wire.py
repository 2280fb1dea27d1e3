"""What the scripted upstream reads and plays: requests, their parser, and the steps of an answer.

The answers themselves are built in `upstream_answers`, the server is `upstream`.
The parser is written by hand because it stands in load tests, where the machine's time belongs to the gateway.
"""

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec


class Act(enum.Enum):
    """What an answer can do besides writing bytes."""

    #: wait until everything so far left this process, and give the reader time to take it by itself
    FLUSH = "flush"
    #: end the connection in the ordinary way (FIN), whatever was promised
    CLOSE = "close"
    #: end the connection with a reset (RST); bytes not yet sent are thrown away
    RESET = "reset"
    #: say nothing until the test calls `release()` or the client leaves
    HANG = "hang"


FLUSH, CLOSE, RESET, HANG = Act.FLUSH, Act.CLOSE, Act.RESET, Act.HANG


@dataclass(frozen=True, slots=True)
class Sleep:
    """A pause of so many seconds."""

    seconds: float


Step: TypeAlias = bytes | Sleep | Act
Steps: TypeAlias = Iterable[Step]


class Outcome(enum.StrEnum):
    """How the answer to a request ended, as the upstream saw it."""

    OPEN = "open"
    #: every step was played and the last byte was handed to the kernel
    SENT = "sent"
    #: the script itself ended the connection
    CLOSED = "closed"
    RESET = "reset"
    #: the client went away before the answer was out
    CLIENT_GONE = "client_gone"


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """A request as it arrived; `outcome` is filled in while its answer is played."""

    number: int
    connection: int
    nth: int  # 0 for the first request of its connection
    method: str
    path: str
    headers: list[tuple[str, str]]  # names as they were sent
    body: bytes
    outcome: Outcome = Outcome.OPEN
    _payload: Any = field(default=msgspec.UNSET, repr=False)

    def header(self, name: str) -> str | None:
        """Give the first header of this name, whatever its case."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)

    @property
    def payload(self) -> dict[str, Any]:
        """The body as a JSON object; empty when it is none."""
        if self._payload is msgspec.UNSET:
            try:
                self._payload = msgspec.json.decode(self.body)
            except msgspec.DecodeError:
                self._payload = {}
        return self._payload if isinstance(self._payload, dict) else {}

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.payload.get("model", ""))

    @property
    def stream(self) -> bool:
        """Whether a stream was asked for."""
        return bool(self.payload.get("stream"))

    @property
    def include_usage(self) -> bool:
        """Whether the stream is to end with a usage chunk."""
        return bool((self.payload.get("stream_options") or {}).get("include_usage"))

    @property
    def id(self) -> str:
        """The caller's own id: header `x-request-id`, else the body's `user`, else our number."""
        return self.header("x-request-id") or str(self.payload.get("user") or self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One parsed request, before the server gives it its numbers."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes


class RequestParser:
    """Cut a byte stream into requests, with content-length or chunked bodies."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: tuple[str, str, list[tuple[str, str]]] | None = None
        self._length: int | None = 0
        self.wants_continue = False

    def feed(self, data: bytes) -> Iterator[Message]:
        """Take more bytes; give the requests that are now whole."""
        self._buffer += data
        while self._head is not None or self._read_head():
            body = self._read_body()
            if body is None:
                return
            assert self._head is not None
            method, path, headers = self._head
            self._head = None
            yield Message(method=method, path=path, headers=headers, body=body)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        method, path, _ = first.split(" ", 2)
        headers: list[tuple[str, str]] = []
        self._length = 0
        for line in lines:
            name, _, value = line.partition(":")
            value = value.strip()
            headers.append((name, value))
            match name.lower():
                case "content-length":
                    self._length = int(value)
                case "transfer-encoding":
                    self._length = None
                case "expect":
                    self.wants_continue = True
        self._head = (method, path, headers)
        return True

    def _read_body(self) -> bytes | None:
        if self._length is None:
            return self._read_chunks()
        if len(self._buffer) < self._length:
            return None
        body = bytes(self._buffer[: self._length])
        del self._buffer[: self._length]
        return body

    def _read_chunks(self) -> bytes | None:
        """Read a chunked body once all of it is there (request bodies here are small)."""
        body, at = bytearray(), 0
        while (line_end := self._buffer.find(b"\r\n", at)) >= 0:
            size = int(self._buffer[at:line_end].split(b";")[0], 16)
            start = line_end + 2
            if len(self._buffer) < start + size + 2:
                return None
            body += self._buffer[start : start + size]
            at = start + size + 2
            if size == 0:
                del self._buffer[:at]
                return bytes(body)
        return None
