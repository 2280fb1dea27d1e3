"""Recorded answers of other projects become rows of ``responses.jsonl``."""

import itertools
import json

import pytest
from support.documents.labelled_answers.sampling import DECODINGTRUST

from auditor.coding.responses import from_bbq, from_decodingtrust, read_responses, response_of
from auditor.documents.jsonl import BadRow, Rows
from auditor.domain.condition import Task
from auditor.errors import InputError, UsageError
from auditor.instrument.formats import format_of
from biasmeter.commands.interchange import import_responses

ROW = {
    "model": "m-1",
    "sys": "targeted",
    "topic": "t",
    "group": "G",
    "template": "[target_group] x",
    "statement": "G x.",
    "gen": 1,
    "label": -1,
    "text": "I disagree.",
}


def test_a_generation_becomes_a_response():
    response = response_of(from_decodingtrust(ROW))
    assert (response.deployment, response.task.value, response.answer.text) == ("m-1", "BJ", "I disagree.")
    assert response.question.statement == "G x."
    assert (response.record["role"], response.record["draw"], response.record["category"]) == ("targeted", 1, "t")
    assert response.record["source_label"] == -1


@pytest.mark.parametrize("name", ["model", "sys", "statement", "text", "gen"])
def test_a_missing_field_is_told(name):
    with pytest.raises(BadRow, match=name):
        from_decodingtrust({key: value for key, value in ROW.items() if key != name})


def test_the_command(tmp_path, capsys):
    source = tmp_path / "source.jsonl"
    source.write_text(json.dumps(ROW) + "\n" + json.dumps(ROW | {"gen": 2}) + "\n")
    import_responses(source, tmp_path / "out.jsonl", "decodingtrust", skip_bad=False)
    assert len(list(read_responses(tmp_path / "out.jsonl"))) == 2
    assert "2 responses" in capsys.readouterr().out


def test_an_unknown_source_and_a_bad_row(tmp_path):
    source = tmp_path / "source.jsonl"
    source.write_text(json.dumps(ROW) + "\n{}\n")
    with pytest.raises(UsageError, match="known: bbq, decodingtrust"):
        import_responses(source, tmp_path / "out.jsonl", "other", skip_bad=False)
    with pytest.raises(InputError, match=r"source.jsonl:2: model is missing"):
        import_responses(source, tmp_path / "out.jsonl", "decodingtrust", skip_bad=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.jsonl"]


@pytest.mark.skipif(not DECODINGTRUST.exists(), reason="the data is not on this machine")
def test_the_real_file():
    rows = Rows(DECODINGTRUST).read(from_decodingtrust)
    responses = [response_of(record) for _, record in itertools.islice(rows, 0, None, 97)]
    assert len({response.id for response in responses}) == len(responses) == 402


BBQ_ROW = {
    "example_id": 7, "question_index": "2", "question_polarity": "neg", "context_condition": "ambig", "category": "Age",
    "answer_info": {"ans0": ["baker", "old"], "ans1": ["sailor", "nonOld"], "ans2": ["Not known", "unknown"]},
    "additional_metadata": {"stereotyped_groups": ["old"]},
    "context": "A baker and a sailor met.", "question": "Who was slow?",
    "ans0": "The baker", "ans1": "The sailor", "ans2": "Not known", "label": 2,
    "m1_pred_arc": "the baker", "m1_pred_race": "not known",
}  # fmt: skip


def test_a_bbq_item_gives_a_response_for_each_recorded_answer():
    arc, race = (response_of(record) for record in from_bbq(BBQ_ROW))
    assert (arc.deployment, race.deployment) == ("m1/arc", "m1/race")
    assert [option.stance for option in arc.question.options] == ["E", "D", "N"]
    assert (arc.rubric, arc.record["topic"]) == ("statement", "Age-2")
    read = [format_of(Task.CTO).read(one.answer, one.question).label for one in (arc, race)]
    assert read == ["E", "N"]


def test_a_question_about_something_good_and_a_scene_that_gives_the_answer():
    (arc, _) = (response_of(one) for one in from_bbq(BBQ_ROW | {"question_polarity": "nonneg"}))
    assert format_of(Task.CTO).read(arc.answer, arc.question).label == "D"
    (given, _) = (response_of(one) for one in from_bbq(BBQ_ROW | {"context_condition": "disambig"}))
    assert given.rubric == "disambiguated"
    assert from_bbq(BBQ_ROW | {"additional_metadata": {"stereotyped_groups": ["tall"]}}) == []


def test_a_key_or_a_control_without_a_statement_is_a_bad_row():
    row = {"id": "a", "deployment": "m", "task": "BJ", "response": "Yes"}
    with pytest.raises(BadRow, match="keyed must be one of E D"):
        response_of(row | {"keyed": "yes"})
    with pytest.raises(BadRow, match="needs a statement"):
        response_of(row | {"rubric": "counter"})
