"""Moulds: what is read by its surroundings is what a parser reads."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.recording.redaction.search import STRING
from gateway.recording.redaction.streams import EventTemplate, Stream, find_strings, make_template, parse_event

pytestmark = pytest.mark.usefixtures("both_searches")

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
#: One text, two, beside one that is no piece, a tool's call, a response, a number that is a text, the same text twice.
EVENTS = st.sampled_from([
    lambda text, _: {"id": "level", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]},
    lambda text, other: {"choices": [{"index": 0, "delta": {"role": other, "content": text}}]},
    lambda text, other: {"choices": [{"index": 1, "delta": {"content": text}}], "obfuscation": other},
    lambda text, _: {"choices": [{"delta": {"tool_calls": [{"index": 2, "function": {"arguments": text}}]}}]},
    lambda text, other: {"type": other, "output_index": 0, "delta": text, "sequence_number": len(text)},
    lambda text, _: {"choices": [{"index": text}]},
    lambda text, _: {"content": text, "choices": [{"index": 0, "delta": {"content": "level"}}]},
])  # fmt: skip


def chunk(text: str, id_: str = "level-1", **more: str) -> bytes:
    return json.dumps({"id": id_, "choices": [{"index": 0, "delta": {"content": text}}], **more}).encode()


def moulds_of(payload: bytes) -> list[EventTemplate]:
    event = parse_event(payload)
    (found,) = find_strings(event)
    return make_template(payload, event, found)


def test_a_mould_reads_what_differs_in_its_string_alone() -> None:
    (template,) = moulds_of(chunk(" hangs"))
    assert template.parse(chunk('a "plumb"\nline, ☂')) == ['a "plumb"\nline, ☂']
    assert template.parse(chunk(" hangs", "level-2")) is None
    assert template.parse(chunk(" hangs").replace(b" hangs", b'", "role": "')) is None
    assert template.parse(b"") is None


def test_padding_may_differ_as_well() -> None:
    (template,) = moulds_of(chunk(" hangs", obfuscation="x7"))
    assert template.parse(chunk(" still", obfuscation="")) == [" still", ""]
    assert template.parse(chunk(" still", id_="x7", obfuscation="x7")) is None
    assert template.parse(chunk(" still")) is None
    assert template.parse(chunk(" still", obfuscation="x", more="x")) is None


def test_there_is_no_mould_around_a_string_that_stands_twice() -> None:
    assert moulds_of(chunk("level-1")) == []
    assert moulds_of(chunk("hangs", obfuscation="obfuscation")) == []


@given(st.lists(st.tuples(EVENTS, TEXTS, TEXTS), max_size=12), st.booleans(), st.sampled_from(["\n", "\r\n"]))
@example([(lambda text, _: {"choices": [{"delta": {"content": text}}]}, text, "") for text in "ab"], True, "\n")
@settings(deadline=None)
def test_a_streams_pieces_are_those_of_its_events_one_by_one(
    events: list[tuple[Any, str, str]],
    ascii_only: bool,
    end: str,
) -> None:
    payloads = [json.dumps(event(text, other), ensure_ascii=ascii_only).encode() for event, text, other in events]
    stream = Stream(b"".join(b"data: " + payload + end.encode() * 2 for payload in payloads))
    pieces = [(channel, *piece) for channel, pieces in stream.channels.items() for piece in pieces]
    alone = [
        (*found[:1], number, *found[1:])
        for number, each in enumerate(payloads)
        for found in find_strings(parse_event(each))
    ]
    assert sorted(pieces) == sorted(alone)
    for channel, text in stream.texts().items():
        assert text == "".join(piece.text for piece in stream.channels[channel])
        assert text.encode() in stream.searchable_text()


@given(st.lists(st.tuples(EVENTS, TEXTS, TEXTS), min_size=1, max_size=12))
@settings(deadline=None)
def test_nothing_that_a_stream_says_is_left_untold(events: list[tuple[Any, str, str]]) -> None:
    payloads = [json.dumps(event(text, other), ensure_ascii=False).encode() for event, text, other in events]
    told = Stream(b"".join(b"data: " + payload + b"\n\n" for payload in payloads)).searchable_text()
    for string in (string[1] for payload in payloads for string in STRING.finditer(payload.decode())):
        assert "\\" in string or string.encode() in told
