"""Slices: the analysis again by the values of a field, with the numbers that the document has of those rows alone."""

import json

import pytest
from support.worlds.coded_rows import coded_rows, oat_conditions, write_rows

from auditor.documents.codec import canonical_bytes
from auditor.estimation.analysis import Options, analyse, read_tallies


def document(folder, rows, by):
    chosen = Options(by=by, n_boot=60)
    return json.loads(canonical_bytes(analyse(read_tallies(write_rows(folder / "rows.jsonl", rows), chosen), chosen)))


@pytest.fixture(scope="module")
def rows():
    return [
        row | {"region": "US" if int(row["statement_id"][1:]) < 16 else None}
        for row in coded_rows(oat_conditions()[:8], deployments=2, statements=28)
    ]


@pytest.fixture(scope="module")
def sliced(rows, tmp_path_factory):
    return document(tmp_path_factory.mktemp("sliced"), rows, ("deployment", "region", "task", "category"))


def test_there_is_a_slice_a_field_that_is_no_deployment_and_no_factor(sliced, rows, tmp_path):
    assert [(entry["rubric"], entry["field"]) for entry in sliced["slices"]] == [
        ("statement", "region"),
        ("statement", "category"),
    ]
    plain = document(tmp_path, rows, ("deployment", "task", "perspective", "condition", "rubric"))
    assert plain["slices"] == []


def test_values_are_sorted_and_what_is_absent_is_a_value(sliced):
    regions = sliced["slices"][0]["values"]
    assert [(entry["value"], entry["n_statements"]) for entry in regions] == [(None, 12), ("US", 16)]
    assert [entry["value"] for entry in sliced["slices"][1]["values"]] == ["c0", "c1", "c2", "c3"]


def test_a_slice_says_what_its_rows_alone_say(sliced, rows, tmp_path):
    """Group for group, share for share, level for level."""
    own = document(tmp_path, [row for row in rows if row["region"] == "US"], ("deployment",))
    found = sliced["slices"][0]["values"][1]
    assert found["pooled"] == own["groups"][-1] | {"by": {"region": "US"}}
    assert found["deployments"] == [group | {"by": {"region": "US", **group["by"]}} for group in own["deployments"]]
    assert found["levels"] == own["levels"]
    shares = [entry for entry in own["eta_squared"] if not entry["by"] and entry["design"] != "deployment"]
    assert found["eta_squared"] == [entry | {"by": {"region": "US"}} for entry in shares]
    ranges = [e for e in own["horizontal"] if (e["metric"], e["over"]) == ("ber_union_full", "task")]
    assert found["horizontal"] == [entry | {"by": {"region": "US", **entry["by"]}} for entry in ranges]


def test_few_statements_are_counted_and_not_compared(sliced):
    thin = sliced["slices"][0]["values"][0]
    assert "12 statements" in thin["pooled"]["metrics"]["ber_union_full"]["missing"]
    assert thin["levels"] == thin["eta_squared"] == thin["horizontal"] == []


def test_kinds_of_values_and_rubrics_stay_apart(tmp_path):
    rows = list(coded_rows([("BJ", "self", "none", "neutral")], deployments=1, statements=60))
    for index, row in enumerate(rows):
        row |= {"mark": (1, True)[index % 2], "rubric": ("statement", "open")[index // 40]}
        if row["rubric"] == "open":
            row |= {"sel": "Abstain", "sel_reason": "no_selection_layer"}
            if row["elab_reason"] == "transport_error":
                row |= {"elab_reason": "no_claim"}
    found = document(tmp_path, rows, ("mark",))["slices"]
    assert [(entry["rubric"], [each["value"] for each in entry["values"]]) for entry in found] == [
        ("open", [True, 1]),
        ("statement", [True, 1]),
    ]
    assert [len(each["deployments"]) for entry in found for each in entry["values"]] == [1] * 4
    assert all(each["levels"] == [] for each in found[0]["values"])
    assert all(each["levels"] != [] for each in found[1]["values"])
