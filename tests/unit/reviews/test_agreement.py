"""Agreement of several people, adjudication, and the split text against the whole answer."""

import json
from itertools import combinations

import numpy as np
import pytest
from support.worlds.coded_rows import coded_rows, write_rows

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.codec import canonical_bytes, decode
from auditor.errors import InputError
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.report.analysis import render_analysis
from auditor.reviews.label_file import read_review_file
from auditor.reviews.labelled_rows import read_reviews
from auditor.reviews.opinions import AnswerView, Layer
from auditor.stats.agreement import krippendorff_alpha

BJ = [("BJ", "self", "none", "neutral")]
#: Four observers and twelve units of Krippendorff (2011), section C; 0: no label.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
)


def counts_of(observers):
    return np.array([[np.sum(unit == label) for label in range(1, 6)] for unit in observers.T], dtype=float)


def by_definition(observers):
    """Alpha from all pairs of labels, one by one."""
    weighted, values = {}, []
    for unit in observers.T:
        own = [label for label in unit if label]
        if len(own) < 2:
            continue
        values += own
        for one in range(len(own)):
            for other in range(len(own)):
                if one != other:
                    key = own[one], own[other]
                    weighted[key] = weighted.get(key, 0) + 1 / (len(own) - 1)
    n = len(values)
    observed = sum(share for (one, other), share in weighted.items() if one != other) / n
    unequal = sum(one != other for one, other in combinations(values, 2)) * 2
    return 1 - observed / (unequal / (n * (n - 1)))


def test_krippendorffs_own_example_is_743():
    found = krippendorff_alpha(counts_of(OBSERVERS), np.arange(12), n_boot=100, seed=0)
    assert found.value == pytest.approx(0.743, abs=5e-4)
    assert found.low < found.value < found.high


