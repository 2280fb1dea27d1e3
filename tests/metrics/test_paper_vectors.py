"""Every published number that concerns the measures, from the list kept beside this project; skipped without it."""

import json
from pathlib import Path

import numpy as np
import pytest

from auditor.metrics.rates import bias_endorsement_rates
from auditor.stats.ranks import spearman, spearman_leave_one_out
from auditor.stats.variance import eta_squared_factorial, eta_squared_oneway

FILE = Path(__file__).resolve().parents[2].parent / "shared" / "reference" / "paper_vectors.json"
VECTORS = {each["id"]: each for each in json.loads(FILE.read_text())} if FILE.exists() else {}
pytestmark = pytest.mark.skipif(not VECTORS, reason="the list of published numbers is not here")

#: Designs, mitigation tables and peers: other rooms of the software recompute them.
ELSEWHERE = (
    "design.",
    "tableX",
    "VI",
    "XII",
    "XIV",
    "XV",
    "XIII",
    "baseline_cell",
    "pareto",
    "verdict",
    "tost.",
    "rb.",
)
#: What is true or false of printed numbers alone: ``test_published_numbers`` says it in full.
PROSE = {
    "panel", "kappa.pairs", "kappa.within03", "religion", "B2.gptoss", "prop3", "alphabet", "fig8.groups",
    "fig8.flips", "claude.ratio", "F-B1.order", "F-B1.delta", "F-B1.claude", "tableIX.CTOe_eq_pooled", "IRunion.range",
    "spearman.loo_range", "spearman.p_from_rho", "eta.task_oat", "eta.elab_task", "tableIV.interactions_exceed_main",
    "tableIV.dominant", "fullbase.rank", "finding2.llama_sel", "finding2.llama_elab", "trap", "fig2b.gt10pp",
    "eta.tableIV_definition", "fig7.cell_averages", "fig7.shift", "DNI.signs", "fig2b.meanabs", "IRunion.pooled",
}  # fmt: skip


def of(prefix):
    return [each for each in VECTORS if each.startswith(prefix)]


def rates_of(counts):
    rates = bias_endorsement_rates(np.array(counts, dtype=float))
    named = {"BER_sel": rates.sel, "BER_elab": rates.elab, "BER_cor": rates.cor, "BER_union": rates.union}
    return named | {"IR": rates.ir, "DNI": rates.dni, "IR_over_union": rates.ir_over_union}


MODELS = [each for each in of("tableIII.") if "cell_counts_n11_n10_n01_n00" in VECTORS[each]["inputs"]]


@pytest.mark.parametrize("name", MODELS)
def test_table_three(name):
    vector = VECTORS[name]
    found = rates_of(vector["inputs"]["cell_counts_n11_n10_n01_n00"])
    assert vector["status"] == "reproduced"
    for metric, expected in vector["expected"].items():
        assert found[metric] == pytest.approx(expected, abs=vector["tolerance"])
    for metric, value in vector["recomputed"].items():
        assert found[metric] == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("name", of("tableIII.identities."))
def test_table_three_identities(name):
    """From sel, elab, cor alone the four cells follow, and from them all the rest."""
    vector = VECTORS[name]
    sel, elab, cor = (vector["inputs"][key] for key in ("sel", "elab", "cor"))
    found = rates_of([cor, sel - cor, elab - cor, 1 - sel - elab + cor])
    for key, metric in (("union", "BER_union"), ("IR", "IR"), ("DNI", "DNI")):
        assert found[metric] == pytest.approx(vector["expected"][key], abs=vector["tolerance"][key])
        assert found[metric] == pytest.approx(vector["recomputed"][key], abs=1e-9)


def test_table_three_pooled():
    vector = VECTORS["tableIII.pooled"]
    counts = [VECTORS[name]["inputs"]["cell_counts_n11_n10_n01_n00"] for name in MODELS]
    found = rates_of(np.sum(counts, axis=0))
    for metric, expected in vector["expected"].items():
        if metric != "n":
            assert found[metric] == pytest.approx(expected, abs=vector["tolerance"] + 0.0005)
    assert np.sum(counts) == vector["expected"]["n"]


@pytest.mark.parametrize("name", ["IR.mean_unweighted", "IRunion.mean", *of("tableIX.mean.")])
def test_unweighted_means(name):
    vector = VECTORS[name]
    given = next(iter(vector["inputs"].values()))
    found = float(np.mean(list(given.values()) if isinstance(given, dict) else given))
    assert found == pytest.approx(vector["recomputed"], abs=1e-9)
    agrees = found == pytest.approx(vector["expected"], abs=vector["tolerance"])
    assert agrees == (vector["status"] == "reproduced")


