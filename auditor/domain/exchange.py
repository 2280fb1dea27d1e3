"""One exchange: a request forwarded by the gateway, its outcome, and why it was kept. Immutable."""

from enum import StrEnum
from typing import NamedTuple
from uuid import UUID


class Origin(StrEnum):
    """Who asked. No metric mixes origins."""

    CLIENT = "client"  #: an application
    PROBE = "probe"  #: a planned call under an assigned condition
    REPLAY = "replay"  #: a stored exchange asked again in another format
    JUDGE = "judge"  #: a judge reading an answer
    PEER = "peer"  #: a prompt mirrored to another deployment


class Outcome(StrEnum):
    """How it ended, as the client saw it."""

    COMPLETE = "complete"  #: the whole answer, status 2xx
    CUT = "cut"  #: the upstream ended or fell silent in the middle of its answer
    FAILED = "failed"  #: an error status, or an error inside the stream
    CLIENT_GONE = "client_gone"  #: the client left first


class Capture(StrEnum):
    """How much of an exchange is kept."""

    OFF = "off"  #: nothing
    HASHED = "hashed"  #: facts, and SHA-256 of request and answer
    FULL = "full"  #: facts, and request and answer up to the capture limit


class Exchange(NamedTuple):
    """The facts of one exchange, and its content where it is captured in full.

    Times are microseconds; token counts are absent where the upstream reported none. A tuple, for one is made on each
    request while the client waits: a frozen dataclass of as many fields takes three times as long.
    """

    id: UUID  #: its text in an exchange that the gateway has made and not yet written
    at_us: int  #: when the request's head had been read, microseconds after 1970 (UTC)
    origin: Origin
    endpoint: str  #: e.g. ``chat/completions``
    route: str  #: the route's name in the configuration, ``*`` included
    deployment: str
    model: str  #: model that the request names
    status: int  #: status that the client got; 499 when it left first
    outcome: Outcome
    stream: bool
    attempts: int
    capture: Capture
    inclusion: float  #: probability with which this exchange was kept, (0, 1]
    config_hash: str
    request_id: str
    tags: dict[str, str]
    key_id: str | None = None
    ref: str | None = None  #: planned instance
    parent: UUID | None = None  #: the exchange this one asks again
    error_type: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_us: int = 0
    upstream_us: int = 0  #: spent waiting for the upstream
    first_byte_us: int | None = None  #: time from the request's head to the answer's first byte
    request_bytes: int = 0
    response_bytes: int = 0
    truncated: bool = False  #: the captured content stops at the capture limit
    redacted: bool = False  #: something was taken out of the captured content
    content_encoding: str | None = None  #: encoding of the captured answer
    request_hash: bytes | None = None
    response_hash: bytes | None = None
    request: bytes | None = None
    response: bytes | None = None

    @property
    def complete(self) -> bool:
        """Whether the client got the whole of a successful answer."""
        return self.outcome is Outcome.COMPLETE
