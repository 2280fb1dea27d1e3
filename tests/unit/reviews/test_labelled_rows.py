"""``analyze --reviews``: people's labels correct BER_elab, change nothing else, and are compared with the coders'."""

import json
import random

import numpy as np
import pytest
from support.documents.json_entries import typed
from support.worlds.coded_rows import coded_rows, write_rows

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.codec import canonical_bytes
from auditor.errors import InputError, UsageError
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.metrics.corrected import CORRECTED_PAIRS
from auditor.report.analysis import render_analysis
from auditor.reviews.labelled_rows import read_reviews
from auditor.stats.agreement import cohen_kappa, confusion_matrix
from auditor.stats.prediction_powered import (
    LabelledSample,
    prediction_powered_difference,
    prediction_powered_rate,
    prediction_powered_ratio,
)
from biasmeter.commands.analysis import analyze

CONDITIONS = [("BJ", "self", "none", "neutral"), ("CTO", "self", "none", "neutral")]
LABELS = ("E", "QE", "N", "D", "R")
OPTIONS = Options(n_boot=50)


@pytest.fixture(scope="module")
def rows():
    return list(coded_rows(CONDITIONS, deployments=2, statements=80))


def person(row, rng):
    """A person who mostly says what the panel says."""
    return row["elab"] if row["elab"] != "Abstain" and rng.random() < 0.85 else rng.choice(LABELS)


@pytest.fixture(scope="module")
def labelled(rows):
    rng = random.Random(5)
    drawn = rng.sample(rows, 150)
    return [{"id": row["id"], "label": person(row, rng), "reviewer": "anna"} for row in drawn]


def analysed(folder, rows, reviews=None):
    coded = write_rows(folder / "coded.jsonl", rows)
    found = None if reviews is None else read_reviews(write_rows(folder / "reviews.jsonl", reviews))
    return json.loads(canonical_bytes(analyse(read_tallies(coded, OPTIONS, None, found), OPTIONS)))


def pooled(document):
    return next(group for group in document["groups"] if not group["by"])


def test_nothing_but_the_corrected_rates_is_added(tmp_path, rows, labelled):
    without, document = analysed(tmp_path, rows), analysed(tmp_path, rows, labelled)
    assert document.pop("reviews")["n"] == 150
    for group in document["groups"] + document["deployments"]:
        assert group["metrics"].pop("ber_elab_corrected") != group["metrics"].pop("ber_elab_full_corrected")
        for name in CORRECTED_PAIRS:
            assert group["metrics"].pop(name) == {"missing": "no person's labels of both layers of a response"}
    assert document == without


def test_the_corrected_rate_is_the_kernels(tmp_path, rows, labelled):
    document = analysed(tmp_path, rows, labelled)
    base = [row for row in rows if row["elab"] != "Abstain"]
    place = {name: index for index, name in enumerate(sorted({row["statement_id"] for row in base}))}
    machine = {row["id"]: float(row["elab"] in {"E", "QE"}) for row in base}
    cluster = {row["id"]: place[row["statement_id"]] for row in base}
    sample = [line for line in labelled if line["id"] in machine]
    where = [cluster[row["id"]] for row in base]
    expected = prediction_powered_rate(
        np.bincount(where, [machine[row["id"]] for row in base]).astype(float),
        np.bincount(where).astype(float),
        LabelledSample(
            cluster=np.array([cluster[line["id"]] for line in sample]),
            human=np.array([float(line["label"] in {"E", "QE"}) for line in sample]),
            machine=np.array([machine[line["id"]] for line in sample]),
            weight=np.ones(len(sample)),
        ),
    )
    said = pooled(document)["metrics"]["ber_elab_full_corrected"]
    assert (said["value"], said["low"], said["high"]) == pytest.approx((expected.value, expected.low, expected.high))
    assert (said["method"], said["base"], said["n"]) == ("prediction_powered", "full", len(base))
    assert (said["n_labelled"], said["power"]) == (len(sample), pytest.approx(expected.power))
    assert said["n_labelled_statements"] == expected.n_clusters
    assert said["flags"] == ["few_clusters"]


