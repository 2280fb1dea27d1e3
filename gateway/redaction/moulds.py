"""Moulds: events of a stream that differ in one string are read by what surrounds it; nothing else is parsed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

#: What tells one text of a stream from another: where in an event its pieces stand.
Channel = tuple[str, ...]
#: Members that number the texts of a stream, beside lists' own ``index``.
_NUMBERS = ("type", "output_index", "content_index", "summary_index")

#: OpenAI makes all events equally long with it, so that nobody can tell tokens by their length.
_PADDING = "obfuscation"

_text = msgspec.json.Decoder(str)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Found(NamedTuple):
    """A string of an event that may go on in the next one."""

    channel: Channel
    key: str
    text: str


class Mould(NamedTuple):
    """An event's data around a piece, and around the padding that may follow it."""

    parts: tuple[bytes, ...]
    channel: Channel
    key: str

    def read(self, payload: bytes) -> list[str] | None:
        """Give the strings of data that were cast in this mould: the piece, then the padding."""
        before, *between, after = self.parts
        if not (payload.startswith(before) and payload.endswith(after)):
            return None
        rest = payload[len(before) : len(payload) - len(after)]
        strings = []
        for part in between:
            string, _, rest = rest.partition(part)
            strings.append(string)
        try:
            return [_text.decode(string) for string in (*strings, rest)]
        except _UNREADABLE:
            return None

    def cast(self, strings: Sequence[str]) -> bytes:
        """Write data with other strings."""
        written = (*map(msgspec.json.encode, strings), b"")
        return b"".join(part + string for part, string in zip(self.parts, written, strict=True))


def mould_of(payload: bytes, event: Mapping[str, Any], found: Found) -> list[Mould]:
    """Make the mould of an event in which one string was found; none if that cannot be told from the rest.

    The proof are other strings in their places: the one must be all that is found, and there.
    """
    padding = event.get(_PADDING)
    strings = [found.text, *([padding] if isinstance(padding, str) else [])]
    parts, rest = [], payload
    for string in strings:
        written = msgspec.json.encode(string)
        if written not in rest:
            written = json.dumps(string).encode()  # with escapes
        before, _, rest = rest.partition(written)
        parts.append(before)
    mould = Mould((*parts, rest), found.channel, found.key)
    others = [string + "?" for string in strings]
    proof = read(mould.cast(others))
    told_apart = list(find(proof)) == [found._replace(text=others[0])]
    if len(strings) > 1:
        told_apart = told_apart and proof.get(_PADDING) == others[1]
    return [mould] if told_apart else []


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
