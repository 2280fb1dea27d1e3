"""Event streams: what is written piece by piece is read as a whole, and taken out of every piece that has a part of it.

The copy stays a stream of the same events; only the strings with a part of a secret change.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from gateway.redaction.moulds import Channel, Mould, find, mould_of, read
from gateway.redaction.search import STRING, Searcher, Span, Unescaped, merge, put

#: Moulds that are made of a stream at most; where none of them fits, all its events are different.
_MOST = 3


class Piece(NamedTuple):
    """A string of an event, under its key."""

    event: int
    key: str
    text: str


class Stream:
    """A stream's events, and its texts put together.

    Attributes
    ----------
    lines
        All of it, with their ends.
    events
        The numbers of each event's ``data:`` lines.
    channels
        The pieces of each text.
    """

    def __init__(self, content: bytes) -> None:
        self.lines = content.splitlines(keepends=True)
        self.events = list(_events(self.lines))
        self.channels: dict[Channel, list[Piece]] = defaultdict(list)
        self._moulds: list[Mould] = []
        self._untried = _MOST
        self._cast: set[int] = set()  # the lines that say nothing but their mould, a piece and padding
        self._padding: list[str] = []
        readable = True
        for number, places in enumerate(self.events):
            readable = self._read(number, places)
        if not readable:  # cut short: any of its strings may go on with the text under the same key
            for key, text in _strings(self.lines[self.events[-1][-1]]):
                for channel, pieces in self.channels.items():
                    if channel[-1] == key:
                        pieces.append(Piece(len(self.events) - 1, key, text))

    def texts(self) -> dict[Channel, str]:
        """Put the texts together."""
        return {channel: "".join(piece.text for piece in pieces) for channel, pieces in self.channels.items()}

    def told(self) -> bytes:
        """Give all that is told, put together and as it stands, but what repeats itself only once."""
        pieces = [piece.text for pieces in self.channels.values() for piece in pieces]
        surroundings = [part for mould in self._moulds for part in mould.parts]
        rest = [line for number, line in enumerate(self.lines) if number not in self._cast]
        texts = "\n".join((*self.texts().values(), *pieces, *self._padding)).encode(errors="surrogatepass")
        return b"\n".join((texts, *surroundings, *rest))

    def _read(self, number: int, places: Sequence[int]) -> bool:
        """Take the pieces of an event; say whether it could be read."""
        payload = self.lines[places[0]][5:] if len(places) == 1 else b"".join(self.lines[place][5:] for place in places)
        for mould in self._moulds:
            if (strings := mould.read(payload)) is not None:
                text, *padding = strings
                self.channels[mould.channel].append(Piece(number, mould.key, text))
                self._padding += padding
                self._cast.update(places)
                return True
        event = read(payload)
        found = list(find(event))
        for channel, key, text in found:
            self.channels[channel].append(Piece(number, key, text))
        if len(found) == 1 and self._untried:
            self._untried -= 1
            self._moulds += mould_of(payload, event, found[0])
        elif not self._untried and not self._cast:
            self._moulds = []
        return event is not None


def redact_deltas(stream: Stream, searcher: Searcher) -> None:
    """Take out of a stream's lines, in place, what its texts hold when they are put together."""
    texts = stream.texts()
    if not searcher.suspects("\n".join(texts.values()).encode(errors="surrogatepass")):
        return
    changes: dict[int, list[tuple[Piece, list[Span]]]] = defaultdict(list)
    for channel, pieces in stream.channels.items():
        for piece, spans in _share(pieces, searcher.find(texts[channel])):
            changes[piece.event].append((piece, spans))
    for number, wanted in changes.items():
        _change(stream.lines, stream.events[number], wanted)


def _events(lines: Sequence[bytes]) -> Iterator[list[int]]:
    """Give the numbers of each event's ``data:`` lines."""
    event: list[int] = []
    for number, line in enumerate(lines):
        if line.startswith(b"data:"):
            event.append(number)
        elif event and line in {b"\n", b"\r\n", b"\r"}:
            yield event
            event = []
    if event:
        yield event


def _strings(line: bytes) -> Iterator[tuple[str, str]]:
    """Give each string of a line that cannot be parsed, behind the string before it: its key, if it has one."""
    strings = STRING.finditer(line.decode(errors="surrogateescape"))
    return pairwise(Unescaped(string[1]).text for string in strings)


def _share(pieces: Sequence[Piece], spans: Sequence[Span]) -> Iterator[tuple[Piece, list[Span]]]:
    """Say what goes out of each piece: the first with a part of a secret gets the placeholder, the others nothing."""
    ahead = list(reversed(spans))
    start = 0
    for piece in pieces:
        end = start + len(piece.text)
        own: list[Span] = []
        while ahead and ahead[-1].start < end:
            span = ahead.pop()
            own.append(Span(span.start - start, min(span.end, end) - start, span.placeholder))
            if span.end > end:  # goes on in the next piece
                ahead.append(Span(end, span.end, ""))
                break
        if own:
            yield piece, own
        start = end


def _change(lines: list[bytes], event: Sequence[int], wanted: Sequence[tuple[Piece, list[Span]]]) -> None:
    """Change the strings of an event that are pieces: those with the piece's text, right behind the piece's key."""
    spans_of: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for piece, spans in wanted:
        spans_of[piece.key, piece.text] += spans
    key = ""
    for number in event:
        line = lines[number].decode(errors="surrogateescape")
        changes: list[Span] = []
        for string in STRING.finditer(line):
            inner = Unescaped(string[1])
            start = string.start(1)
            spans = merge(spans_of.get((key, inner.text), ()))
            changes += [Span(start + inner.raw(at), start + inner.raw(end), what) for at, end, what in spans]
            key = inner.text
        lines[number] = put(line, changes).encode(errors="surrogateescape")
