"""Moulds: events of a stream that differ in one string alone are read by what surrounds it; nothing else is parsed."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

#: What tells one text of a stream from another: where in an event its pieces stand.
Channel = tuple[str, ...]
#: Members that number the texts of a stream, beside lists' own ``index``.
_NUMBERS = ("type", "output_index", "content_index", "summary_index")

_text = msgspec.json.Decoder(str)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Found(NamedTuple):
    """A string of an event that may go on in the next one."""

    channel: Channel
    key: str
    text: str


class Mould(NamedTuple):
    """An event's data around one string."""

    before: bytes
    after: bytes
    channel: Channel
    key: str

    def read(self, payload: bytes) -> str | None:
        """Give the string of data that were cast in this mould."""
        if not (payload.startswith(self.before) and payload.endswith(self.after)):
            return None
        try:
            return _text.decode(payload[len(self.before) : len(payload) - len(self.after)])
        except _UNREADABLE:
            return None


def mould_of(payload: bytes, found: Found) -> list[Mould]:
    """Make the mould of data in which one string was found; none if that cannot be told from the rest.

    The proof is another string in its place: it must be all that is found, and there.
    """
    written = msgspec.json.encode(found.text)
    if written not in payload:
        written = json.dumps(found.text).encode()  # with escapes
    before, literal, after = payload.partition(written)
    other = found._replace(text=found.text + "?")
    if not literal or list(find(read(before + msgspec.json.encode(other.text) + after))) != [other]:
        return []
    return [Mould(before, after, found.channel, found.key)]


def read(payload: bytes) -> Any:
    """Read an event's data; None if they are no JSON."""
    try:
        return msgspec.json.decode(payload)
    except _UNREADABLE:
        return None


def find(event: Any) -> Iterator[Found]:
    """Give the strings of an event that may go on in the next one."""
    if not isinstance(event, dict):
        return
    waiting: list[tuple[Channel, Any]] = [((), {"choices": event.get("choices")})]
    if "delta" in event:
        waiting.append((tuple(str(event.get(name)) for name in _NUMBERS), {"delta": event["delta"]}))
    while waiting:
        channel, value = waiting.pop()
        for name, inner in value.items() if isinstance(value, dict) else _numbered(value):
            if isinstance(inner, str):
                yield Found((*channel, name), name, inner)
            elif inner and isinstance(inner, (dict, list)) and name != "logprobs":
                waiting.append(((*channel, name), inner))


def _numbered(items: list[Any]) -> Iterator[tuple[str, Any]]:
    for place, item in enumerate(items):
        yield str(item.get("index", place) if isinstance(item, dict) else place), item
