"""Canaries that arrive piece by piece: the copy stays the same stream, and put together it says what may be kept."""

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.stores.exchanges import exchange

from gateway.exchange.sse import payloads
from gateway.recording.redaction import Redactor

pytestmark = pytest.mark.usefixtures("both_searches")

REDACTOR = Redactor(("keys", "email", "phone", "card"))
CANARIES = {
    "sk-proj-Zq3vT8xLmN4pR7wK2yB9": "[key]",
    "mira.canary@example.com": "[email]",
    "+49 151 23456789": "[phone]",
    "4111 1111 1111 1111": "[card]",
}
AROUND = st.text(st.sampled_from("abcxyzé€😀\u2028 .,;!?\n\t\"'\\{}[]"), max_size=30)


def chat(**delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "choices": [choice]}


def response(kind: str, delta: str) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "item_id": "msg_0", "output_index": 0, "content_index": 0, "delta": delta}


#: How an endpoint writes a piece of text, and where it is read from.
PLACES: dict[str, tuple[Callable[[str], dict[str, Any]], Callable[[dict[str, Any]], str]]] = {
    "content": (lambda text: chat(content=text), lambda event: event["choices"][0]["delta"]["content"]),
    "reasoning": (
        lambda text: chat(content=None, reasoning_content=text),
        lambda event: event["choices"][0]["delta"]["reasoning_content"],
    ),
    "refusal": (lambda text: chat(refusal=text), lambda event: event["choices"][0]["delta"]["refusal"]),
    "arguments": (
        lambda text: chat(tool_calls=[{"index": 1, "function": {"arguments": text}}]),
        lambda event: event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"],
    ),
    "text": (
        lambda text: {"object": "text_completion", "choices": [{"index": 0, "text": text}]},
        lambda event: event["choices"][0]["text"],
    ),
    "output text": (lambda text: response("output_text", text), lambda event: event["delta"]),
    "function arguments": (lambda text: response("function_call_arguments", text), lambda event: event["delta"]),
}


@st.composite
def pieces(draw: st.DrawFn, text: str) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[low:high] for low, high in pairwise([0, *cuts, len(text)])]


def written(event: dict[str, Any], end: str, indent: int | None, ascii_only: bool) -> bytes:
    """Write one event; with an indentation its data stand on many lines."""
    lines = json.dumps(event, indent=indent, ensure_ascii=ascii_only).split("\n")
    return ("".join(f"data: {line}{end}" for line in lines) + end).encode()


def kept(stream: bytes, **changed: Any) -> bytes:
    copy = REDACTOR.redact(exchange(stream=True, response=stream, **changed))
    assert copy.response is not None
    assert copy.redacted == (copy.response != stream)
    return copy.response


def events(stream: bytes) -> list[Any]:
    return [json.loads(payload) for payload in payloads(stream) if payload != b"[DONE]"]


#: How events are written: line ends, indentation, whether beyond ASCII is escaped.
STYLES = st.tuples(st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from([None, 1]), st.booleans())


@given(st.data(), st.sampled_from(list(CANARIES)), AROUND, AROUND, st.sampled_from(list(PLACES)), STYLES)
@settings(max_examples=300, deadline=None)
def test_a_canary_cut_anywhere_is_taken_out_and_nothing_else(
    data: st.DataObject, canary: str, before: str, after: str, place: str, style: tuple[str, int | None, bool]
) -> None:
    write, read = PLACES[place]
    parts = data.draw(pieces(f"{before} {canary} {after}"))
    stream = b"".join(written(write(part), *style) for part in parts) + b"data: [DONE]" + 2 * style[0].encode()
    copy = kept(stream)
    found = events(copy)
    assert len(found) == len(parts)
    assert "".join(map(read, found)) == f"{before} {CANARIES[canary]} {after}"
    for event, part in zip(found, parts, strict=True):
        assert write(read(event)) == write("") | event
        if read(event) == part:
            assert written(write(part), *style) in copy
    assert canary.encode() not in copy


@given(st.data(), AROUND)
@settings(max_examples=50, deadline=None)
def test_choices_and_tool_calls_are_read_apart(data: st.DataObject, around: str) -> None:
    """Each has a part of its own canary while the other goes on."""
    email, key = "mira.canary@example.com", "sk-proj-Zq3vT8xLmN4pR7wK2yB9"

    def event(index: int, text: str, call: int) -> dict[str, Any]:
        delta = {"content": text, "tool_calls": [{"index": call, "function": {"arguments": text}}]}
        return {"choices": [{"index": index, "delta": delta}]}

    first, second = data.draw(pieces(f"{around} {email} ")), data.draw(pieces(f"{around} {key} "))
    longest = max(len(first), len(second))
    rows = [
        event(index, texts[at], call)
        for at in range(longest)
        for index, texts, call in ((0, first, 3), (1, second, 0))
        if at < len(texts)
    ]
    copy = kept(b"".join(written(row, "\n", None, True) for row in rows))
    joined = {0: "", 1: ""}
    called = {3: "", 0: ""}
    for found in events(copy):
        (choice,) = found["choices"]
        joined[choice["index"]] += choice["delta"]["content"]
        (call,) = choice["delta"]["tool_calls"]
        called[call["index"]] += call["function"]["arguments"]
    assert joined == {0: f"{around} [email] ", 1: f"{around} [key] "}
    assert called == {3: f"{around} [email] ", 0: f"{around} [key] "}


