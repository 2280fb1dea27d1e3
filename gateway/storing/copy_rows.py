"""Rows of PostgreSQL's binary COPY, made from the records of the spool.

A batch has thousands of records, so a row is put together from bytes: no `Exchange` and no value of asyncpg is created.
Parts that repeat, which are most names, are encoded once.
"""

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from auditor.domain.exchange import Exchange, Outcome
from gateway.recording import codec

#: The columns of ``exchanges`` in the order in which `row_of` writes them.
FACTS = (
    "id", "at", "total_us", "upstream_us", "request_bytes", "response_bytes",
    "prompt_tokens", "completion_tokens", "first_byte_us",
    "request_id", "tags", "ref", "parent", "request_hash", "response_hash",
    "origin", "endpoint", "route", "deployment", "model", "status", "outcome", "stream", "attempts", "capture",
    "inclusion", "config_hash",
    "key_id", "error_type", "finish_reason", "truncated", "redacted", "content_encoding",
)  # fmt: skip
CONTENT = ("id", "request", "response")

_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
_NULL = b"\xff\xff\xff\xff"
_NONE_OF_FOUR = 4 * _NULL
_FIRST = struct.Struct("!hi16siqiqiqiqiq")  # the number of columns, the id and five integers, each after its length
_CONTENT_HEAD = struct.Struct("!hi16si")  # the same with the id alone, and the length of the request
_LENGTH = struct.Struct("!i")
_BIGINT = struct.Struct("!iq")
_SMALLINT = struct.Struct("!ih")
_DOUBLE = struct.Struct("!id")
_ID_BYTES = 16
_ID_CHARACTERS = 36
#: Microseconds from 1970 to 2000, where PostgreSQL's timestamps begin.
_EPOCH_US = 946_684_800_000_000
#: Microseconds from 1970 to the year 10000, where Python's calendar ends.
_END_US = 253_402_300_800_000_000
_DAY_MS = 86_400_000


class ExchangeRow(NamedTuple):
    """One exchange, ready for COPY."""

    id: str
    day: int  #: days after 1970 (UTC)
    facts: bytes  #: the row of ``exchanges``
    content: bytes  #: the row of ``exchange_content``; empty: none
    planned: str | None  #: the planned call that a complete exchange answers


def row_of(payload: bytes) -> ExchangeRow:
    """Make the rows of one record.

    Raises
    ------
    ValueError
        The record is not an exchange, or a number or time does not fit into its column.
    """
    try:
        return _row_of(codec.decode_fields(payload))
    except (struct.error, TypeError, AttributeError) as error:
        raise ValueError(f"not an exchange: {error}") from None


def copy_data(rows: Iterable[bytes]) -> bytes:
    """Return what COPY reads."""
    return b"".join((_HEADER, *rows, _TRAILER))


def _row_of(fields: tuple[Any, ...]) -> ExchangeRow:
    (
        id_, at_us, _, _, _, _, _, _, outcome, _, _, _, _, _, request_id, tags, _, ref, parent, _, _,
        prompt, completion, total_us, upstream_us, first_byte_us, request_bytes, response_bytes, _, _, _,
        request_hash, response_hash, request, response,
    ) = fields  # fmt: skip
    if not 0 <= at_us < _END_US:
        raise ValueError("the time of the exchange is beyond the calendar")
    key = _id(id_)
    facts = b"".join(
        (
            _FIRST.pack(
                len(FACTS), _ID_BYTES, key, 8, at_us - _EPOCH_US, 8, total_us, 8, upstream_us, 8, request_bytes,
                8, response_bytes,
            ),
            _NULL if prompt is None else _BIGINT.pack(8, prompt),
            _NULL if completion is None else _BIGINT.pack(8, completion),
            _NULL if first_byte_us is None else _BIGINT.pack(8, first_byte_us),
            _clean_text(request_id),
            _tags(tuple(tags.items())) if tags else _NULL,
            _NONE_OF_FOUR
            if ref is None and parent is None and request_hash is None and response_hash is None
            else _links(ref, parent, request_hash, response_hash),
            _request_fields(fields[2:14]),
            _ended(_ENDED(fields)),
        )
    )  # fmt: skip
    content = b""
    if request is not None:
        # Its parts are large: nothing is copied twice.
        head = _CONTENT_HEAD.pack(len(CONTENT), _ID_BYTES, key, len(request))
        if response is None:
            content = b"".join((head, request, _NULL))
        else:
            content = b"".join((head, request, _LENGTH.pack(len(response)), response))
    planned = ref if ref is not None and outcome == Outcome.COMPLETE else None
    return ExchangeRow(id_, int.from_bytes(key[:6]) // _DAY_MS, facts, content, planned)


def _links(ref: str | None, parent: str | None, request_hash: bytes | None, response_hash: bytes | None) -> bytes:
    by_id = _NULL if parent is None else _cell(_id(parent))
    return b"".join((_text(ref), by_id, _bytes(request_hash), _bytes(response_hash)))


def _id(text: str) -> bytes:
    key = bytes.fromhex(text.replace("-", ""))
    if len(key) != _ID_BYTES or len(text) != _ID_CHARACTERS:
        raise ValueError("not the id of an exchange")
    return key


def _cell(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _bytes(value: bytes | None) -> bytes:
    return _NULL if value is None else _cell(value)


def _text(value: str | None) -> bytes:
    return _NULL if value is None else _cell(value.encode("utf-8", "replace"))


def _clean_text(value: str | None) -> bytes:
    return _NULL if value is None else _cell(_clean(value).encode("utf-8", "replace"))


def _clean(value: str) -> str:
    # PostgreSQL's text type does not allow NUL; a request may contain it.
    return value.replace("\0", "\ufffd")


def _boolean(value: bool) -> bytes:  # noqa: FBT001 -- one of the encoders
    return b"\0\0\0\1\1" if value else b"\0\0\0\1\0"


def _smallint(value: int) -> bytes:
    return _SMALLINT.pack(2, value)


def _double(value: float) -> bytes:
    return _DOUBLE.pack(8, value)


@lru_cache(maxsize=1000)
def _tags(tags: tuple[tuple[str, str], ...]) -> bytes:
    # As jsonb is sent: a version, then the text.
    clean = {name: _clean(value).encode("utf-8", "replace").decode() for name, value in tags}
    return _cell(b"\1" + json.dumps(clean).encode())


_REQUEST_FIELDS: Sequence[Callable[[Any], bytes]] = (
    _text, _text, _text, _text, _clean_text, _smallint, _text, _boolean, _smallint, _text, _double, _text,
)  # fmt: skip
_ENDED_KINDS: Sequence[Callable[[Any], bytes]] = (_text, _text, _clean_text, _boolean, _boolean, _clean_text)
_ENDED = itemgetter(*(Exchange._fields.index(name) for name in FACTS[-len(_ENDED_KINDS) :]))


@lru_cache(maxsize=4000)
def _request_fields(fields: tuple[Any, ...]) -> bytes:
    return b"".join(kind(value) for kind, value in zip(_REQUEST_FIELDS, fields, strict=True))


@lru_cache(maxsize=1000)
def _ended(fields: tuple[Any, ...]) -> bytes:
    return b"".join(kind(value) for kind, value in zip(_ENDED_KINDS, fields, strict=True))
