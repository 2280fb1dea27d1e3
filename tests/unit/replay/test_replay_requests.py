"""From parents to requests: what is asked anew, what is taken over, and what cannot be asked."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.coding.profiles import compile_profile
from auditor.config import loads
from auditor.domain.condition import Condition, Perspective, Role, Sentiment, Task
from auditor.domain.exchange import Origin
from auditor.domain.statement import Statement
from auditor.errors import UsageError
from auditor.instrument.formats import format_of
from auditor.instrument.pool import record_of, shipped_pool
from auditor.instrument.templates import canonical_of, find_template
from replay.calls import (
    Call,
    RewriteContext,
    condition_of,
    find_blockers,
    messages_of,
    read_ref,
    replay_ref,
    request_body,
    template_of,
)
from replay.counterfactual.lexicon import read_lexicon
from replay.formats import ReplayFormat, read_format, read_formats
from replay.parents import Parent, ReplayCandidate, RouteProfile, parent_of_client, parent_of_probe
from replay.plan import ReplaySpec
from replay.selection import read_selection

STATEMENT = shipped_pool()[0]
CONFIG = """
deployments: [{name: here, base_url: "http://127.0.0.1:1/v1", model: m}]
routes: [{model: app, deployments: [here], audit: desk}]
audits: [{name: desk, proposition: {request: "$.metadata.claim"}}]
"""
MEANS = RewriteContext(applications={})
FORMATS = [ReplayFormat(task=task) for task in Task]
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
    return ReplayCandidate(**(usual | changed))


def probe(**changed):
    planned = {
        "task": "BJ", "perspective": "media", "role": "sociologist", "sentiment": "negative", "draw": 2,
        "template_id": "media-sociologist-negative-07",
    }  # fmt: skip
    return candidate(planned_call=planned | changed, record=record_of(STATEMENT))


def body(parent, each, request):
    call = Call(ref="r", parent=parent, format=each, deployment="here", model=parent.model)
    return request_body(call, request, MEANS)


@given(ids, st.integers(0, 5000))
def test_a_ref_is_short_printable_and_read_back(parent, number):
    ref = replay_ref("rpl-0123456789ab", parent, number)
    assert len(ref) <= 64
    assert ref.isascii()
    assert " " not in ref
    assert read_ref(ref) == (parent, number)


@pytest.mark.parametrize("task", [task for task in Task if task is not Task.BJ])
def test_a_probe_keeps_its_condition_and_is_put_in_the_formats_words(task):
    parent, each = replace(parent_of_probe(probe()), id=UUID(int=2)), ReplayFormat(task=task)
    condition = Condition(task=task, perspective=Perspective.MEDIA, role=Role.SOCIOLOGIST, sentiment=Sentiment.NEGATIVE)
    assert condition_of(parent, each) == condition
    assert messages_of(parent, each) == format_of(task).render(STATEMENT, condition)
    assert parent.draw == 2


@pytest.mark.parametrize("task", [Task.CTO, Task.SC])
def test_every_second_parent_sees_the_options_in_the_other_order(task):
    parent = parent_of_probe(probe())
    templates = [template_of(replace(parent, id=UUID(int=number)), ReplayFormat(task=task)) for number in range(4)]
    assert [one.stereotype_first for one in templates] == [False, True, False, True]


def test_the_manner_of_answering_is_taken_over_and_the_question_is_not():
    parent = parent_of_probe(probe())
    request = {
        "model": "other", "messages": [], "temperature": 0.0, "seed": 5, "top_p": None, "stream": True, "n": 3,
        "tools": [1], "response_format": {"type": "json_object"}, "stop": ["."], "user": "u", "metadata": {"a": "b"},
        "max_tokens": 5, "max_completion_tokens": 900, "logit_bias": {"1": 1},
    }  # fmt: skip
    sent = body(parent, ReplayFormat(task=Task.CTO), json.dumps(request).encode())
    assert sent.pop("messages")[-1]["role"] == "user"
    assert sent == {
        "model": "app", "temperature": 0.0, "seed": 5, "max_tokens": 256, "max_completion_tokens": 900,
    }  # fmt: skip


@pytest.mark.parametrize("request_", [None, b"", b"not json", b"[1]", b'"text"'])
def test_a_request_that_says_nothing_changes_nothing(request_):
    assert body(parent_of_probe(probe()), ReplayFormat(task=Task.CTO), request_).keys() == {"model", "messages"}


def test_a_format_that_changes_nothing_asks_a_probe_in_its_own_words():
    parent = parent_of_probe(probe())
    own = find_template("media-sociologist-negative-07")
    for written in ("again", "BJ", "media", "BJ+sociologist"):
        assert template_of(parent, read_format(written)) == own
    assert template_of(parent, read_format("others")) in canonical_of(condition_of(parent, read_format("others")))


def test_of_formats_that_ask_a_parent_the_same_the_first_counts():
    formats = read_formats("BJ,again,media,CTO,CTO+negative,others")
    assert {each.key: why for each, why in find_blockers(parent_of_probe(probe()), formats, {}, MEANS).items()} == {
        "media": "same_as_again", "BJ": "same_as_again", "CTO+negative": "same_as_CTO",
    }  # fmt: skip


def test_a_probes_groups_are_not_swapped_and_lost_words_are_not_repeated():
    gone = parent_of_probe(probe(template_id="BJ-99"))
    formats = (ReplayFormat(), ReplayFormat(task=Task.CTO), ReplayFormat(swap="gender:male>female"))
    assert find_blockers(gone, formats, {}, MEANS) == {formats[0]: "template_gone", formats[2]: "swap_of_probe"}


@pytest.fixture(scope="module")
def application():
    config = loads(CONFIG, source="test", folder=Path(), environ={}).config
    return RouteProfile(profile=compile_profile(config.audits[0]), takes_stance=True)


def test_a_clients_proposition_is_asked_in_the_formats_condition(application):
    client = candidate(origin=Origin.CLIENT)
    parent = parent_of_client(client, {"metadata": {"claim": "Cooks hum."}}, application)
    assert parent.task is None
    statement = Statement(id="x", statement="Cooks hum.")
    for written, condition in (
        ("BJ", Condition()),
        ("Rate+others+military", Condition(task=Task.RATE, perspective=Perspective.OTHERS, role=Role.MILITARY)),
    ):
        assert messages_of(parent, read_format(written)) == format_of(condition.task).render(statement, condition)
    assert find_blockers(parent, FORMATS, {}, MEANS) == {
        ReplayFormat(task=Task.SC): "statement_lacks_stereotype_option",
        ReplayFormat(task=Task.CTO): "no_messages",  # a choice stands around the client's own question
    }
    assert parent_of_client(client, {"messages": []}, application) is None


def test_a_client_of_whose_route_nothing_is_asked_has_no_statement(application):
    client = candidate(origin=Origin.CLIENT)
    parent = parent_of_client(client, {"messages": []}, replace(application, takes_stance=False))
    assert parent is not None
    assert parent.statement is None


def test_a_statement_that_cannot_be_read_makes_no_parent():
    broken = candidate(planned_call=probe().planned_call, record={"id": "x", "statement": ""})
    assert parent_of_probe(broken) is None


def test_a_parent_says_what_it_cannot_be_asked():
    bare = Parent(
        id=UUID(int=1), origin=Origin.PROBE, deployment="here", model="app", route="app",
        statement=Statement(id="s", statement="S.", stereotype_option="a", counter_option="b"),
    )  # fmt: skip
    assert find_blockers(bare, FORMATS, {}, MEANS) == {
        ReplayFormat(task=Task.CTO): "statement_lacks_context",
        ReplayFormat(task=Task.SC): "statement_lacks_completion",
    }


def test_the_same_formats_in_any_order_are_the_same_replay():
    selection = read_selection("all")
    one, other = (
        ReplaySpec(selection=selection, formats=read_formats(listed, swaps))
        for listed, swaps in (("CTO,bj,again", ["gender:male>female"]), ("again, BJ ,CTO", ["gender:male>female"]))
    )
    assert one.replay_id == other.replay_id
    changes = ({"formats": read_formats("CTO")}, {"to": "here"}, {"name": "x"}, {"lexicon": read_lexicon()})
    assert len({one.replay_id, *(replace(one, **changed).replay_id for changed in changes)}) == 5


@pytest.mark.parametrize(
    ("listed", "swaps", "told"),
    [
        ("", [], "--formats names none; there are again, BJ, SC"),
        ("CTO,cto", [], "CTO is named twice"),
        ("others+CTO,CTO+others", [], "CTO+others is named twice"),
        ("", ["a:b>c", "a:b>c"], "a:b>c is named twice"),
        ("CTO,colour", [], "'colour' in 'colour' is no format"),
    ],
)
def test_formats_that_cannot_be_read_are_told(listed, swaps, told):
    with pytest.raises(UsageError) as caught:
        read_formats(listed, swaps)
    assert told in str(caught.value)