def joined_content(stream: bytes) -> str:
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events(stream))


def chat_stream(texts: Sequence[str]) -> bytes:
    return b"".join(written(chat(content=text), "\n", None, False) for text in texts)


def test_what_the_arguments_of_a_tool_escape_is_read_across_pieces() -> None:
    arguments = json.dumps({"to": "mira.canary@example.com", "body": "line\nsk-proj-Zq3vT8xLmN4pR7wK2yB9"})
    escaped = arguments.replace("@", "\\u0040")
    copy = kept(b"".join(written(PLACES["arguments"][0](letter), "\n", None, True) for letter in escaped))
    told = "".join(map(PLACES["arguments"][1], events(copy)))
    assert json.loads(told) == {"to": "[email]", "body": "line\n[key]"}


@given(st.integers(0, 700))
@settings(deadline=None)
def test_the_torn_end_of_a_copy_is_put_together_with_what_came_before(length: int) -> None:
    """However much of the last piece there is: as soon as the address could be read, it is gone."""
    torn = kept(chat_stream(["Write to mira.can", "ary@exa", "mple.com now"])[:length], truncated=True)
    strings = [text for _, text in re.findall(rb'"(content)": "([^"]*)', torn)]
    assert b"canary@example.co" not in b"".join(strings)


def test_a_response_that_repeats_its_text_is_redacted_everywhere() -> None:
    done = {"type": "response.completed", "response": {"output": [{"text": "mail mira.canary@example.com"}]}}
    stream = b"".join(
        b"event: " + event["type"].encode() + b"\n" + written(event, "\n", None, False)
        for event in (response("output_text", "mail mira.can"), response("output_text", "ary@example.com"), done)
    )
    first, second, last = events(kept(stream))
    assert (first["delta"], second["delta"]) == ("mail [email]", "")
    assert last["response"]["output"][0]["text"] == "mail [email]"


def test_what_is_no_event_is_read_as_text() -> None:
    stream = b": mira.canary@example.com\n\ndata: 4111 1111 1111 1111, not JSON\n\nevent: +49 151 23456789\n\n"
    assert kept(stream) == b": [email]\n\ndata: [card], not JSON\n\nevent: [phone]\n\n"


def test_log_probabilities_go_where_they_spell_what_was_taken_out() -> None:
    def event(text: str) -> dict[str, Any]:
        spelled = {"content": [{"token": text, "logprob": -0.1, "bytes": [*text.encode()], "top_logprobs": []}]}
        return {"choices": [{"index": 0, "delta": {"content": text}, "logprobs": spelled}]}

    harmless = b"".join(written(event(text), "\n", None, False) for text in ("Level", " [ground]", ' "{"'))
    assert kept(harmless) == harmless
    copy = kept(harmless + b"".join(written(event(text), "\n", None, False) for text in (" mira.can", "ary@a.com")))
    assert joined_content(copy) == 'Level [ground] "{" [email]'
    assert [found["choices"][0]["logprobs"] for found in events(copy)] == [None] * 5


def test_an_error_that_came_in_place_of_a_stream_is_read_as_json() -> None:
    assert kept(b'{"error": {"message": "no mira.canary@example.com"}}') == b'{"error": {"message": "no [email]"}}'


@given(st.binary(max_size=200), st.lists(st.sampled_from([
    b'data: {"choices":[{"index":[],"delta":{"content":"', b'"}}]}', b"\n\n", b"data: ", b"\r", b'{"delta":', b"[",
    b"\\u0040", b"\\ud83d", b"a@b.com", b"\xff", b'"', b"\\", b'"logprobs":[', b"4111111111111111", b"{}", b"1",
])))  # fmt: skip
@example(b"", [b'data: {"choices":[[[{"index":{}}]],7,null,"x"],"delta":[1,{"index":[2],"a":"b"}]}\n\n'])
@example(b"", [b"data: " + b"[" * 5000 + b"\n\n"])
@example(b"", [b'data: {"choices":' + b"[" * 900 + b'"a@b.com"' + b"]" * 900 + b"}\n\n"])
@settings(deadline=None)
def test_nothing_is_too_strange_to_be_read(noise: bytes, parts: list[bytes]) -> None:
    for content in (noise + b"".join(parts), b"".join(parts) + noise):
        kept(content)
        REDACTOR.redact(exchange(response=content, request=content))
