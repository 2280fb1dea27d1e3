"""The binary format of exchanges in the spool: the fields in their order, as MessagePack.

A later release may append fields, which an earlier release ignores. Any other change needs a new version.
"""

from typing import Any

import msgspec

from auditor.domain.exchange import Exchange

#: Written in front of each record, so that a later release can read what an earlier one left in the spool.
VERSION = b"\x01"

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Exchange)
_fields: msgspec.msgpack.Decoder[tuple[Any, ...]] = msgspec.msgpack.Decoder(tuple)
_KNOWN = len(Exchange._fields)
_DEFAULTS = tuple(Exchange._field_defaults.values())
_NEEDED = _KNOWN - len(_DEFAULTS)


def encode(exchange: Exchange) -> bytes:
    """Write one exchange."""
    return VERSION + _encoder.encode(exchange)


def decode(payload: bytes) -> Exchange:
    """Read one exchange.

    Raises
    ------
    ValueError
        The bytes are not an exchange, or of a version that this release does not know.
    """
    _check_version(payload)
    try:
        try:
            return _decoder.decode(payload[1:])
        except msgspec.ValidationError:
            return msgspec.convert(_fields.decode(payload[1:])[:_KNOWN], Exchange)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None


def decode_fields(payload: bytes) -> tuple[Any, ...]:
    """Read the fields of one exchange in their order, as they are written: ids and enumerations are text.

    Raises
    ------
    ValueError
        The bytes are not an exchange, or of an unknown version. The types of the fields are not checked.
    """
    _check_version(payload)
    try:
        fields = _fields.decode(memoryview(payload)[1:])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if len(fields) == _KNOWN:
        return fields
    if len(fields) < _NEEDED:
        raise ValueError(f"the record has {len(fields)} fields, and {_NEEDED} at least are needed")
    return (*fields, *_DEFAULTS[len(fields) - _NEEDED :])[:_KNOWN]


def _check_version(payload: bytes) -> None:
    if payload[:1] != VERSION:
        raise ValueError(
            f"the record has version {payload[:1].hex() or 'none'}; this release reads version {VERSION.hex()}"
        )