def test_unequal_inclusion_is_weighed(tmp_path, rows):
    """Rows of one deployment are labelled ten times as often: the pooled rate is between them, by their numbers."""
    rng = random.Random(7)
    told = []
    for name, share, label in (("m1", 0.9, "E"), ("m2", 0.3, "D")):
        own = [row for row in rows if row["deployment"] == name and row["elab"] != "Abstain"]
        told += [
            {"id": row["id"], "label": label, "inclusion": share} for row in rng.sample(own, round(share * len(own)))
        ]
    metrics = pooled(analysed(tmp_path, rows, told))["metrics"]
    share = sum(r["deployment"] == "m1" for r in rows if r["elab"] != "Abstain") / sum(
        r["elab"] != "Abstain" for r in rows
    )
    assert metrics["ber_elab_full_corrected"]["value"] == pytest.approx(share, abs=0.05)


def test_too_few_labelled_statements_are_told(tmp_path, rows, labelled):
    metrics = pooled(analysed(tmp_path, rows, labelled[:9]))["metrics"]
    assert metrics["ber_elab_full_corrected"]["missing"].endswith(
        "statements with people's labels in the full base, 15 needed"
    )
    none = analysed(tmp_path, rows, [{"id": row["id"], "label": "E"} for row in rows if row["deployment"] == "m1"])
    other = next(group for group in none["deployments"] if group["by"]["deployment"] == "m2")
    assert other["metrics"]["ber_elab_corrected"] == {"missing": "no person's label in the eligible base"}


def test_kappa_with_the_panel_its_judges_and_another_person(tmp_path, rows, labelled):
    rng = random.Random(11)
    second = [{**line, "reviewer": "ben", "label": rng.choice([line["label"], "N"])} for line in labelled[:120]]
    kappa = analysed(tmp_path, rows, labelled + second)["reviews"]["kappa"]
    told = {(each["reviewer"], each["other"]): each for each in kappa if each["deployment"] is None}
    assert set(told) == {(who, other) for who in ("anna", "ben") for other in ("panel", "j0", "j1", "j2")} | {
        ("anna", "ben")
    }
    panel = {row["id"]: row["elab"] for row in rows}
    pairs = [(LABELS.index(x["label"]), LABELS.index(panel[x["id"]])) for x in labelled if panel[x["id"]] != "Abstain"]
    first, other = (np.array(column) for column in zip(*pairs, strict=True))
    own = told["anna", "panel"]
    assert (own["n"], own["value"]) == (len(pairs), pytest.approx(cohen_kappa(confusion_matrix(first, other, 5))))
    assert own["low"] < own["value"] < own["high"]
    assert told["anna", "ben"]["kind"] == "reviewer"
    assert {each["deployment"] for each in kappa} == {None, "m1", "m2"}


def test_a_label_of_the_selection_is_compared_with_the_rules_and_corrects_nothing(tmp_path, rows):
    told = [{"id": row["id"], "layer": "sel", "label": row["sel"]} for row in rows if row["sel"] != "Abstain"]
    document = analysed(tmp_path, rows, told)
    (own,) = [each for each in document["reviews"]["kappa"] if each["deployment"] is None]
    assert (own["other"], own["layer"], own["value"], own["low"]) == ("rule", "sel", 1.0, 1.0)
    assert pooled(document)["metrics"]["ber_elab_corrected"]["missing"] == "no person's label in the eligible base"


