"""How streams end: each endpoint's own way, and what a client reads when the deployment breaks off."""

import json

import pytest

from gateway.exchange.sse import DONE, LAST_RESPONSE, EventSplitter, StreamTerminator, payloads
from gateway.wire import read_answer


def response_event(kind: str, *, named: bool = True, spaced: bool = True) -> bytes:
    separators = (", ", ": ") if spaced else (",", ":")
    data = json.dumps({"type": kind, "response": {"status": kind.rpartition(".")[2]}}, separators=separators)
    return (f"event: {kind}\n" if named else "").encode() + b"data: " + data.encode() + b"\n\n"


DELTA = response_event("response.output_text.delta")


@pytest.mark.parametrize("kind", ["response.completed", "response.failed", "response.incomplete"])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("spaced", [True, False])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_last_response_event_is_found_where_it_begins(kind: str, named: bool, spaced: bool, end: bytes) -> None:
    last = response_event(kind, named=named, spaced=spaced).replace(b"\n", end)
    before = (DELTA * 3).replace(b"\n", end)
    assert LAST_RESPONSE.find(before + last) == len(before)
    assert LAST_RESPONSE.find(last + before) == 0


@pytest.mark.parametrize(
    "last",
    [
        b'event: error\ndata: {"type":"error","code":"server_error","message":"no","param":null}\n\n',
        b'event:error\ndata: {"message":"no"}\n\n',
        b'data: {"type": "error", "message": "no"}\n\n',
        b'data:{ "type":"error"}\n\n',
        LAST_RESPONSE.broken("it broke", "upstream_cut"),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_error_event_is_the_last_of_a_responses_stream(last: bytes, end: bytes) -> None:
    before = (DELTA * 3).replace(b"\n", end)
    assert LAST_RESPONSE.find(before + last.replace(b"\n", end)) == len(before)


@pytest.mark.parametrize(
    "events",
    [
        b"",
        DELTA,
        b"event: error_count\n\n",
        b"event: errors\n\n",
        b"event: error.detail\n\n",
        b'data: {"type":"error_detail"}\n\n',
        b'data: {"error":null,"type":"response.output_text.delta"}\n\n',
        b'data: {"type":"response.output_text.delta","delta":"{\\"type\\":\\"error\\"}"}\n\n',
        b": event: error\n\n",
        response_event("response.completed.early"),
        response_event("response.created"),
        response_event("response.in_progress"),
        response_event("response.output_item.done"),
        response_event("response.completed_later"),
        b'data: {"type":"response.output_text.delta","delta":"event: response.completed"}\n\n',
        b'data: {"type":"x","delta":"\\ndata: {\\"type\\":\\"response.completed\\"}"}\n\n',
        b": event: response.completed\n\n",
        b"data: [DONE]\n\n",
    ],
)
def test_what_is_not_the_last_response_event(events: bytes) -> None:
    assert LAST_RESPONSE.find(events) == -1


def test_the_terminator_of_chat_is_none_of_responses_and_the_reverse() -> None:
    assert DONE.find(response_event("response.completed")) == -1
    assert DONE.find(b"data: [DONE]\n\n") == 0


def test_a_broken_chat_stream_ends_with_an_error_and_the_terminator() -> None:
    error, done = payloads(DONE.broken('it "broke"\nhere', "upstream_cut"))
    assert json.loads(error) == {
        "error": {"message": 'it "broke"\nhere', "type": "api_error", "param": None, "code": "upstream_cut"}
    }
    assert done == b"[DONE]"
    assert DONE.find(DONE.broken("x", "y")) > 0


def test_a_broken_responses_stream_ends_with_an_error_event() -> None:
    text = LAST_RESPONSE.broken('it "broke"\nhere', "upstream_cut")
    assert text.startswith(b"event: error\n")
    (error,) = payloads(text)
    told = json.loads(error)
    assert (told["type"], told["code"], told["message"]) == ("error", "upstream_cut", 'it "broke"\nhere')


@pytest.mark.parametrize("ending", [DONE, LAST_RESPONSE])
def test_what_is_written_is_whole_events(ending: StreamTerminator) -> None:
    assert ending.broken("x", "y").endswith(b"\n\n")


def test_a_long_last_response_is_held_whole_so_that_its_usage_can_be_read() -> None:
    response = {"status": "completed", "text": "x" * (3 << 20), "usage": {"input_tokens": 3, "output_tokens": 4}}
    last = b"event: response.completed\ndata: " + json.dumps({"response": response}).encode() + b"\n\n"
    splitter = EventSplitter(find_last=LAST_RESPONSE.find)
    given = [
        events for start in range(0, len(last), 1 << 16) if (events := splitter.feed(last[start : start + (1 << 16)]))
    ]
    assert given == [last]
    (payload,) = payloads(last)
    answer = read_answer(payload)
    assert answer is not None
    assert answer.response is not None
    assert answer.response.usage is not None
    assert answer.response.usage.completion == 4


@pytest.mark.parametrize("kind", ["response.completed", "response.failed", "response.incomplete", "error"])
def test_the_last_event_is_known_wherever_its_type_stands(kind: str) -> None:
    delta = b'data: {"delta":"\\"type\\":\\"response.completed\\"","type":"response.output_text.delta"}\n\n'
    last = b'data: {"response":{"id":"r","output":[]},"type":"' + kind.encode() + b'"}\n\n'
    assert LAST_RESPONSE.find(delta + last) == len(delta)
    assert LAST_RESPONSE.find(delta) == -1
    assert LAST_RESPONSE.find(b'data: {"x":{"type":"' + kind.encode() + b'"},"type":"other"}\n\n') == -1
