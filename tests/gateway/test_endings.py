"""How streams end: each endpoint's own way, and what a client reads when the deployment breaks off."""

import json

import pytest

from gateway.endings import DONE, LAST_RESPONSE, Ending
from gateway.sse import payloads


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
    "events",
    [
        b"",
        DELTA,
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
def test_what_is_written_is_whole_events(ending: Ending) -> None:
    assert ending.broken("x", "y").endswith(b"\n\n")
