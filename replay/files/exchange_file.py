"""A stored exchange as a line of JSONL, and back: its facts, and request and answer as far as they are kept.

Pure. Bodies are text, exactly as they were sent; what is no UTF-8 goes as ``request_base64`` and ``response_base64``.
Absent members are unknown. A line that a person writes needs ``id``, ``at``, ``deployment`` and ``model`` only.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from auditor.domain.exchange import Capture, Exchange, Origin, Outcome
from auditor.domain.ids import new_id
from auditor.rows import BadRow, Record
from auditor.store.exchanges import decode_body

#: What stands where an exchange has none of its own because it did not come through a gateway of ours.
ELSEWHERE: Final = "imported"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Probability = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Hash = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})+$")]


class LeftOut(Exception):  # noqa: N818 -- said of a row that is well, and that is not wanted; the reason is counted
    """A row is not taken; the message is the reason."""


class _Line(msgspec.Struct, kw_only=True):
    id: _Text
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    deployment: _Text
    model: _Text
    origin: Origin = Origin.CLIENT
    endpoint: _Text = "chat/completions"
    route: str = ""
    status: Annotated[int, msgspec.Meta(ge=100, le=599)] = 200
    outcome: Outcome = Outcome.COMPLETE
    stream: bool = False
    attempts: Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)] = 1
    inclusion: _Probability = 1.0
    chance: _Probability = 1.0
    config_hash: _Text = ELSEWHERE
    request_id: _Text | None = None
    key_id: str | None = None
    tags: dict[str, str] = {}
    error_type: str | None = None
    finish_reason: str | None = None
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    total_us: _Count = 0
    upstream_us: _Count = 0
    first_byte_us: _Count | None = None
    request_bytes: _Count | None = None
    response_bytes: _Count | None = None
    truncated: bool = False
    redacted: bool = False
    content_encoding: str | None = None
    request_hash: _Hash | None = None
    response_hash: _Hash | None = None
    request: str | None = None
    response: str | None = None
    request_base64: str | None = None
    response_base64: str | None = None


def record_of(row: Mapping[str, Any], chance: float) -> Record:
    """Make the line of one exchange.

    Parameters
    ----------
    row
        The exchange's columns; its content's ``request`` and ``response``, where it is asked for; and ``asked``, what
        was planned about a probe.
    chance
        Probability with which it was drawn for this file, (0, 1]; ``inclusion`` is that of its being kept at all.
    """
    facts = {name: _plain(value) for name, value in row.items() if name not in _BODIES and value not in (None, {})}
    answer = decode_body(row.get("response"), row["content_encoding"])
    if answer is not row.get("response"):
        del facts["content_encoding"]
    return {**facts, "chance": chance, **_told("request", row.get("request")), **_told("response", answer)}


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _told(name: str, body: bytes | None) -> Record:
    if body is None:
        return {}
    try:
        return {name: body.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(body).decode()}


def exchange_of(record: Record) -> Exchange:
    """Read a line.

    An id that this project made is kept, so that the same exchange is the same wherever it goes; any other becomes the
    ``request_id`` and decides the id.

    Raises
    ------
    BadRow
        Something in it cannot be read; the message names the member.
    """
    try:
        line = msgspec.convert(record, _Line)
    except msgspec.ValidationError as error:
        raise BadRow(str(error)) from None
    facts = {name: getattr(line, name) for name in _CARRIED}
    if any("\0" in text for text in (*_texts(facts), *_texts(line.tags))):
        raise BadRow("a text in it holds a NUL character")
    request, response = (_body(line, name) for name in ("request", "response"))
    return Exchange(
        **facts,
        id=id_of(line.id, line.at),
        at_us=(line.at - _EPOCH) // timedelta(microseconds=1),
        capture=Capture.FULL if request is not None else Capture.HASHED,
        inclusion=line.inclusion * line.chance,
        request_id=line.request_id or line.id,
        request_bytes=line.request_bytes if line.request_bytes is not None else len(request or b""),
        response_bytes=line.response_bytes if line.response_bytes is not None else len(response or b""),
        request_hash=_digest(line.request_hash),
        response_hash=_digest(line.response_hash),
        request=request,
        response=response,
    )


_BODIES: Final = ("request", "response")
_MADE: Final = {"id", "inclusion", "request_id", "request_bytes", "response_bytes", "request_hash", "response_hash"}
#: Members that are an exchange's as they stand.
_CARRIED: Final = tuple(
    name for name in _Line.__struct_fields__ if name in Exchange._fields and name not in {*_MADE, *_BODIES}
)


def _texts(members: Mapping[str, Any]) -> Iterator[str]:
    return (text for pair in members.items() for text in pair if isinstance(text, str))


def id_of(text: str, at: datetime) -> UUID:
    """Give the id of an exchange from elsewhere: always the same for the same text and moment, to the millisecond.

    Examples
    --------
    >>> id_of("chatcmpl-1", datetime(2026, 3, 1, 12, tzinfo=UTC))
    UUID('019ca945-0a00-74fa-be52-90c3db17ced7')
    """
    ms = (at - _EPOCH) // timedelta(milliseconds=1)
    try:
        given = UUID(text)
    except ValueError:
        given = None
    if given is not None and given.version == 7 and given.int >> 80 == ms:
        return given
    digest = int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=16).digest(), "big")
    return new_id(ms, lambda bits: digest & ((1 << bits) - 1))


def _body(line: _Line, name: str) -> bytes | None:
    text, packed = getattr(line, name), getattr(line, f"{name}_base64")
    if text is not None:
        return str(text).encode("utf-8", "surrogatepass")
    try:
        return b64decode(packed, validate=True) if packed is not None else None
    except NotBase64:
        raise BadRow(f"{name}_base64 is not base64") from None


def _digest(given: str | None) -> bytes | None:
    return bytes.fromhex(given) if given is not None else None
