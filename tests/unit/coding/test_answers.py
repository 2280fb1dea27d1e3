"""The text of stored answers: bodies and streams of the endpoints, and what is none of them."""

import json

import pytest

from auditor.coding.answers import UnreadableAnswer, read_answer


def stream(*events: object, end: str = "\n\n") -> bytes:
    lines = [f"data: {one if isinstance(one, str) else json.dumps(one)}" for one in events]
    return (end.join(lines) + end).encode()


def delta(content: object, finish: str | None = None, index: int = 0) -> dict[str, object]:
    return {"choices": [{"index": index, "delta": {"content": content}, "finish_reason": finish}]}


def test_a_chat_completion() -> None:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}]}
    answer = read_answer("chat/completions", json.dumps(body).encode(), stream=False)
    assert (answer.text, answer.finish_reason, answer.error) == ("Yes.", "stop", None)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None, "refusal": "I can't help with that."}, "I can't help with that."),
        ({"content": [{"type": "text", "text": "A "}, {"type": "text", "text": "B"}]}, "A B"),
        ({"content": None, "tool_calls": [{"id": "t"}]}, ""),
        ({"content": ""}, ""),
    ],
)
def test_messages_of_other_shapes(message: dict[str, object], text: str) -> None:
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    assert read_answer("chat/completions", json.dumps(body).encode(), stream=False).text == text


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
def test_a_stream_is_put_together(end: str) -> None:
    body = stream(
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        delta("Ye"),
        delta("other choice", index=1),
        delta("s\n\n."),
        delta(None, "stop"),
        {"choices": [], "usage": {"total_tokens": 3}},
        "[DONE]",
        end=end,
    )
    answer = read_answer("chat/completions", b": ping" + end.encode() + body, stream=True)
    assert (answer.text, answer.finish_reason) == ("Yes\n\n.", "stop")


def test_a_stream_that_stops_in_an_event_gives_what_there_was() -> None:
    body = stream(delta("Hal"), delta("f"))[:-20]
    answer = read_answer("chat/completions", body, stream=True)
    assert (answer.text, answer.finish_reason) == ("Hal", None)


def test_completions() -> None:
    body = {"choices": [{"index": 0, "text": "No.", "finish_reason": "length"}]}
    answer = read_answer("completions", json.dumps(body).encode(), stream=False)
    assert (answer.text, answer.finish_reason) == ("No.", "length")
    assert read_answer("completions", stream(body, "[DONE]"), stream=True).text == "No."


RESPONSE = {
    "status": "completed",
    "output": [
        {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hidden"}]},
        {
            "type": "message",
            "content": [{"type": "output_text", "text": "Yes, "}, {"type": "refusal", "refusal": "no."}],
        },
    ],
}


def test_responses() -> None:
    answer = read_answer("responses", json.dumps(RESPONSE).encode(), stream=False)
    assert (answer.text, answer.finish_reason) == ("Yes, no.", "stop")
    cut = RESPONSE | {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    assert read_answer("responses", json.dumps(cut).encode(), stream=False).finish_reason == "content_filter"


def test_streamed_responses() -> None:
    pieces = [{"type": "response.output_text.delta", "delta": piece} for piece in ("Ye", "s")]
    assert read_answer("responses", stream(*pieces), stream=True).text == "Yes"
    whole = {"type": "response.completed", "response": RESPONSE}
    assert read_answer("responses", stream(*pieces, whole), stream=True).text == "Yes, no."


@pytest.mark.parametrize(
    ("endpoint", "body", "streamed"),
    [
        ("embeddings", b'{"data": []}', False),
        ("chat/completions", b"", False),
        ("chat/completions", b"[]", False),
        ("chat/completions", b'{"choices": []}', False),
        ("chat/completions", b'{"error": {"message": "no"}}', False),
        ("chat/completions", b'{"choices": [{"index": 0, "mess', False),
        ("chat/completions", b"\xff\xfe", False),
        ("chat/completions", b"", True),
        ("chat/completions", b"data: [DONE]\n\n", True),
        ("responses", b"{}", False),
        ("responses", b"data: {}\n\n", True),
    ],
)
def test_what_is_no_answer(endpoint: str, body: bytes, streamed: bool) -> None:
    with pytest.raises(UnreadableAnswer):
        read_answer(endpoint, body, stream=streamed)
