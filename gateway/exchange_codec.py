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
_facts: msgspec.msgpack.Decoder[list[Any]] = msgspec.msgpack.Decoder(list)
_KNOWN = len(Exchange._fields)


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
    if payload[:1] != VERSION:
        raise ValueError(
            f"the record has version {payload[:1].hex() or 'none'}; this release reads version {VERSION.hex()}"
        )
    try:
        try:
            return _decoder.decode(payload[1:])
        except msgspec.ValidationError:
            return msgspec.convert(_facts.decode(payload[1:])[:_KNOWN], Exchange)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None
