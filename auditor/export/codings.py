"""What spans, events and series say alike of an exchange and its coding: the trace, and whether a layer endorses."""

from collections.abc import Mapping
from typing import Any, Final

from auditor.domain.coding import ABSTAIN

_ENDORSES_ELAB: Final = ("E", "QE")


def trace_id(facts: Mapping[str, Any]) -> bytes:
    """Return the 16 bytes of the exchange's trace: the client's, or without a valid one the exchange's own id."""
    exchange_id: bytes = facts["id"].bytes
    return hex_id((facts["tags"] or {}).get("trace_id"), 16) or exchange_id


def hex_id(text: str | None, length: int) -> bytes:
    """Return the bytes of an id; none if it is missing or none of this length."""
    try:
        number = bytes.fromhex(text or "")
    except ValueError:
        return b""
    return number if len(number) == length else b""


def endorses(selection: str | None, elaboration: str | None) -> bool | None:
    """Return whether a layer endorses, by the labels of both; None if that is not known.

    >>> endorses("E", None), endorses("D", "D"), endorses("D", None)
    (True, False, None)
    """
    if selection == "E" or elaboration in _ENDORSES_ELAB:
        return True
    return None if {selection, elaboration} & {ABSTAIN, None} else False
