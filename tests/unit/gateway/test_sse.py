"""The splitter against every kind of line end, cut anywhere; the terminator against what only looks like it."""

import re
import sys
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.exchange.sse import HOLD_LIMIT, EventSplitter, event_spans, find_done, payloads

LINE_ENDS = (b"\n", b"\r\n", b"\r")
_LINE_END = re.compile(rb"\r\n|\n|\r")

#: Text that looks like parts of the protocol, or is none of it.
FRAGMENTS = st.sampled_from(
    [
        b"data: [DONE]",
        b"[DONE]",
        b"data:",
        b": ping",
        b"id: 1",
        b'{"a":"\\n\\n"}',
        b" ",
        b"",
        b"\xc3\xa9",
        b"\xe2\x82\xac",
    ]
)
TEXT = st.one_of(
    FRAGMENTS, st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=30).map(str.encode)
)
LINE = st.tuples(st.sampled_from([b"data: ", b"data:", b": ", b"event: ", b""]), TEXT).map(b"".join)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Whole events, then perhaps half of one; the line ends are of one kind, or mixed."""
    ends = st.sampled_from(LINE_ENDS) if draw(st.booleans()) else st.just(draw(st.sampled_from(LINE_ENDS)))
    events = draw(st.lists(st.lists(LINE.filter(bool), min_size=1, max_size=4), max_size=6))
    text = b"".join(b"".join(line + draw(ends) for line in event) + draw(ends) for event in events)
    return text + draw(TEXT)


@st.composite
def cut_streams(draw: st.DrawFn) -> list[bytes]:
    """A stream in pieces."""
    stream = draw(streams())
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    return [stream[low:high] for low, high in pairwise([0, *cuts, len(stream)])]


def boundaries(stream: bytes) -> list[int]:
    """Where events end, found the slow way: line by line, as the standard tells it."""
    found = []
    line_began = 0
    for match in _LINE_END.finditer(stream):
        if match.start() == line_began:
            found.append(match.end())
        line_began = match.end()
    return found


@given(streams())
@example(b"\n\n\n\ndata: 1\r\r\n\n\rdata: 2\n\r\n\r\r\r\n")
def test_events_end_with_two_line_ends(stream: bytes) -> None:
    ends = [match.end() for match in re.finditer(rb"(?:\r\n|\n|\r(?!\n)){2}", stream)]
    assert list(event_spans(stream)) == list(pairwise([0, *ends]))


@given(cut_streams())
@example([b"data: 1\r", b"\r", b"\ndata: 2\r\n\r\n"])
@example([b"data: 1\n\r", b"\n", b"x"])
@example([b"data: 1\r\r", b"data: 2\r\r"])
@example([b"data: 1\r\n\r", b"data: 2\n\n"])
def test_nothing_is_lost_added_or_moved(pieces: list[bytes]) -> None:
    splitter = EventSplitter()
    given_back = b"".join(splitter.feed(piece) for piece in pieces)
    assert given_back + splitter.rest() == b"".join(pieces)
    assert splitter.rest() == b""


@given(cut_streams())
@example([b"data: 1\r", b"\r", b"\ndata: 2\r\n\r\n"])
@example([b"data: 1\n\r", b"data: 2"])
@example([b"a\n\r\nb\r\r", b"\n", b"\n"])
def test_what_is_given_back_ends_where_an_event_ends(pieces: list[bytes]) -> None:
    ends = {0, *boundaries(b"".join(pieces))}
    splitter, seen, passed = EventSplitter(), b"", 0
    for piece in pieces:
        seen += piece
        passed += len(splitter.feed(piece))
        # A CR at the very end may be the first half of a CRLF; the event is over either way, and is not held back.
        assert passed in ends | set(boundaries(seen))
        # Nothing that has ended is held; empty lines behind an event are part of none.
        assert not boundaries(seen[passed:].lstrip(b"\r\n"))


@given(cut_streams())
def test_the_same_events_are_found_whatever_the_cuts(pieces: list[bytes]) -> None:
    splitter = EventSplitter()
    found = [payload for piece in pieces for payload in payloads(splitter.feed(piece))]
    found += payloads(splitter.rest())
    assert found == list(payloads(b"".join(pieces)))


@pytest.mark.parametrize("blank", [b"\n", b"\n\n\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("cut", range(13))
def test_blank_lines_behind_an_event_are_not_held(cut: int, blank: bytes) -> None:
    stream, splitter = b"data: x\n\n" + blank, EventSplitter()
    assert splitter.feed(stream[:cut]) + splitter.feed(stream[cut:]) == stream
    assert splitter.is_between_events


@given(cut_streams(), st.integers(3, 40))
def test_an_event_beyond_the_hold_limit_is_passed_on_in_pieces(pieces: list[bytes], limit: int) -> None:
    splitter = EventSplitter(hold_limit=limit)
    given_back = []
    for piece in pieces:
        given_back.append(splitter.feed(piece))
        assert len(splitter._held) <= limit + len(piece)
    assert b"".join(given_back) + splitter.rest() == b"".join(pieces)


def find_z(events: bytes) -> int:
    return events.find(b"data: z")


@pytest.mark.parametrize(("length", "held"), [(1, True), (20, True), (46, True), (47, False), (300, False)])
def test_the_last_event_is_held_up_to_its_own_limit(length: int, held: bool) -> None:
    splitter = EventSplitter(hold_limit=20, find_last=find_z, last_limit=60)
    last = b"id: 1\ndata: z" + b"x" * length + b"\n\n"
    given_back = [splitter.feed(bytes([byte])) for byte in b"data: 1\n\n" + last]
    assert b"".join(given_back) == b"data: 1\n\n" + last
    assert (last in given_back) is held
    assert max(map(len, given_back)) <= 62


def test_another_event_of_that_length_is_not_held() -> None:
    splitter = EventSplitter(hold_limit=20, find_last=find_z, last_limit=60)
    assert splitter.feed(b"data: y" + b"x" * 20) == b"data: y" + b"x" * 17


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n"])
@pytest.mark.parametrize("behind", range(5))
def test_the_end_of_a_long_event_is_passed_on_when_it_comes(end: bytes, behind: int) -> None:
    """The blank line may begin in the piece that was let go for its length; the client must not wait for the next."""
    splitter = EventSplitter(hold_limit=16)
    stream = b"data: " + b"x" * 40 + end
    cut = len(stream) - min(behind, len(end))
    passed = splitter.feed(stream[:cut]) + splitter.feed(stream[cut:])
    assert passed == stream


def test_utf8_and_json_split_between_bytes_arrive_in_whole_events() -> None:
    stream = 'data: {"t":"é€😀"}\n\ndata: {"t":"ß"}\n\n'.encode()
    splitter = EventSplitter()
    given_back = [events for byte in stream if (events := splitter.feed(bytes([byte])))]
    assert [events.decode() for events in given_back] == ['data: {"t":"é€😀"}\n\n', 'data: {"t":"ß"}\n\n']


@pytest.mark.parametrize("size", [1, 1024])
def test_work_grows_with_the_bytes_and_not_with_their_square(size: int) -> None:
    """A 1 MiB event in small pieces: Python-level work is counted, and no piece may cost a copy of what is held."""
    splitter = EventSplitter()
    stream = b"data: " + b"x" * (HOLD_LIMIT - 100)
    splitter.feed(stream[:-4096])
    grown = sys.getsizeof(splitter._held)
    held = splitter._held
    for start in range(len(stream) - 4096, len(stream), size):
        assert splitter.feed(stream[start : start + size]) == b""
        # The same buffer, extended in place: a new one for each piece would be the quadratic behaviour.
        assert splitter._held is held
    assert sys.getsizeof(splitter._held) < grown * 2
    assert splitter.feed(b"\n\n") == stream + b"\n\n"


def test_a_long_event_in_single_bytes_takes_a_moment(thorough: bool) -> None:
    splitter = EventSplitter()
    length = HOLD_LIMIT if thorough else HOLD_LIMIT // 5
    for _ in range(length):
        splitter.feed(b"x")
    assert splitter.rest() == b"x" * length


@pytest.mark.parametrize(
    "terminator",
    [
        b"data: [DONE]\n\n",
        b"data:[DONE]\n\n",
        b"data: [DONE]\r\n\r\n",
        b"data: [DONE]\r\r",
        b"data: [DONE] \t\n\n",
        b"data: [DONE]",
        b"data: [DONE]\n",
        b"id: 7\ndata: [DONE]\n\n",
        b"data: [DONE]\nid: 7\n\n",
        b": a comment\ndata: [DONE]\n\n",
    ],
)
@pytest.mark.parametrize("before", [b"", b'data: {"a":"data: [DONE]"}\n\n', b"data: 1\r\rdata: [DONE]x\r\r"])
@pytest.mark.parametrize("behind", [b"", b"data: after\n\n"])
def test_the_terminator_is_found(before: bytes, terminator: bytes, behind: bytes) -> None:
    if behind and not terminator.endswith((b"\n\n", b"\r\r", b"\r\n\r\n")):
        return
    at = find_done(before + terminator + behind)
    assert (before + terminator)[at:].startswith(b"data:")
    assert at == (before + terminator).rindex(b"data:")


@pytest.mark.parametrize(
    "stream",
    [
        b'data: {"content":"[DONE]"}\n\n',
        b'data: {"content":"data: [DONE]"}\n\n',
        b"data: [DONE]x\n\n",
        b"data: x[DONE]\n\n",
        b"data: [DONE] x\n\n",
        b"data: [done]\n\n",
        b"data:  [DONE]\n\n",
        b" data: [DONE]\n\n",
        b": data: [DONE]\n\n",
        b"event: data: [DONE]\n\n",
        b"xdata: [DONE]\n\n",
        b"data: one\ndata: [DONE]\n\n",
        b"data\ndata: [DONE]\n\n",
        b"data: [DONE]\ndata: one\n\n",
        b"data: [DONE\n]\n\n",
        b"[DONE]\n\n",
        b"",
    ],
)
def test_what_only_looks_like_the_terminator_is_none(stream: bytes) -> None:
    assert find_done(stream) == -1


def test_a_false_terminator_does_not_hide_the_true_one() -> None:
    stream = b"data: one\ndata: [DONE]\n\ndata: [DONE]\n\n"
    assert find_done(stream) == stream.rindex(b"data:")


@given(cut_streams())
def test_a_stream_without_the_word_has_no_terminator(pieces: list[bytes]) -> None:
    stream = b"".join(pieces).replace(b"[DONE]", b"[GONE]")
    assert find_done(stream) == -1


@pytest.mark.parametrize("end", LINE_ENDS)
def test_payloads_leave_out_everything_but_data(end: bytes) -> None:
    lines = [b": c", b"event: e", b"data: 1", b"data:2", b"data:  3", b"", b"id: 9", b"", b"data", b"", b"data: last"]
    assert list(payloads(end.join(lines))) == [b"1\n2\n 3", b"", b"last"]


@given(streams())
def test_payloads_are_what_a_reader_of_the_standard_sees(stream: bytes) -> None:
    expected: list[bytes] = []
    data: list[bytes] = []
    for line in [*_LINE_END.split(stream), b""]:
        if line == b"" and data:
            expected.append(b"\n".join(data))
            data = []
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
    assert list(payloads(stream)) == expected
