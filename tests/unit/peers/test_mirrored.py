"""Which of clients' prompts may be mirrored, and what of a request goes to a peer."""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.peers.mirror import MirrorRefusal, mirror_of
from auditor.store.mirroring import Prompt

USER = {"role": "user", "content": "Why is the sky blue?"}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {}}}
CALL = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


def prompt(body: Any, /, **changed: Any) -> Prompt:
    usual = {
        "id": UUID(int=1), "deployment": "d", "endpoint": "chat/completions", "captured": True, "truncated": False,
        "redacted": False, "prompt_tokens": 5, "completion_tokens": 7,
        "request": body if isinstance(body, bytes) else json.dumps(body).encode(),
    }  # fmt: skip
    return Prompt(**(usual | changed))


def asked(*messages: Any, **members: Any) -> dict[str, Any]:
    return {"model": "gpt", "messages": list(messages or (USER,)), **members}


def test_messages_and_the_manner_of_answering_go_along() -> None:
    manner = {"temperature": 0.2, "top_p": 0.9, "max_tokens": 50, "stop": ["\n"], "seed": 3, "tools": []}
    parts = {
        "role": "user",
        "content": [{"type": "text", "text": "And"}, {"type": "text", "text": "why?"}],
        "name": "x",
    }
    messages = [{"role": "system", "content": "Be brief."}, USER, {"role": "assistant", "content": "Light."}, parts]
    found = mirror_of(prompt(asked(*messages, **manner)))
    assert found == {"messages": messages, **{name: manner[name] for name in manner if name != "tools"}}


def test_who_asked_and_how_the_answer_is_delivered_stay_behind() -> None:
    delivery = {"stream": True, "stream_options": {"include_usage": True}, "n": 3, "logprobs": True, "store": True}
    asker = {"user": "u-1", "metadata": {"tenant": "t"}, "safety_identifier": "s", "prompt_cache_key": "k"}
    assert mirror_of(prompt(asked(**delivery, **asker))) == {"messages": [USER]}


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (asked(tools=[TOOL]), MirrorRefusal.TOOLS),
        (asked(functions=[{"name": "f"}]), MirrorRefusal.TOOLS),
        (asked(web_search_options={"search_context_size": "low"}), MirrorRefusal.TOOLS),
        (asked(USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}), MirrorRefusal.TOOLS),
        (asked(USER, {"role": "tool", "tool_call_id": "c", "content": "42"}), MirrorRefusal.TOOLS),
        (asked({"role": "function", "name": "f", "content": "42"}), MirrorRefusal.TOOLS),
        (
            asked({"role": "user", "content": [{"type": "text", "text": "What is it?"}, PICTURE]}),
            MirrorRefusal.NOT_TEXT,
        ),
        (asked({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}), MirrorRefusal.NOT_TEXT),
        (asked({"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}), MirrorRefusal.NOT_TEXT),
        (asked({"role": "user", "content": []}), MirrorRefusal.NOT_TEXT),
        (asked({"role": "user", "content": None}), MirrorRefusal.NOT_TEXT),
        (asked({"role": "user"}), MirrorRefusal.NOT_TEXT),
        (asked(modalities=["text", "audio"]), MirrorRefusal.NOT_TEXT),
        (asked(modalities=5), MirrorRefusal.NOT_TEXT),
        (asked(audio={"voice": "alloy"}), MirrorRefusal.NOT_TEXT),
        (asked({"role": ["user"], "content": "hello"}), MirrorRefusal.TOOLS),
        ({"model": "gpt", "messages": []}, MirrorRefusal.UNREADABLE),
        ({"model": "gpt", "messages": ["hello"]}, MirrorRefusal.UNREADABLE),
        ({"model": "gpt", "prompt": "hello"}, MirrorRefusal.UNREADABLE),
        ([1, 2], MirrorRefusal.UNREADABLE),
        (b"\x1f\x8b not JSON", MirrorRefusal.UNREADABLE),
        (b"", MirrorRefusal.UNREADABLE),
    ],
)
def test_only_words_that_can_be_read_go_to_a_peer(request_: Any, why: MirrorRefusal) -> None:
    assert mirror_of(prompt(request_)) is why


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"captured": False, "request": None}, MirrorRefusal.NOT_CAPTURED),
        ({"request": None}, MirrorRefusal.NOT_CAPTURED),
        ({"redacted": True}, MirrorRefusal.REDACTED),
        ({"truncated": True}, MirrorRefusal.TRUNCATED),
        ({"endpoint": "responses"}, MirrorRefusal.NOT_A_CHAT),
        ({"endpoint": "embeddings"}, MirrorRefusal.NOT_A_CHAT),
    ],
)
def test_what_is_not_whole_stays(changed: dict[str, Any], why: MirrorRefusal) -> None:
    assert isinstance(mirror_of(prompt(asked())), dict)
    assert mirror_of(prompt(asked(), **changed)) is why


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["user", "text", "tool"]),
    lambda some: st.lists(some, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "role"]), some),
    max_leaves=4,
)
MEMBERS = ("tools", "functions", "tool_calls", "modalities", "audio", "web_search_options", "role", "content")


@given(st.dictionaries(st.sampled_from(MEMBERS), JSON), st.dictionaries(st.sampled_from(MEMBERS), JSON))
def test_whatever_a_client_sends_stays_or_goes_and_stops_nobody(request_: Any, message: Any) -> None:
    found = mirror_of(prompt(asked(USER, USER | message, **request_)))
    assert isinstance(found, MirrorRefusal) or found["messages"] == [USER, USER | message]