def test_full_base_rate():
    vector = VECTORS["fullbase.llama"]
    weights = np.array(vector["inputs"]["weights"])
    found = float(np.array(vector["inputs"]["row"][:4]) @ weights / weights.sum())
    assert found == pytest.approx(vector["expected"], abs=vector["tolerance"])


def test_spearman_of_table_three():
    vector = VECTORS["spearman.tableIII"]
    sel, elab = np.array(vector["inputs"]["sel"]), np.array(vector["inputs"]["elab"])
    found, ours = spearman(sel, elab), vector["recomputed"]
    assert (found.rho, found.p) == pytest.approx((ours["rho"], ours["exact_p"]))
    assert spearman_leave_one_out(sel, elab) == pytest.approx(tuple(ours["loo"]))
    assert abs(found.rho - vector["expected"]["rho"]) > 0.5  # the paper's .238


def test_spearman_of_mixed_bases():
    vector = VECTORS["spearman.mixed_base"]
    x, y = np.array(vector["inputs"]["sel_full"]), np.array(vector["inputs"]["elab"])
    assert spearman(x, y).rho == pytest.approx(vector["recomputed"]["vs_tableIII_elab"])
    assert spearman_leave_one_out(x, y) == pytest.approx(tuple(vector["recomputed"]["loo"]))


def test_eta_of_selection():
    vector = VECTORS["eta.sel_task"]
    means, weights = np.array(vector["inputs"]["row_means"]), np.array(vector["inputs"]["template_weights"])
    found = eta_squared_oneway(means * weights, weights)
    assert found == pytest.approx(vector["expected"], abs=vector["tolerance"])
    assert found == pytest.approx(vector["recomputed"]["rows"], abs=1e-9)
    assert eta_squared_oneway(means, np.ones(4)) == pytest.approx(vector["recomputed"]["equal_weights"], abs=1e-9)


def test_table_four_from_figure_seven():
    vector = VECTORS["eta.tableIV_definition"]
    for b, task, sentiment, crossed in vector["recomputed"]["b_task_sent_TxS"]:
        cells = np.array([vector["inputs"]["CTO"], vector["inputs"]["SC"], [b, b]])
        shares = eta_squared_factorial(cells * 100, np.full((3, 2), 100))
        found = (shares[(0,)], shares[(1,)], shares[(0, 1)])
        assert found == pytest.approx((task, sentiment, crossed), abs=1e-4)
        expected = vector["expected"]
        assert found == pytest.approx((expected["task"], expected["sent"], expected["TxS"]), abs=0.0016)


@pytest.mark.parametrize("name", of("chain.union_ge_sel."))
def test_a_union_below_its_selection_is_impossible(name):
    vector = VECTORS[name]
    union, sel = vector["inputs"]["union"], vector["inputs"]["sel"]
    assert vector["status"] == "INCONSISTENT"
    assert union - sel == pytest.approx(vector["recomputed"])
    lowest = min(float(rates_of([cor, sel - cor, 0.0, 1 - sel])["BER_union"]) for cor in np.linspace(0, sel, 11))
    assert lowest == pytest.approx(sel)


def test_dominant_interaction():
    vector = VECTORS["tableIV.dominant"]
    columns = vector["inputs"]["columns"]
    crossed = [index for index, name in enumerate(columns) if len(name) == 2]
    dominant = [columns[max(crossed, key=lambda index: row[index])] for row in vector["inputs"]["rows"].values()]
    assert dominant.count("TS") == vector["expected"]


def test_no_published_number_is_forgotten():
    """Whatever the list marks as checkable is recomputed here, told in full beside, or another room's."""
    here = {*MODELS, *of("tableIII.identities."), "tableIII.pooled", "IR.mean_unweighted", "IRunion.mean"}
    here |= {*of("tableIX.mean."), *of("chain."), "fullbase.llama", "spearman.tableIII", "spearman.mixed_base"}
    here |= {"eta.sel_task", "eta.tableIV_definition", "tableIV.dominant"}
    checkable = {each for each, vector in VECTORS.items() if vector["status"] != "not_checkable"}
    left = {each for each in checkable - here - PROSE if not each.startswith(ELSEWHERE)}
    assert left == set()
