"""An instruction goes into a request at one place, and every other byte stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.trials import CannotInstruct, instruct, json_text
from gateway.wire import read_envelope

CHAT, RESPONSES, COMPLETIONS = "chat/completions", "responses", "completions"
SYSTEM = '{"role":"system","content":"Be fair."},'
PART = '{"type":"text","text":"Be fair."}'


@pytest.mark.parametrize(
    ("endpoint", "kind", "before", "after"),
    [
        (CHAT, "role", '{"messages": [ {"role":"user","content":"Why?"} ],"model":"m"}',
         '{"messages": [' + SYSTEM + ' {"role":"user","content":"Why?"} ],"model":"m"}'),
        (CHAT, "role", '{"model":"m","messages":[{"content":"Own \\"words\\"","role":"system"},{"role":"user"}]}',
         '{"model":"m","messages":[{"content":"Be fair.\\n\\nOwn \\"words\\"","role":"system"},{"role":"user"}]}'),
        (CHAT, "role", '{"model":"m","messages":[{"role":"developer","content":[ {"type":"text","text":"x"}]}]}',
         '{"model":"m","messages":[{"role":"developer","content":[' + PART + ', {"type":"text","text":"x"}]}]}'),
        (CHAT, "role", '{"model":"m","messages":[{"role":"system","content":""}]}',
         '{"model":"m","messages":[{"role":"system","content":"Be fair."}]}'),
        (CHAT, "task", ('{"model":"m","messages":[{"role":"user","content":"First"},{"role":"assistant","content":"A"},'
         '{"role":"user","content":"Why \\u00e9?" }, {"role":"tool","content":"7"}],"n":1.0}'),
         ('{"model":"m","messages":[{"role":"user","content":"First"},{"role":"assistant","content":"A"},'
         '{"role":"user","content":"Why \\u00e9?\\n\\nBe fair." }, {"role":"tool","content":"7"}],"n":1.0}')),
        (CHAT, "task", '{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{}} ]}]}',
         '{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{}} ,' + PART + "]}]}"),
        (CHAT, "task", '{"model":"m","\\u006dessages":[{"r\\u006fle":"us\\u0065r","content":"a"}]}',
         '{"model":"m","\\u006dessages":[{"r\\u006fle":"us\\u0065r","content":"a\\n\\nBe fair."}]}'),
        (RESPONSES, "role", '{"model":"m","input":"Why?"}', '{"instructions":"Be fair.","model":"m","input":"Why?"}'),
        (RESPONSES, "role", '{"model":"m","instructions": null}', '{"model":"m","instructions": "Be fair."}'),
        (RESPONSES, "role", '{"model":"m","instructions":"Own"}', '{"model":"m","instructions":"Be fair.\\n\\nOwn"}'),
        (RESPONSES, "task", '{"model":"m","input":"Why?"}', '{"model":"m","input":"Why?\\n\\nBe fair."}'),
        (RESPONSES, "task",
         '{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"x"}]}',
         ('{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"a"},'
         '{"type":"input_text","text":"Be fair."}]},{"type":"x"}]}')),
        (COMPLETIONS, "role", '{"model":"m","prompt":"Once"}', '{"model":"m","prompt":"Be fair.\\n\\nOnce"}'),
        (COMPLETIONS, "task", '{"model":"m","prompt":"Once"}', '{"model":"m","prompt":"Once\\n\\nBe fair."}'),
    ],
)  # fmt: skip
def test_the_instruction_goes_in_and_every_other_byte_stays(endpoint: str, kind: Any, before: str, after: str) -> None:
    read_envelope(before.encode())
    assert instruct(endpoint, kind, json_text("Be fair."), before.encode()).decode() == after
    json.loads(after)


@pytest.mark.parametrize(
    ("endpoint", "kind", "body", "reason"),
    [
        (CHAT, "role", '{"model":"m"}', "no_messages"),
        (CHAT, "role", '{"model":"m","messages":[]}', "no_messages"),
        (CHAT, "task", '{"model":"m","messages":"text"}', "no_messages"),
        (CHAT, "task", '{"model":"m","messages":[],"messages":[]}', "two_messages"),
        (CHAT, "task", '{"model":"m","messages":[{"role":"assistant","content":"a"},7,"x"]}', "no_user_message"),
        (CHAT, "task", '{"model":"m","messages":[{"role":"user","role":"tool","content":"a"}]}', "no_user_message"),
        (CHAT, "task", '{"model":"m","messages":[{"role":["user"],"content":"a"}]}', "no_user_message"),
        (CHAT, "task", '{"model":"m","messages":[{"role":"user"}]}', "no_content"),
        (CHAT, "task", '{"model":"m","messages":[{"role":"user","content":"a","content":"b"}]}', "two_content"),
        (CHAT, "task", '{"model":"m","messages":[{"role":"user","content":null}]}', "no_text"),
        (CHAT, "task", '{"model":"m","messages":[{"role":"user","content":[ ]}]}', "no_text"),
        (CHAT, "role", '{"model":"m","messages":[{"role":"system","content":7}]}', "no_text"),
        (RESPONSES, "task", '{"model":"m"}', "no_input"),
        (RESPONSES, "role", '{"model":"m","instructions":"a","instructions":"b"}', "two_instructions"),
        (RESPONSES, "role", '{"model":"m","instructions":{"id":"x"}}', "no_text"),
        (COMPLETIONS, "task", '{"model":"m","prompt":["a","b"]}', "no_text"),
        (COMPLETIONS, "role", '{"model":"m","prompt":[1,2]}', "no_text"),
        ("embeddings", "role", '{"model":"m","input":"a"}', "endpoint"),
    ],
)
def test_a_request_without_a_place_says_why(endpoint: str, kind: Any, body: str, reason: str) -> None:
    with pytest.raises(CannotInstruct) as refused:
        instruct(endpoint, kind, json_text("Be fair."), body.encode())
    assert refused.value.reason == reason


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
contents = texts | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), min_size=1, max_size=3)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": contents}, optional={"name": values}
)


@given(
    st.lists(messages, min_size=1, max_size=5),
    st.dictionaries(texts.filter(lambda name: name.lower() not in {"model", "messages"}), values, max_size=3),
    texts.filter(bool),
    st.sampled_from(["role", "task"]),
    st.booleans(),
)
def test_what_is_added_is_one_piece_of_the_request_that_means_the_instruction(
    said: list[dict[str, Any]], more: dict[str, Any], instruction: str, kind: Any, ascii_only: bool
) -> None:
    body = json.dumps({**more, "model": "m", "messages": said}, ensure_ascii=ascii_only, indent=1).encode()
    if kind == "task" and all(one["role"] != "user" for one in said):
        with pytest.raises(CannotInstruct, match="no_user_message"):
            instruct(CHAT, kind, json_text(instruction), body)
        return
    made = instruct(CHAT, kind, json_text(instruction), body)
    added = len(made) - len(body)
    ahead = next(place for place in range(len(made)) if made[place : place + 1] != body[place : place + 1])
    # The same first byte may stand on both sides of the place, so the added piece may be found shifted.
    assert any(made[:place] + made[place + added :] == body for place in range(ahead + 1))
    told = json.loads(made)
    expected = json.loads(body)
    after = told["messages"]
    where = (
        [place for place, one in enumerate(expected["messages"]) if one["role"] == "user"][-1] if kind == "task" else 0
    )
    if kind == "role" and expected["messages"][0]["role"] != "system":
        assert after.pop(0) == {"role": "system", "content": instruction}
    else:
        old, new = expected["messages"][where].pop("content"), after[where].pop("content")
        own = {"type": "text", "text": instruction}
        if isinstance(old, list):
            assert new == ([*old, own] if kind == "task" else [own, *old])
        else:
            parts = [old, instruction] if kind == "task" else [instruction, old]
            assert new == "\n\n".join(part for part in parts if part)
    assert told == expected
