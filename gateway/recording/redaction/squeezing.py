"""Squeezed streams: of events that differ in a piece of text alone, one with the whole text is left.

Most streams contain nothing to redact. That can be seen in the squeezed stream, in a fraction of the time.
"""

from collections.abc import Sequence
from itertools import islice

from gateway.recording.redaction.streams import EventTemplate, Stream, find_strings, make_template, parse_event

#: The maximum number of templates that are made for a stream.
_MAX_TEMPLATES = 3
#: The last events are usually of their own kinds (the finish reason, usage, the terminator, nothing): no template is
#: made of an event that fewer follow.
_LEAST_FOLLOWING = 4
_DATA = b"data:"
_BETWEEN = b"\n\n"


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
        events = content.split(_BETWEEN)
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
                if (after + _BETWEEN + before).join((b"", *strings, b"")) == _BETWEEN.join((after, *block, before)):
                    run += strings
                    next(islice(walk, len(block), len(block)), None)  # go on behind them
            else:
                self._events.append(event)
        if run and not self._end_run(run):
            return None
        return _BETWEEN.join(self._events), self._pieces

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