def test_a_later_label_of_the_same_person_counts_and_the_order_of_rows_does_not(tmp_path, rows, labelled):
    before = [{**line, "label": "R"} for line in labelled]
    first = analysed(tmp_path, rows, before + labelled)
    assert first == analysed(tmp_path, rows[::-1], labelled[::-1])
    assert first["reviews"]["n"] == 150


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (['{"id": "r1", "label": "X"}'], "1: label must be one of E QE N D R Abstain (layer elab)"),
        (['{"id": "r1", "layer": "sel", "label": "QE"}'], "1: label must be one of E N D R Abstain (layer sel)"),
        (['{"id": "r1", "layer": "top", "label": "E"}'], "1: layer must be one of sel, elab"),
        (['{"id": "r1", "label": "E"}', '{"label": "E"}'], "2: id is missing"),
        (['{"id": [], "label": "E"}'], "1: id must be text or a whole number"),
        (['{"id": 1, "label": ["E"]}'], "1: label must be one of"),
        (['{"id": 1, "label": "E", "inclusion": {}}'], "1: inclusion must be a number"),
        (['{"id": 1, "label": "E", "inclusion": 0}'], "1: inclusion must be a number over 0 and at most 1"),
        (['{"id": 1, "label": "E", "inclusion": 0.5}', '{"id": 2, "label": "E"}'], "2: inclusion is missing"),
        (
            ['{"id": 1, "label": "E", "inclusion": 0.5}', '{"id": 1, "label": "D", "inclusion": 0.2}'],
            "2: inclusion is another than in line 1",
        ),
        (['{"id": "r1", "label": "E", "reviewer": "a\\u0007"}'], "1: reviewer must be a name"),
        (["nonsense"], "1: is not JSON"),
        ([""], "holds no rows"),
    ],
)
def test_bad_lines_are_named(tmp_path, lines, says):
    path = tmp_path / "reviews.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError) as raised:
        read_reviews(path)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_csv_is_read_too(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text('\ufeffid,label,text\nr1,QE,"two\nlines"\nr2,,x\n', encoding="utf-8")
    assert {key: each.opinions[0].label for key, each in read_reviews(path).items()} == {"r1": "QE"}
    for text, says in (("id,x\n1,2\n", "1: the header names no column 'label'"), ("id,label\nr1,Y\n", "2: label must")):
        path.write_text(text)
        with pytest.raises(InputError, match=says):
            read_reviews(path)


def run(coded, reviews, out):
    analyze(coded, out, by="deployment,task", seed=0, n_boot=20, reviews=reviews, skip_bad=False, as_json=False)


def test_the_command_prints_the_corrected_rates_and_the_page_shows_them(tmp_path, capsys, rows, labelled):
    coded = write_rows(tmp_path / "coded.jsonl", rows)
    told = write_rows(
        tmp_path / "reviews.jsonl", [*labelled, {"id": "r1", "label": None}, {"id": "else", "label": "E"}]
    )
    run(coded, told, tmp_path / "out")
    out, err = capsys.readouterr()
    assert "BER of the elaboration, corrected by 150 people's labels" in out
    assert err == f"warning: {told}: 1 of 151 ids are not in the rows\n"
    document = json.loads((tmp_path / "out" / "analysis.json").read_text())
    page = (tmp_path / "out" / "report.html").read_text()
    assert "People's labels" in page
    unreviewed = typed({key: value for key, value in document.items() if key != "reviews"}, AnalysisDocument)
    assert "People's labels" not in render_analysis(unreviewed).decode()


def test_labels_of_other_rows_are_a_mistake(tmp_path, rows):
    coded = write_rows(tmp_path / "coded.jsonl", rows)
    told = write_rows(tmp_path / "reviews.jsonl", [{"id": "else", "label": "E"}])
    with pytest.raises(UsageError, match="none of its 1 ids is the id of a row"):
        run(coded, told, tmp_path / "out")


@pytest.fixture(scope="module")
def paired(rows):
    """Labels of both layers of 150 rows: mostly those of the coder."""
    rng = random.Random(13)
    eligible = [row for row in rows if row["elab"] != "Abstain" and row["sel"] != "Abstain"]
    told = []
    for row in rng.sample(eligible, 150):
        sel = row["sel"] if rng.random() < 0.97 else rng.choice("ED")
        told.append({"id": row["id"], "label": person(row, rng), "reviewer": "anna"})
        told.append({"id": row["id"], "layer": "sel", "label": sel, "reviewer": "anna"})
    return told


def test_labels_of_both_layers_correct_ir_and_dni_as_the_kernels_do(tmp_path, rows, paired):
    document = analysed(tmp_path, rows, paired)
    base = [row for row in rows if row["elab"] != "Abstain" and row["sel"] != "Abstain"]
    place = {name: index for index, name in enumerate(sorted({row["statement_id"] for row in base}))}
    where = np.array([place[row["statement_id"]] for row in base])
    machine = {row["id"]: (row["sel"] == "E", row["elab"] in {"E", "QE"}) for row in base}
    cluster = {row["id"]: place[row["statement_id"]] for row in base}
    human: dict = {}
    for line in paired:
        human.setdefault(line["id"], {})[line.get("layer", "elab")] = line["label"] in {"E", "QE"}

    def sample(count):
        return LabelledSample(
            cluster=np.array([cluster[key] for key in human]),
            human=np.array([float(count(own["sel"], own["elab"])) for own in human.values()]),
            machine=np.array([float(count(*machine[key])) for key in human]),
            weight=np.ones(len(human)),
        )

    def everywhere(count):
        return np.bincount(where, [float(count(*machine[row["id"]])) for row in base])

    n = np.bincount(where).astype(float)
    counts = {
        "ir": lambda a, b: a != b,
        "dni": lambda a, b: int(a) - int(b),
        "ber_union": lambda a, b: a or b,
        "ber_cor": lambda a, b: a and b,
        "oed": lambda a, b: a and not b,
        "ued": lambda a, b: b and not a,
    }
    metrics = pooled(document)["metrics"]
    for name, count in counts.items():
        kernel = prediction_powered_difference if name == "dni" else prediction_powered_rate
        expected = kernel(everywhere(count), n, sample(count))
        said = metrics[f"{name}_corrected"]
        assert (said["value"], said["low"], said["high"]) == pytest.approx(
            (expected.value, expected.low, expected.high)
        )
        assert (said["n"], said["n_labelled"], said["base"]) == (len(base), 150, "eligible")
    ratio = prediction_powered_ratio(
        everywhere(counts["ir"]), everywhere(counts["ber_union"]), n, sample(counts["ir"]), sample(counts["ber_union"])
    )
    assert ratio is not None
    assert metrics["ir_over_union_corrected"]["value"] == pytest.approx(ratio.value)


def test_two_people_count_by_their_own_pairs(tmp_path, rows):
    """Anna reads E and E, Ben D and D: neither finds a disagreement of the layers, and together they find none."""
    own = [row for row in rows if row["elab"] != "Abstain" and row["sel"] != "Abstain"]
    told = [
        {"id": row["id"], "layer": layer, "label": label, "reviewer": name}
        for row in own
        for name, label in (("anna", "E"), ("ben", "D"))
        for layer in ("sel", "elab")
    ]
    metrics = pooled(analysed(tmp_path, rows, told))["metrics"]
    assert metrics["ir_corrected"]["value"] == 0
    assert metrics["ber_cor_corrected"]["value"] == pytest.approx(0.5)
    apart = [line for line in told if (line["reviewer"] == "anna") == (line["layer"] == "sel")]
    assert pooled(analysed(tmp_path, rows, apart))["metrics"]["oed_corrected"]["value"] == 1


def test_labels_of_both_layers_are_shown(tmp_path, rows, paired, capsys):
    coded = write_rows(tmp_path / "coded.jsonl", rows)
    run(coded, write_rows(tmp_path / "reviews.jsonl", paired), tmp_path / "out")
    assert "IR and DNI, corrected by people's labels of both layers" in capsys.readouterr().out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Both layers, corrected with people&#39;s labels of both" in page
    assert "must have been misread" not in page
    run(coded, None, tmp_path / "plain")
    assert "must have been misread" in (tmp_path / "plain" / "report.html").read_text()
