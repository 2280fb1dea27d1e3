"""How a judge's words are read: wrapping is forgiven, labels are not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.judges.reply import Invalid, JudgeLabel, Refused, read_completion, read_text

LABELS = ("E", "QE", "N", "D", "R")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('{"label": "E"}', JudgeLabel(label="E", rationale="")),
        ('{"label": "E", "rationale": "two\\nlines"}', JudgeLabel(label="E", rationale="two lines")),
        ('{"label": "E", "rationale": 7}', JudgeLabel(label="E", rationale="")),
        ('{"label": "E"} and again {"label": "E"}', JudgeLabel(label="E", rationale="")),
        ('{the text} says {"label": "D"}', JudgeLabel(label="D", rationale="")),
        ('{"stance": "E"} {"label": "D"}', JudgeLabel(label="D", rationale="")),
        ('<think>{"label": "E"}</think> {"label": "D"}', JudgeLabel(label="D", rationale="")),
        ('I cannot say more than {"label": "R"}', JudgeLabel(label="R", rationale="")),
        ('{"label": "D", "rationale": "it says </think>"}', JudgeLabel(label="D", rationale="it says </think>")),
        ('```json\n{"label": "D"}\n```', JudgeLabel(label="D", rationale="")),
    ],
)
def test_labels_are_found(said, expected):
    assert read_text(said, LABELS) == expected


@pytest.mark.parametrize(
    "said",
    [
        "",
        "E",
        "The label is E.",
        "[]",
        '"E"',
        '{"label": "e"}',
        '{"label": " E"}',
        '{"label": ["E"]}',
        '{"label": null}',
        '{"label": "E", "label": "D"}',
        '{"label": "E"} {"label": "D"}',
        '{"verdict": {"label": "E"}}',
        '{"rationale": "cut off", "label": ',
        '<think>{"label": "E"}',
        'It says {"label"<think></think>: "E"}',
        'Let me see. <think>{"label": "E"}',
        '{"rationale": "it says {"label": "E"} and", "label": "D"}',
        '{"rationale": "it says {"label": "E"} and then',
        "{" * 5000,
    ],
)
def test_anything_else_is_invalid(said):
    assert isinstance(read_text(said, LABELS), Invalid)


@pytest.mark.parametrize(
    "said",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot assist with this request.",
        "Sorry, this content violates my guidelines.",
        "As an AI, I do not code such texts.",
        "I must decline.",
    ],
)
def test_refusals_are_told_from_nonsense(said):
    assert isinstance(read_text(said, LABELS), Refused)


@pytest.mark.parametrize(
    "body", [None, [], {}, {"choices": []}, {"choices": ["x"]}, {"choices": [{"message": None}]}, 7]
)
def test_bodies_of_no_known_shape_are_invalid(body):
    assert isinstance(read_completion(body, lambda said: read_text(said, LABELS)), Invalid)


@given(st.text(max_size=200))
def test_never_a_label_that_the_rubric_does_not_have(said):
    reply = read_text(said, LABELS)
    assert not isinstance(reply, JudgeLabel) or reply.label in LABELS


@given(st.sampled_from(LABELS), st.text(max_size=60), st.text(alphabet="abc .\n`", max_size=20))
def test_whatever_stands_around_a_verdict_it_is_found(name, rationale, around):
    said = around + json.dumps({"rationale": rationale, "label": name}) + around
    assert isinstance(read_text(said, LABELS), JudgeLabel)
    assert read_text(said, LABELS).label == name


SHOWN = 'Well. {"rationale": "told so",  "label": "E"} </think> {"label": "QE"}'


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('It says {"rationale": "told so", "label": "E"}.', None),
        ('It says {"rationale":"told so","label":"E"}. {"label": "D"}', "D"),
        (f"The text: {SHOWN}", None),
        (f'The text: {SHOWN} Mine: {{"label": "D"}}', "D"),
        ('{"rationale": "told so", "label": "E"}', "E"),
        ('```\n{"label": "QE"}\n```', "QE"),
    ],
)
def test_what_is_repeated_of_the_text_does_not_count_unless_it_is_all_that_was_said(said, expected):
    reply = read_text(said, LABELS, SHOWN)
    assert (reply.label if isinstance(reply, JudgeLabel) else None) == expected


WORDS = [
    "label",
    '"label"',
    '"E"',
    '"D"',
    "E",
    "null",
    "1e999",
    "<think>",
    "</think>",
    "```",
    "```json\n",
    "I'm sorry, ",
]
VERDICTS = ['{"label": "E"}', '{"label": "QE", "rationale": "x"}']
PIECES = st.sampled_from([*'{}":,[] \\\n\ud800', *WORDS, *VERDICTS])
SAID = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=25).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | SAID,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(SAID, SAID)
def test_any_words_give_a_label_of_the_rubric_or_none_and_no_error(said, shown):
    reply = read_text(said, LABELS, shown)
    assert isinstance(reply, Refused | Invalid) or reply.label in LABELS


@given(SAID)
def test_a_judge_that_repeats_the_text_among_other_words_gives_no_label(text):
    assert not isinstance(read_text(f"It says: {text} That was all.", LABELS, text), JudgeLabel)


@given(
    st.fixed_dictionaries({}, optional={"content": SAID | JSON, "refusal": JSON, "role": JSON}) | JSON,
    st.sampled_from(["stop", "length", "content_filter"]) | JSON,
)
def test_any_body_gives_a_label_of_the_rubric_or_none_and_no_error(message, finish):
    body = {"choices": [{"message": message, "finish_reason": finish}]}
    reply = read_completion(body, lambda said: read_text(said, LABELS))
    assert isinstance(reply, Refused | Invalid) or reply.label in LABELS


@given(JSON)
def test_any_json_is_read_without_an_error(body):
    assert isinstance(read_completion(body, lambda said: read_text(said, LABELS)), Refused | Invalid | JudgeLabel)
