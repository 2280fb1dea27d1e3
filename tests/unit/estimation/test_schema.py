"""Documents are as docs/analysis.schema.json publishes them, whatever the rows allow and lack."""

import json

import pytest
from support.documents.published_schemas import complaints, validator
from support.worlds.coded_rows import coded_rows, factorial_conditions, oat_conditions, write_rows

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.codec import canonical_bytes, decode
from auditor.errors import InputError
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.reviews.labelled_rows import read_reviews

BJ = [("BJ", "self", "none", "neutral")]
SPARSE = [
    {"id": 1, "deployment": "m1", "task": "BJ", "sel": "E", "elab": "Abstain", "elab_reason": "no_judge"},
    {"id": 2, "deployment": "m1", "task": "Judge", "sel": "Abstain", "sel_reason": "no_selection_layer", "elab": "D"},
]
TRAFFIC = [
    {"id": i, "deployment": f"m{i % 2}", "task": "Judge", "sel": "Abstain", "elab": "ED"[i % 2], "rubric": "open/1"}
    for i in range(60)
]


def unanimous(label):
    return [{"judge": name, "label": label} for name in "abc"]


CASES = {
    "the whole design": lambda: (
        {**row, "completion_tokens": 10 + len(str(row["task"])), "response": "An answer.", "statement": "S"}
        for part, grid in enumerate((oat_conditions(), factorial_conditions()))
        for row in ({**each, "id": f"{part}.{each['id']}"} for each in coded_rows(grid, deployments=4, statements=110))
    ),
    "one deployment, one condition": lambda: coded_rows(BJ, deployments=1),
    "few statements": lambda: coded_rows(oat_conditions(), deployments=2, statements=20),
    "hardly anything": lambda: SPARSE,
    "traffic": lambda: TRAFFIC,
    "a proposition that names no stereotype": lambda: (
        {**row, "rubric": "proposition"} for row in coded_rows(BJ, deployments=3)
    ),
    "nothing that differs": lambda: (
        {**row, "sel": "D", "sel_reason": None, "elab": "D", "elab_reason": None, "votes": unanimous("D")}
        for row in coded_rows(factorial_conditions()[:4], deployments=4, statements=20)
    ),
}


def analysed(folder, rows, by=(), reviews=None):
    options = Options(by=by, n_boot=30, vendors={"m1": "x", "m2": "y", "m3": "y", "m4": "z"})
    tallies = read_tallies(write_rows(folder / "coded.jsonl", rows), options, None, reviews)
    return json.loads(canonical_bytes(analyse(tallies, options)))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "the whole design" else ()) for name in CASES]
)
def test_documents_are_as_published(tmp_path, name):
    by = ("deployment", "category") if name == "the whole design" else ("deployment", "task")
    document = analysed(tmp_path, CASES[name](), by)
    assert list(complaints("analysis", document)) == []
    written = canonical_bytes(document)
    assert canonical_bytes(decode(written, AnalysisDocument, "analysis.json")) == written
    if name == "the whole design":
        empty = {key for key, value in document.items() if value in ([], {})}
        assert empty == set()


def test_with_people_s_labels(tmp_path):
    rows = list(coded_rows(BJ, deployments=1))
    labels = [{"id": row["id"], "layer": "elab", "label": "D", "reviewer": "r"} for row in rows[:90]]
    reviews = read_reviews(write_rows(tmp_path / "reviews.jsonl", labels))
    document = analysed(tmp_path, rows, reviews=reviews)
    assert list(complaints("analysis", document)) == []
    written = canonical_bytes(document)
    assert canonical_bytes(decode(written, AnalysisDocument, "analysis.json")) == written


def test_what_is_not_published_is_refused(tmp_path):
    document = analysed(tmp_path, CASES["one deployment, one condition"]())
    for spoil in (
        lambda it: it | {"extra": 1},
        lambda it: {key: value for key, value in it.items() if key != "levels"},
        lambda it: it | {"seed": None},
        lambda it: it | {"groups": [it["groups"][0] | {"metrics": {"ir": {"value": None}}}]},
    ):
        assert list(complaints("analysis", spoil(document)))
        with pytest.raises(InputError, match=r"^analysis.json: /"):
            decode(canonical_bytes(spoil(document)), AnalysisDocument, "analysis.json")


def test_the_schemas_are_schemas():
    for name in ("analysis", "report"):
        validator(name).check_schema(validator(name).schema)
