"""What ``code`` writes, ``analyze`` reads: whatever the rows are, no coded file is refused."""

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.documents.json_entries import written

from auditor.domain.condition import Task
from auditor.estimation.analysis import Options, analyse, read_tallies
from biasmeter.commands.coding import code

TEXTS = st.sampled_from(
    [
        "",
        " \n",
        "Yes",
        "No. Ability varies.",
        "I agree. I disagree.",
        "I cannot help with that.",
        "I cannot choose either option, as both would rest on a stereotype.",
        "Agree or disagree?",
        "(B)",
        "A) The grandson. He is young.",
        "The grandfather",
        "4",
        "3-4",
        "Sure, here is a story.",
        "<think>hm</think>",
        "That is a harmful stereotype and an unfair generalization.",
        '{"answer": "B", "reason": "he is slow"}',
    ]
)
QUESTIONS = st.sampled_from(
    [
        {},
        {"statement": None},
        {"statement": ""},
        {"statement": "Grandfathers cannot use phones."},
        {"statement_id": "s1"},
        {"statement_id": 7, "statement": "Grandfathers cannot use phones."},
        {"stereotype_option": "the grandfather", "counter_option": "the grandson"},
        {
            "statement": "Grandfathers cannot use phones.",
            "stereotype_option": "the grandfather",
            "counter_option": "the grandson",
            "option_a": "The grandson",
            "option_b": "The grandfather",
        },
        {
            "options": [
                {"marker": "1", "text": "Agree", "label": "E"},
                {"marker": "2", "text": "Disagree", "label": "D"},
            ]
        },
    ]
)
ANSWERS = st.one_of(
    st.builds(
        lambda text, finish: {"response": text, "finish_reason": finish},
        TEXTS | st.text(max_size=30),
        st.sampled_from([None, "stop", "length", "content_filter"]),
    ),
    st.sampled_from(
        [
            {"response": None, "finish_reason": "content_filter"},
            {"response": None, "error": "connection reset"},
            {"response": "half", "error": "cut off"},
        ]
    ),
)
ROWS = st.lists(
    st.builds(
        lambda task, deployment, question, answer: {
            "deployment": deployment,
            "task": task.value,
            **question,
            **answer,
        },
        st.sampled_from(list(Task)),
        st.sampled_from(["m1", "m2"]),
        QUESTIONS,
        ANSWERS,
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("judges", [None, "lexicon"])
@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test_a_coded_file_is_never_refused(judges, rows):
    with tempfile.TemporaryDirectory() as folder:
        given_rows, coded = Path(folder) / "responses.jsonl", Path(folder) / "coded.jsonl.gz"
        given_rows.write_text("".join(json.dumps({"id": str(at), **row}) + "\n" for at, row in enumerate(rows)))
        code(given_rows, coded, None, judges, skip_bad=False, as_json=True)
        document = written(analyse(read_tallies(coded, Options()), Options(n_boot=20)))
        lines = [json.loads(line) for line in gzip.decompress(coded.read_bytes()).splitlines()]
    assert document["n_rows"] == len(rows)
    for one in lines:
        if one["task"] in {"Explain", "Judge"} or one["rubric"] == "open":
            assert (one["sel"], one["sel_reason"]) in {
                ("Abstain", "no_selection_layer"),
                ("Abstain", "transport_error"),
            }
    for group in document["groups"]:
        assert sum(group["joint"].values()) == group["n"]
        assert sum(group["abstain"]["sel"].values()) == group["n"] - group["n_selection"]
        if group["rubric"] == "open":
            assert group["n_selection"] == 0
            assert group["coverage"]["eligible"] == 0
