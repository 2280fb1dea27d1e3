"""Redaction of event streams: texts that arrive in pieces are joined, searched, and redacted in each piece.

The copy keeps the same events; only strings that contain part of a secret change. Most events differ from each other in
one string only. An `EventTemplate` reads those without parsing JSON.

Most streams contain nothing to redact. That can be seen in the squeezed stream, in a fraction of the time: of events
that differ in a piece of text alone, it has one with the whole text.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

import msgspec

from gateway.recording.redaction.search import STRING, Searcher, Span, Unescaped, merge, replace_spans

#: Identifies one text of a stream: the path of its pieces in an event.
Channel = tuple[str, ...]
#: Members that number the texts of a stream, besides the ``index`` of list items.
_NUMBERS = ("type", "output_index", "content_index", "summary_index")

#: OpenAI's padding, which makes all events equally long, so that their length reveals no token.
_PADDING = "obfuscation"
#: The maximum number of templates that are made for a stream.
_MAX_TEMPLATES = 3
#: The last events are usually of their own kinds (the finish reason, usage, the terminator, nothing): no template is
#: made of an event that fewer follow.
_LEAST_FOLLOWING = 4
_DATA = b"data:"
_EVENT_END = b"\n\n"

_text = msgspec.json.Decoder(str)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class EventString(NamedTuple):
    """A string of an event that may continue in the next one."""

    channel: Channel
    key: str
    text: str


class EventTemplate(NamedTuple):
    """The data of an event around a piece of text and around the padding that may follow it."""

    parts: tuple[bytes, ...]
    channel: Channel
    key: str

    def parse(self, payload: bytes) -> list[str] | None:
        """Return the piece and the padding of data that match this template, or None."""
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

    def render(self, strings: Sequence[str]) -> bytes:
        """Return the data with other strings."""
        written = (*map(msgspec.json.encode, strings), b"")
        return b"".join(part + string for part, string in zip(self.parts, written, strict=True))


def make_template(payload: bytes, event: Mapping[str, Any], event_string: EventString) -> list[EventTemplate]:
    """Return the template of an event in which one string was found; empty if the string is ambiguous.

    Checked by rendering it with other strings: exactly these must then be found.
    """
    padding = event.get(_PADDING)
    strings = [event_string.text, *([padding] if isinstance(padding, str) else [])]
    parts, rest = [], payload
    for string in strings:
        written = msgspec.json.encode(string)
        if written not in rest:
            written = json.dumps(string).encode()  # with escapes
        before, _, rest = rest.partition(written)
        parts.append(before)
    template = EventTemplate((*parts, rest), event_string.channel, event_string.key)
    others = [string + "?" for string in strings]
    proof = parse_event(template.render(others))
    is_unambiguous = list(find_strings(proof)) == [event_string._replace(text=others[0])]
    if len(strings) > 1:
        is_unambiguous = is_unambiguous and proof.get(_PADDING) == others[1]
    return [template] if is_unambiguous else []


def parse_event(payload: bytes) -> Any:
    """Parse the data of an event; None if they are not JSON."""
    try:
        return msgspec.json.decode(payload)
    except _UNREADABLE:
        return None


def find_strings(event: Any) -> Iterator[EventString]:
    """Iterate over the strings of an event that may continue in the next one."""
    if not isinstance(event, dict):
        return
    waiting: list[tuple[Channel, Any]] = [((), {"choices": event.get("choices")})]
    if "delta" in event:
        waiting.append((tuple(str(event.get(name)) for name in _NUMBERS), {"delta": event["delta"]}))
    while waiting:
        channel, value = waiting.pop()
        for name, inner in value.items() if isinstance(value, dict) else _numbered(value):
            if isinstance(inner, str):
                yield EventString((*channel, name), name, inner)
            elif inner and isinstance(inner, (dict, list)) and name != "logprobs":
                waiting.append(((*channel, name), inner))


def _numbered(items: list[Any]) -> Iterator[tuple[str, Any]]:
    for place, item in enumerate(items):
        yield str(item.get("index", place) if isinstance(item, dict) else place), item


class Piece(NamedTuple):
    """A string of an event, under its key."""

    event: int
    key: str
    text: str


class Stream:
    """The events of a stream, and its joined texts.

    Parameters
    ----------
    templates
        The maximum number of templates; if none of them matches, all its events are different.

    Attributes
    ----------
    lines
        All lines, with their line ends.
    events
        The numbers of each event's ``data:`` lines.
    channels
        The pieces of each text.
    """

    def __init__(self, content: bytes, templates: int = _MAX_TEMPLATES) -> None:
        self.lines = content.splitlines(keepends=True)
        self.events = list(_events(self.lines))
        self.channels: dict[Channel, list[Piece]] = defaultdict(list)
        self._templates: list[EventTemplate] = []
        self._untried = templates
        self._templated: set[int] = set()  # lines that match a template
        self._padding: list[str] = []
        readable = True
        for number, places in enumerate(self.events):
            readable = self._read(number, places)
        if not readable:  # truncated: any of its strings may continue the text under the same key
            for key, text in _strings(self.lines[self.events[-1][-1]]):
                for channel, pieces in self.channels.items():
                    if channel[-1] == key:
                        pieces.append(Piece(len(self.events) - 1, key, text))

    def texts(self) -> dict[Channel, str]:
        """Return the joined text of each channel."""
        return {channel: "".join(piece.text for piece in pieces) for channel, pieces in self.channels.items()}

    def searchable_text(self) -> bytes:
        """Return all text of the stream, joined and in pieces, with repeated parts only once."""
        pieces = [piece.text for pieces in self.channels.values() for piece in pieces]
        surroundings = [part for template in self._templates for part in template.parts]
        rest = [line for number, line in enumerate(self.lines) if number not in self._templated]
        texts = "\n".join((*self.texts().values(), *pieces, *self._padding)).encode(errors="surrogatepass")
        return b"\n".join((texts, *surroundings, *rest))

    def _read(self, number: int, places: Sequence[int]) -> bool:
        """Collect the pieces of an event. Return whether it could be parsed."""
        payload = self.lines[places[0]][5:] if len(places) == 1 else b"".join(self.lines[place][5:] for place in places)
        for template in self._templates:
            if (strings := template.parse(payload)) is not None:
                text, *padding = strings
                self.channels[template.channel].append(Piece(number, template.key, text))
                self._padding += padding
                self._templated.update(places)
                return True
        event = parse_event(payload)
        event_strings = list(find_strings(event))
        for channel, key, text in event_strings:
            self.channels[channel].append(Piece(number, key, text))
        if len(event_strings) == 1 and self._untried:
            self._untried -= 1
            self._templates += make_template(payload, event, event_strings[0])
        elif not self._untried and not self._templated:
            self._templates = []
        return event is not None


def searchable_text(content: bytes) -> bytes:
    """Return all text of a stream, joined and in pieces, with repeated parts only once."""
    squeezed = _Squeezer().squeeze(content)
    if squeezed is None:
        return Stream(content).searchable_text()
    events, pieces = squeezed
    return b"\n".join((Stream(events, templates=0).searchable_text(), *pieces))


class _Squeezer:
    """Squeezes one stream."""

    def __init__(self) -> None:
        self._parts: tuple[bytes, ...] = ()  # around the strings of an event; empty: no event is like another
        self._untried = _MAX_TEMPLATES
        self._events: list[bytes] = []
        self._pieces: list[bytes] = []

    def squeeze(self, content: bytes) -> tuple[bytes, list[bytes]] | None:
        """Return the squeezed stream, and the pieces of text as they are written; None if something is in doubt."""
        if content.find(b"\r") >= 0:
            return None
        before = after = b""
        start = stop = least = 0
        run: list[bytes] = []
        events = content.split(_EVENT_END)
        last_to_learn = len(events) - 1 - _LEAST_FOLLOWING
        walk = iter(range(len(events)))
        for number in walk:
            event = events[number]
            if least and event.startswith(before) and event.endswith(after) and len(event) >= least:
                run.append(event[start:stop])
                continue
            if run and not self._end_run(run):
                return None
            run = []
            # The first event of a stream is often of its own kind.
            if 0 < number <= last_to_learn and self._untried and self._learn(event):
                before, after = self._parts[0], self._parts[-1]
                start, stop, least = len(before), -len(after), len(before) + len(after)
                run = [event[start:stop]]
                # Usually all events but the last few are like this one, which is seen faster of all together.
                block = events[number + 1 : last_to_learn + 1]
                strings = [following[start:stop] for following in block]
                if (after + _EVENT_END + before).join((b"", *strings, b"")) == _EVENT_END.join((after, *block, before)):
                    run += strings
                    next(islice(walk, len(block), len(block)), None)  # go on behind them
            else:
                self._events.append(event)
        if run and not self._end_run(run):
            return None
        return _EVENT_END.join(self._events), self._pieces

    def _learn(self, event: bytes) -> bool:
        """Learn from an event what those like it have around their strings. Return whether that is possible."""
        if not event.startswith(_DATA) or event.find(b"\n") >= 0:
            return False
        self._untried -= 1
        payload = event[len(_DATA) :]
        parsed = parse_event(payload)
        strings = list(find_strings(parsed))
        templates = make_template(payload, parsed, strings[0]) if len(strings) == 1 else []
        for template in templates:
            self._parts = _around_strings(template)
        return bool(templates)

    def _end_run(self, run: Sequence[bytes]) -> bool:
        """Add an event with the text of a run of events. Return False if something in it is not inside a string."""
        before, *between, after = self._parts
        strings, padding = list(run), []
        if between:
            halves = [string.partition(between[0]) for string in run]
            if not all(separator for _, separator, _ in halves):
                return False
            strings, padding = [string for string, _, _ in halves], [rest for _, _, rest in halves]
        event = b"".join((before, *strings, *between, after))
        if not _is_inside(b"".join((*strings, *padding))) or parse_event(event[len(_DATA) :]) is None:
            return False
        self._events.append(event)
        self._pieces += strings
        self._pieces += padding
        return True


def _around_strings(template: EventTemplate) -> tuple[bytes, ...]:
    """Return what is around the strings of an event, with their quotes."""
    first, *between, last = template.parts
    return (_DATA + first + b'"', *(b'"' + part + b'"' for part in between), b'"' + last)


def _is_inside(text: bytes) -> bool:
    """Return whether some text is inside a JSON string to its end, without a doubt."""
    if text.find(b"\n") >= 0:
        return False
    return text.find(b'"') < 0 or (text.find(b"\\\\") < 0 and text.count(b'"') == text.count(b'\\"'))


def redact_deltas(stream: Stream, searcher: Searcher) -> None:
    """Redact the joined texts of a stream in its lines, in place."""
    texts = stream.texts()
    if not searcher.suspects("\n".join(texts.values()).encode(errors="surrogatepass")):
        return
    changes: dict[int, list[tuple[Piece, list[Span]]]] = defaultdict(list)
    for channel, pieces in stream.channels.items():
        for piece, spans in _share(pieces, searcher.find(texts[channel])):
            changes[piece.event].append((piece, spans))
    for number, changes_wanted in changes.items():
        _change(stream.lines, stream.events[number], changes_wanted)


def _events(lines: Sequence[bytes]) -> Iterator[list[int]]:
    """Iterate over the numbers of the ``data:`` lines of each event."""
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
    """Return each string of an unparsable line together with the string before it, which may be its key."""
    strings = STRING.finditer(line.decode(errors="surrogateescape"))
    return pairwise(Unescaped(string[1]).text for string in strings)


def _share(pieces: Sequence[Piece], spans: Sequence[Span]) -> Iterator[tuple[Piece, list[Span]]]:
    """Return the spans of each piece. The first piece of a secret gets the placeholder, the others lose their part."""
    ahead = list(reversed(spans))
    start = 0
    for piece in pieces:
        end = start + len(piece.text)
        piece_spans: list[Span] = []
        while ahead and ahead[-1].start < end:
            span = ahead.pop()
            piece_spans.append(Span(span.start - start, min(span.end, end) - start, span.placeholder))
            if span.end > end:  # continues in the next piece
                ahead.append(Span(end, span.end, ""))
                break
        if piece_spans:
            yield piece, piece_spans
        start = end


def _change(lines: list[bytes], event: Sequence[int], changes_wanted: Sequence[tuple[Piece, list[Span]]]) -> None:
    """Change the strings of an event that are pieces: those with the text of the piece, after its key."""
    spans_of: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for piece, spans in changes_wanted:
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
        lines[number] = replace_spans(line, changes).encode(errors="surrogateescape")
