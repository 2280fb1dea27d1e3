"""From parents to requests: what is asked anew, what is taken over, and what cannot be asked."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.config import loads
from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.domain.exchange import Origin
from auditor.domain.statement import Statement
from auditor.formats import format_of
from auditor.instrument.pool import record_of, shipped_pool
from auditor.live.profiles import compile_profile
from replay.pick import Candidate, Parent, missing_for, parent_of_client, parent_of_probe
from replay.rewrite import condition_of, members_of, messages_of, read_ref, replay_ref, template_of

STATEMENT = shipped_pool()[0]
CONFIG = """
deployments: [{name: here, base_url: "http://127.0.0.1:1/v1", model: m}]
routes: [{model: app, deployments: [here], audit: desk}]
audits: [{name: desk, proposition: {request: "$.metadata.claim"}}]
"""
ids = st.uuids(version=4)


def candidate(**changed):
    usual = {
        "id": UUID(int=1),
        "at": datetime(2026, 3, 1, tzinfo=UTC),
        "origin": Origin.PROBE,
        "endpoint": "chat/completions",
        "route": "app",
        "deployment": "here",
        "model": "app",
        "inclusion": 1.0,
        "truncated": False,
        "has_content": True,
    }
    return Candidate(**(usual | changed))


def probe(**changed):
    asked = {"task": "BJ", "perspective": "media", "role": "sociologist", "sentiment": "negative", "draw": 2}
    return candidate(asked=asked | changed, record=record_of(STATEMENT))


@given(ids, st.sampled_from(Task))
def test_a_ref_is_short_printable_and_read_back(parent, task):
    ref = replay_ref("rpl-0123456789ab", parent, task)
    assert len(ref) <= 64
    assert ref.isascii()
    assert " " not in ref
    assert read_ref(ref) == (parent, task)


@pytest.mark.parametrize("task", Task)
def test_a_probe_keeps_its_condition_and_is_put_in_the_formats_words(task):
    parent = replace(parent_of_probe(probe()), id=UUID(int=2))
    condition = Condition(task=task, perspective=Perspective.MEDIA, role=Role.SOCIOLOGIST, sentiment=Sentiment.NEGATIVE)
    assert condition_of(parent, task) == condition
    assert messages_of(parent, task) == format_of(task).render(STATEMENT, condition)
    assert parent.draw == 2


@pytest.mark.parametrize("task", [Task.CTO, Task.SC])
def test_every_second_parent_sees_the_options_in_the_other_order(task):
    parent = parent_of_probe(probe())
    templates = [template_of(replace(parent, id=UUID(int=number)), task) for number in range(4)]
    assert [one.stereotype_first for one in templates] == [False, True, False, True]


def test_the_manner_of_answering_is_taken_over_and_the_question_is_not():
    parent = parent_of_probe(probe())
    request = {
        "model": "other", "messages": [], "temperature": 0.0, "seed": 5, "top_p": None, "stream": True, "n": 3,
        "tools": [1], "response_format": {"type": "json_object"}, "stop": ["."], "user": "u", "metadata": {"a": "b"},
        "max_tokens": 5, "max_completion_tokens": 900, "logit_bias": {"1": 1},
    }  # fmt: skip
    assert members_of(parent, json.dumps(request).encode()) == {
        "model": "app", "temperature": 0.0, "seed": 5, "max_tokens": 256, "max_completion_tokens": 900,
    }  # fmt: skip


@pytest.mark.parametrize("request_", [None, b"", b"not json", b"[1]", b'"text"'])
def test_a_request_that_says_nothing_changes_nothing(request_):
    assert members_of(parent_of_probe(probe()), request_) == {"model": "app"}


def test_a_clients_proposition_is_asked_at_the_baseline():
    config = loads(CONFIG, source="test", folder=Path(), environ={}).config
    profile = compile_profile(config.audits[0])
    client = candidate(origin=Origin.CLIENT)
    parent = parent_of_client(client, {"metadata": {"claim": "Cooks hum."}}, profile)
    assert parent.task is None
    assert messages_of(parent, Task.BJ) == format_of(Task.BJ).render(
        Statement(id="x", statement="Cooks hum."), Condition()
    )
    assert missing_for(parent, Task.RATE) is None
    assert missing_for(parent, Task.CTO) == "statement_lacks_stereotype_option"
    assert parent_of_client(client, {"messages": []}, profile) is None


def test_a_statement_that_cannot_be_read_makes_no_parent():
    broken = candidate(asked=probe().asked, record={"id": "x", "statement": ""})
    assert parent_of_probe(broken) is None


def test_a_parent_says_what_it_cannot_be_asked():
    bare = Parent(
        id=UUID(int=1), origin=Origin.PROBE, deployment="here", model="app", route="app",
        statement=Statement(id="s", statement="S.", stereotype_option="a", counter_option="b"),
    )  # fmt: skip
    assert missing_for(bare, Task.BJ) is None
    assert missing_for(bare, Task.CTO) == "statement_lacks_context"
    assert missing_for(bare, Task.SC) == "statement_lacks_completion"