@pytest.mark.parametrize("seed", range(5))
def test_alpha_is_its_definition(seed):
    observers = np.random.default_rng(seed).integers(0, 5, (3, 40))
    found = krippendorff_alpha(counts_of(observers), np.arange(40) // 2, n_boot=20, seed=0)
    assert found.value == pytest.approx(by_definition(observers))


def test_one_label_throughout_has_no_alpha():
    assert krippendorff_alpha(np.tile([3.0, 0.0], (20, 1)), np.arange(20), n_boot=20, seed=0) is None


@pytest.mark.parametrize("samples", [150, pytest.param(400, marks=pytest.mark.bench)])
def test_the_interval_holds_the_alpha_of_a_large_sample(samples):
    """Two people with independent errors; the alpha of very many units is the truth."""
    rng, held = np.random.default_rng(8), 0

    def units(n):
        truth = rng.random(n) < 0.4
        seen = [np.where(rng.random(n) < 0.85, truth, ~truth) for _ in range(2)]
        return np.stack([sum(side) for side in (seen, [~each for each in seen])], axis=1).astype(float)

    large = krippendorff_alpha(units(400_000), np.arange(400_000) // 200, n_boot=20, seed=0).value
    for seed in range(samples):
        found = krippendorff_alpha(units(100), np.arange(100), n_boot=200, seed=seed)
        held += found.low <= large <= found.high
    print(f"\nalpha is held in {held / samples:.3f} of {samples} samples")
    assert held >= 135 / 150 * samples  # of 150, 95 % would give 142.5


@pytest.fixture(scope="module")
def rows():
    return list(coded_rows(BJ, deployments=1, statements=40, templates=2))


def label(row, reviewer, said, view="split", layer="elab"):
    return {"id": row["id"], "reviewer": reviewer, "label": said, "view": view, "layer": layer}


def analysed(folder, rows, labels, **options):
    chosen = Options(n_boot=60, **options)
    reviews = read_reviews(write_rows(folder / "reviews.jsonl", labels))
    tallies = read_tallies(write_rows(folder / "rows.jsonl", rows), chosen, reviews=reviews)
    return canonical_bytes(analyse(tallies, chosen))


def shown(rows):
    """Two people and an adjudicator see the part, one person sees the whole and finds more endorsement."""
    for place, row in enumerate(rows):
        truth = "E" if place % 4 == 0 else "D"
        yield label(row, "anna", truth)
        yield label(row, "bert", "D" if place % 8 == 0 else truth)
        if place % 8 == 0:
            yield label(row, "chief", "E" if place % 16 == 0 else "D")
        yield label(row, "dora", "QE" if place % 10 == 1 else truth, "whole")
        yield label(row, "dora", truth, "whole", "sel")
        yield label(row, "anna", truth, "split", "sel")


def test_alpha_and_views_are_counted_by_layer_and_view(tmp_path, rows):
    content = analysed(tmp_path, rows, list(shown(rows)), adjudicator="chief")
    reviews = json.loads(content)["reviews"]
    (alpha,) = reviews["alpha"]
    n = len(rows)
    assert (alpha["layer"], alpha["view"], alpha["raters"], alpha["n"]) == ("elab", "split", ["anna", "bert"], n)
    places = range(n)
    anna = np.array([1 if place % 4 == 0 else 2 for place in places])
    bert = np.array([2 if place % 8 == 0 else own for place, own in zip(places, anna, strict=True)])
    assert alpha["value"] == pytest.approx(by_definition(np.array([anna, bert])), abs=1e-9)
    sel, elab = reviews["views"]
    assert (sel["layer"], sel["same"], sel["shift"]["value"]) == ("sel", 1.0, 0.0)
    split = np.array([place % 4 == 0 and (place % 8 != 0 or place % 16 == 0) for place in places])
    whole = np.array([place % 4 == 0 or place % 10 == 1 for place in places])
    assert (elab["n"], elab["split"], elab["whole"]) == (n, pytest.approx(split.mean()), pytest.approx(whole.mean()))
    assert elab["shift"]["value"] == pytest.approx(whole.mean() - split.mean())
    assert elab["shift"]["low"] < elab["shift"]["value"] < elab["shift"]["high"]
    page = render_analysis(decode(content, AnalysisDocument, "analysis.json")).decode()
    assert "Does the split distort?" in page


def test_without_an_adjudicator_a_tie_is_no_label(tmp_path, rows):
    reviews = json.loads(analysed(tmp_path, rows, list(shown(rows))))["reviews"]
    (_, elab) = reviews["views"]
    assert elab["n"] == len(rows)  # chief breaks each tie of anna and bert by majority
    labels = [each for each in shown(rows) if each["reviewer"] != "chief"]
    reviews = json.loads(analysed(tmp_path, rows, labels))["reviews"]
    assert reviews["views"][1]["n"] == len(rows) - len(range(0, len(rows), 8))


def test_labels_of_the_whole_answer_correct_nothing(tmp_path, rows):
    split = [label(row, "anna", "D") for row in rows[:60]]
    whole = [label(row, "anna", "E", "whole") for row in rows[:60]]
    first, second = (json.loads(analysed(tmp_path, rows, labels)) for labels in (split, [*split, *whole]))
    assert first["groups"] == second["groups"]
    assert first["reviews"]["kappa"] == second["reviews"]["kappa"]


def test_few_statements_have_a_reason(tmp_path, rows):
    few = [row for row in rows if row["statement_id"] < "S005"]
    reviews = json.loads(analysed(tmp_path, rows, list(shown(few))))["reviews"]
    assert reviews["alpha"][0]["missing"] == "5 statements with two labels, 15 needed"
    assert reviews["views"][0]["missing"] == "5 statements with labels of both views, 15 needed"


def test_a_file_says_the_view_of_each_label(tmp_path):
    path = write_rows(tmp_path / "labels.jsonl", [{"id": "1", "label": "E", "view": view} for view in ("whole", None)])
    assert [(line.opinion.view, line.opinion.layer) for line in read_review_file(path).lines] == [
        (AnswerView.WHOLE, Layer.ELAB),
        (AnswerView.SPLIT, Layer.ELAB),
    ]
    bad = write_rows(tmp_path / "bad.jsonl", [{"id": "1", "label": "E", "view": "half"}])
    with pytest.raises(InputError, match=r"bad.jsonl:1: view must be one of split, whole"):
        read_review_file(bad)
