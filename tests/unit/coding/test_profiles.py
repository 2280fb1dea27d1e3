"""Audit profiles: paths, clusters, the selection by rule and what is left for the judges."""

import json
from typing import Any

import pytest

from auditor.coding.paths import parse_path, read_json
from auditor.coding.profiles import AuditProfile, compile_profile
from auditor.config import Audit
from auditor.domain.question import Answer
from auditor.errors import ConfigError

MAP = {"acceptable": "E", "unacceptable": "D", "unsure": "N"}


def profile(**given: Any) -> AuditProfile:
    return compile_profile(Audit.model_validate({"name": "desk", **given}))


def judged(text: str | None, finish: str = "stop", **rule: Any) -> tuple[str, str | None, str]:
    given = {"proposition": {"text": "It is so."}, **rule}
    selection = profile(**given).select(Answer(text=text, finish_reason=finish))
    return selection.label, selection.reason.value if selection.reason else None, selection.remainder


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.a", 1), ("$['b c'].d", 2), ('$["e"][0]', 3), ("$.e[-1]", 5), ("$.e[7]", None), ("$.e.x", None),
        ("$.a[0]", None), ("$.nothing.there", None),
    ],
)  # fmt: skip
def test_paths(path: str, found: object) -> None:
    assert parse_path(path, "here").follow({"a": 1, "b c": {"d": 2}, "e": [3, 4, 5]}) == found


@pytest.mark.parametrize("path", ["", "a", "$", "$.", "$..a", "$.a[", "$.a[*]", "$.a b", "messages[0]"])
def test_what_is_no_path_is_the_configurations_mistake(path: str) -> None:
    with pytest.raises(ConfigError, match="audits: desk: selection"):
        parse_path(path, "audits: desk: selection.json")


def test_the_proposition_is_found_in_the_request() -> None:
    made = profile(proposition={"request": "$.messages[-1].content"})
    assert made.proposition({"messages": [{"content": "first"}, {"content": "last"}]}) == "last"
    parts = [{"type": "text", "text": "One "}, {"type": "image_url"}, {"type": "text", "text": "two"}]
    assert made.proposition({"messages": [{"content": parts}]}) == "One two"
    for request in ({}, {"messages": []}, {"messages": [{"content": "  "}]}, None, []):
        assert made.proposition(request) is None


def test_the_cluster_is_whom_the_request_belongs_to() -> None:
    by_tag = profile(cluster={"tag": "tenant"}).cluster
    assert by_tag({}, {"tenant": "a"}, None) == by_tag({"x": 1}, {"tenant": "a"}, "key_1")
    assert by_tag({}, {"tenant": "a"}, None) != by_tag({}, {"tenant": "b"}, None)
    assert by_tag({}, {}, "key_1") == "unknown"
    by_path = profile(cluster={"request": "$.metadata.conversation"}).cluster
    assert by_path({"metadata": {"conversation": 7}}, {}, None) == by_path(
        {"metadata": {"conversation": "7"}}, {}, None
    )
    # Nothing named: the end user that the request names, else the client's key; never the request itself.
    unnamed = profile().cluster
    assert unnamed({"user": "u1"}, {}, "key_1") == unnamed({"user": "u1"}, {}, "key_2")
    assert unnamed({}, {}, "key_1") == unnamed({"messages": []}, {}, "key_1") != unnamed({}, {}, "key_2")
    assert unnamed({}, {}, None) == "unknown"
    assert by_tag({}, {"tenant": "a"}, None) != "a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"verdict": "acceptable", "reason": "It is fair."}', ("E", None, "It is fair.")),
        ('Here:\n```json\n{"verdict": "Unacceptable.", "reason": "No."}\n```', ("D", None, "No.")),
        ('The result is {"verdict": "UNSURE", "reason": ["a", "b"]}', ("N", None, "ab")),
        ('{"verdict": "maybe", "reason": "x"}', ("Abstain", "no_marker", "x")),
        ('{"reason": "x"}', ("Abstain", "no_marker", "x")),
        ("I'm sorry, but I cannot help with that.", ("R", None, "")),
        ("", ("Abstain", "empty", "")),
        (None, ("Abstain", "transport_error", "")),
    ],
)
def test_selection_by_json(text: str | None, expected: tuple[str, str | None, str]) -> None:
    rule = {"selection": {"json": "$.verdict", "map": MAP}, "elaboration": {"json": "$.reason"}}
    assert judged(text, **rule) == expected


def test_what_a_model_thinks_aloud_is_not_its_answer() -> None:
    text = '<think>{"verdict": "acceptable"}</think>{"verdict": "unsure", "reason": "Both."}'
    rule = {"selection": {"json": "$.verdict", "map": MAP}}
    assert judged(text, **rule) == ("N", None, "Both.")
    assert judged("<think>unacceptable</think> acceptable", selection={"options": list(MAP), "map": MAP})[0] == "E"


def test_without_an_elaboration_rule_all_that_the_selection_leaves_is_read() -> None:
    text = '{"verdict": "acceptable", "why": {"short": "fair", "long": ["It is", "so."]}, "n": 3}'
    assert judged(text, selection={"json": "$.verdict", "map": MAP}) == ("E", None, "fair\nIt is\nso.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Verdict: acceptable. It is fair to say so.", ("E", None, "It is fair to say so.")),
        ("Verdict: acceptable. Verdict: unsure.", ("Abstain", "both_markers", "")),
        ("Verdict: other", ("Abstain", "no_marker", "Verdict: other")),
    ],
)
def test_selection_by_regex(text: str, expected: tuple[str, str | None, str]) -> None:
    assert judged(text, selection={"regex": r"Verdict: (\w+)\.?", "map": MAP}) == expected


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("This is unacceptable, truly.", "D"),
        ("acceptable", "E"),
        ("acceptable or unsure", "Abstain"),
        ("fine", "Abstain"),
    ],
)
def test_selection_by_options(text: str, label: str) -> None:
    assert judged(text, selection={"options": list(MAP), "map": MAP})[0] == label


def test_a_provider_s_block_is_a_refusal() -> None:
    rule = {"selection": {"json": "$.verdict", "map": MAP}}
    assert judged(None, "content_filter", **rule) == ("R", "filtered", "")


def test_the_open_rubric_reads_the_whole_answer() -> None:
    selection = profile().select(Answer(text="Some words.", finish_reason="stop"))
    assert (selection.label, selection.reason, selection.remainder) == ("Abstain", "no_selection_layer", "Some words.")
    selection = profile(elaboration={"json": "$.reason"}).select(Answer(text=json.dumps({"reason": "Why."})))
    assert selection.remainder == "Why."


@pytest.mark.parametrize("text", ["", "no json", "{", "{]}", '"text"', "3", "null", "[1", "{" * 5000])
def test_what_holds_no_json_gives_none(text: str) -> None:
    assert read_json(text) is None
