"""What IR and DNI support depends on who read the texts: no verdict by one judge, and the error that explains them."""

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.documents.json_entries import typed
from support.worlds.coded_rows import coded_rows, write_rows

from auditor.counting.joint import SHAPE
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Missing
from auditor.documents.codec import canonical_bytes
from auditor.domain.estimate import Estimate
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.metrics.divergence import misreading
from auditor.report.analysis import render_analysis
from auditor.reviews.labelled_rows import read_reviews

CONDITIONS = [("BJ", "self", "none", "neutral"), ("BJ", "self", "sociologist", "neutral")]
OPTIONS = Options(n_boot=50)
REASON = "the lexicon alone read the texts: no verdict on IR or DNI without a second judge"


def rows_by(*judges):
    """Answers to 180 statements that these judges read, all with the same vote."""
    rows = list(coded_rows(CONDITIONS, deployments=1, statements=180))
    return [row | {"votes": [{"judge": name, "label": row["elab"]} for name in judges]} for row in rows]


def analysed(folder, rows, reviews=None):
    coded = write_rows(folder / "coded.jsonl", rows)
    found = None if reviews is None else read_reviews(write_rows(folder / "reviews.jsonl", reviews))
    return json.loads(canonical_bytes(analyse(read_tallies(coded, OPTIONS, None, found), OPTIONS)))


def verdicts(document):
    """Return the trap, the change of sign off the baseline, and the verdicts on the levels of the role."""
    (group,) = document["deployments"]
    flips = [one["sign_flip"] for one in document["conditions"] if one["by"]["role"] != "none"]
    levels = [
        level["verdict"] for entry in document["mitigation"] if entry["factor"] == "role" for level in entry["levels"]
    ]
    return [group["cancellation_trap"], *flips, *levels]


def test_the_lexicon_alone_supports_no_verdict_and_the_page_says_why(tmp_path):
    document = analysed(tmp_path, rows_by("lexicon"))
    assert all(found == {"missing": REASON} for found in verdicts(document))
    page = render_analysis(typed(document, AnalysisDocument)).decode()
    assert f"There is no verdict on IR or DNI: {REASON}." in page
    for word in ("over-estimates</td>", "under-estimates</td>"):
        assert word not in page


@pytest.mark.parametrize("judges", [("lexicon", "north"), ("north", "east"), ()])
def test_two_judges_or_unnamed_readers_support_verdicts(tmp_path, judges):
    found = verdicts(analysed(tmp_path, rows_by(*judges)))
    assert len(found) >= 3
    assert all(isinstance(one, str | bool) for one in found)


def test_labels_of_both_layers_support_a_verdict_on_the_trap(tmp_path):
    rows = rows_by("lexicon")
    told = [
        {"id": row["id"], "layer": layer, "label": "E"}
        for row in rows
        if row["sel"] != "Abstain" and row["elab"] != "Abstain"
        for layer in ("sel", "elab")
    ]
    (group,) = analysed(tmp_path, rows, told)["deployments"]
    assert group["metrics"]["ir_corrected"]["value"] == 0
    assert group["cancellation_trap"] == "excluded"
    (few,) = analysed(tmp_path, rows, told[:120])["deployments"]
    assert "no verdict on" in few["cancellation_trap"]["missing"]


def entries(n11, n10, n01, n00):
    """Return what explains IR and DNI of a table, with intervals of three points to each side."""
    totals = np.zeros(SHAPE)
    totals[0, 0], totals[0, 3], totals[2, 0], totals[2, 3] = n11, n10, n01, n00
    total = n11 + n10 + n01 + n00

    def told(value):
        return Estimate(
            value=value, low=value - 0.03, high=value + 0.03, base="eligible", method="wilson", n=total, n_statements=9
        )

    return misreading(told((n10 + n01) / total), told((n10 - n01) / total), totals)


def test_the_error_that_explains_ir_and_dni():
    found = entries(10, 4, 11, 75)
    assert (found["ir"].value, found["ir"].bound) == pytest.approx((0.15, 0.12))
    assert (found["dni"].value, found["dni"].bound) == pytest.approx((0.07, 0.04))
    # BER_sel is .14: of texts misread alike, .86 become endorsements for .14 that stop to be: .07 / (.86 - .14).
    assert found["dni"].symmetric_elab == pytest.approx(0.07 / 0.72)
    # Selections misread alike would endorse more often than the texts, and these endorse less often.
    assert isinstance(found["dni"].symmetric_sel, Missing)
    assert entries(10, 4, 5, 81)["dni"].bound == 0


shares = st.integers(0, 500)


@given(shares, shares, st.floats(0.001, 0.49))
def test_a_symmetric_error_of_agreeing_layers_is_recovered(both, neither, chance):
    """Layers that always agree, with texts misread alike at a chance: the entry returns the chance."""
    assume(both + neither > 0)
    found = entries(both * (1 - chance), both * chance, neither * chance, neither * (1 - chance))
    assert found["ir"].symmetric_elab == pytest.approx(chance)
    if both != neither:
        assert found["dni"].symmetric_elab == pytest.approx(chance)
    assert found["dni"].value <= found["ir"].value + 1e-12
