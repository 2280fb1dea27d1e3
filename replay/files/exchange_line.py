"""Write a stored exchange as a line of JSONL, and read it back.

No I/O. Bodies are text, exactly as they were sent; bodies that are not UTF-8 are in ``request_base64`` and
``response_base64``. Absent members are unknown. Only ``id``, ``at``, ``deployment`` and ``model`` are required.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from auditor.documents.jsonl import BadRow, Record
from auditor.domain.exchange import Capture, Exchange, Origin, Outcome
from auditor.domain.ids import new_id
from auditor.store.exchanges import decode_body

#: Values of fields that an exchange lacks because it did not pass through our gateway.
ELSEWHERE: Final = "imported"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Probability = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Hash = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})+$")]


class ExcludedRow(Exception):  # noqa: N818 -- said of a row that is well, and that is not wanted; the reason is counted
    """An error for a row that is not imported; the message is the reason."""


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
    """Return the line of one exchange.

    Parameters
    ----------
    row
        The exchange's columns; ``request`` and ``response`` of its content, if requested; and ``asked``, the planned
        call of a probe.
    chance
        Probability of being drawn for this file, (0, 1]. ``inclusion`` is the probability of being captured.
    """
    facts = {
        name: (value.hex() if isinstance(value, bytes) else value)
        for name, value in row.items()
        if name not in _BODIES and value not in (None, {})
    }
    answer = decode_body(row.get("response"), row["content_encoding"])
    if answer is not row.get("response"):
        del facts["content_encoding"]
    return {
        **facts,
        "chance": chance,
        **_body_member("request", row.get("request")),
        **_body_member("response", answer),
    }


def _body_member(name: str, body: bytes | None) -> Record:
    if body is None:
        return {}
    try:
        return {name: body.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(body).decode()}


def exchange_of(record: Record) -> Exchange:
    """Read a line.

    An id that this project made is kept, so that an exchange has the same id in every store. Any other id becomes the
    ``request_id``, and the new id is derived from it.

    Raises
    ------
    BadRow
        A member cannot be read; the message names it.
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
        request_hash=_parse_hash(line.request_hash),
        response_hash=_parse_hash(line.response_hash),
        request=request,
        response=response,
    )


_BODIES: Final = ("request", "response")
_MADE: Final = {"id", "inclusion", "request_id", "request_bytes", "response_bytes", "request_hash", "response_hash"}
#: Members that are fields of an exchange without conversion.
_CARRIED: Final = tuple(
    name for name in _Line.__struct_fields__ if name in Exchange._fields and name not in {*_MADE, *_BODIES}
)


def _texts(members: Mapping[str, Any]) -> Iterator[str]:
    return (text for pair in members.items() for text in pair if isinstance(text, str))


def id_of(text: str, at: datetime) -> UUID:
    """Return the id of a foreign exchange: the same for the same text and time, to the millisecond.

    Examples
    --------
    >>> id_of("chatcmpl-1", datetime(2026, 3, 1, 12, tzinfo=UTC))
    UUID('019ca945-0a00-74fa-be52-90c3db17ced7')
    """
    ms = (at - _EPOCH) // timedelta(milliseconds=1)
    try:
        uuid = UUID(text)
    except ValueError:
        uuid = None
    if uuid is not None and uuid.version == 7 and uuid.int >> 80 == ms:
        return uuid
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


def _parse_hash(digits: str | None) -> bytes | None:
    return bytes.fromhex(digits) if digits is not None else None
