"""How a judge's words are read: wrapping is forgiven, labels are not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.judges.reply import Invalid, Labelled, Refused, read_completion, read_text

LABELS = ("E", "QE", "N", "D", "R")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('{"label": "E"}', Labelled(label="E", rationale="")),
        ('{"label": "E", "rationale": "two\\nlines"}', Labelled(label="E", rationale="two lines")),
        ('{"label": "E", "rationale": 7}', Labelled(label="E", rationale="")),
        ('{"label": "E"} and again {"label": "E"}', Labelled(label="E", rationale="")),
        ('{the text} says {"label": "D"}', Labelled(label="D", rationale="")),
        ('{"stance": "E"} {"label": "D"}', Labelled(label="D", rationale="")),
        ('<think>{"label": "E"}</think> {"label": "D"}', Labelled(label="D", rationale="")),
        ('I cannot say more than {"label": "R"}', Labelled(label="R", rationale="")),
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
    assert not isinstance(reply, Labelled) or reply.label in LABELS


@given(st.sampled_from(LABELS), st.text(max_size=60), st.text(alphabet="abc .\n`", max_size=20))
def test_whatever_stands_around_a_verdict_it_is_found(name, rationale, around):
    said = around + json.dumps({"rationale": rationale, "label": name}) + around
    assert isinstance(read_text(said, LABELS), Labelled)
    assert read_text(said, LABELS).label == name
