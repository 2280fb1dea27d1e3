"""Every published number that concerns the measures, from the list kept beside this project; skipped without it."""

import json
from collections import Counter
from math import prod

import numpy as np
import pytest
from support.paths import SHARED

from auditor.instrument.designs import FACTORS, Design, cells
from auditor.instrument.pool import shipped_pool
from auditor.metrics.ranks import mean_rates
from auditor.metrics.rates import bias_endorsement_rates
from auditor.metrics.tradeoff import token_tradeoff
from auditor.stats.differences import tost
from auditor.stats.ranks import spearman, spearman_leave_one_out
from auditor.stats.variance import eta_squared_factorial, eta_squared_oneway

FILE = SHARED / "reference" / "paper_vectors.json"
VECTORS = {each["id"]: each for each in json.loads(FILE.read_text())} if FILE.exists() else {}
pytestmark = pytest.mark.skipif(not VECTORS, reason="the list of published numbers is not here")

#: Sizes of effects, and what of the mitigation and of the peers' paper contradicts itself: told where it is computed.
ELSEWHERE = (
    "XII.",
    "XIII.",
    "XIV.DNI_sign",
    "XV.",
    "VI.nonadditive",
    "VI-B.",
    "baseline_cell",
    "rb.",
)
#: What is true or false of printed numbers alone: ``test_published_numbers`` says it in full.
PROSE = {
    "panel", "kappa.pairs", "kappa.within03", "B2.gptoss", "prop3", "alphabet", "fig8.groups",
    "fig8.flips", "claude.ratio", "F-B1.order", "F-B1.delta", "F-B1.claude", "tableIX.CTOe_eq_pooled", "IRunion.range",
    "spearman.loo_range", "spearman.p_from_rho", "eta.task_oat", "eta.elab_task", "tableIV.interactions_exceed_main",
    "tableIV.dominant", "fullbase.rank", "finding2.llama_sel", "finding2.llama_elab", "trap", "fig2b.gt10pp",
    "eta.tableIV_definition", "fig7.cell_averages", "fig7.shift", "DNI.signs", "fig2b.meanabs", "IRunion.pooled",
}  # fmt: skip


def of(prefix):
    return [each for each in VECTORS if each.startswith(prefix)]


def rates_of(counts):
    rates = bias_endorsement_rates(np.array(counts, dtype=float))
    named = {
        "BER_sel": rates["ber_sel"],
        "BER_elab": rates["ber_elab"],
        "BER_cor": rates["ber_cor"],
        "BER_union": rates["ber_union"],
    }
    return named | {"IR": rates["ir"], "DNI": rates["dni"], "IR_over_union": rates["ir_over_union"]}


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


def test_designs():
    one_at_a_time, pool, models = cells(Design.OAT), shipped_pool(), 8
    templates = sum(len(cell.templates) for cell in one_at_a_time)
    explicit = sum(len(cell.templates) for cell in one_at_a_time if cell.condition.task.has_selection)
    found = {
        "conditions": len(one_at_a_time),
        "templates": templates,
        "per_model": templates * len(pool),
        "all": templates * len(pool) * models,
        "explicit_answer": explicit * len(pool) * models,
        "interaction": len(cells(Design.FACTORIAL)) * len(pool) * models,
        "full": prod(len(levels) for levels in FACTORS.values()),
        "tableV_sum": len(pool),
    }
    assert found == {name: VECTORS[f"design.{name}"]["expected"] for name in found}
    sizes = VECTORS["design.tableV_sum"]["inputs"]["counts"]
    assert sorted(Counter(statement.category for statement in pool).values()) == sorted(sizes)
    valid = VECTORS["design.valid_sel"]
    assert sum(valid["inputs"]["n_sel"]) == valid["expected"] == found["explicit_answer"] - 94


def mean_selection(rates):
    """Average printed selection rates over their models."""
    return float(mean_rates(np.array([[0, 1000 * rate, 0, 1000 * (1 - rate)] for rate in rates]))["ber_sel"])


ROLES = [each for each in of("tableX.") if each != "tableX.delta"]
FRAMINGS = [each for each in of("tableXII.") if each != "tableXII.delta"]


@pytest.mark.parametrize("name", [*ROLES, *FRAMINGS])
def test_mitigation_tables_are_means_of_models(name):
    vector = VECTORS[name]
    found = mean_selection(vector["inputs"].values())
    assert found == pytest.approx(vector["recomputed"], abs=1e-9)
    agrees = found == pytest.approx(vector["expected"], abs=vector["tolerance"])
    assert agrees == (vector["status"] == "reproduced")


def test_differences_from_the_neutral_role():
    means = {name.removeprefix("tableX."): mean_selection(VECTORS[name]["inputs"].values()) for name in ROLES}
    for role, expected in VECTORS["tableX.delta"]["expected"].items():
        assert means[role] - means["neutral"] == pytest.approx(expected, abs=VECTORS["tableX.delta"]["tolerance"])


def test_differences_from_the_neutral_framing_are_those_of_the_printed_means():
    """Table XIII's own rows give +.209 and +.027."""
    printed = {name: VECTORS[name]["expected"] for name in FRAMINGS}
    rows = {name: mean_selection(VECTORS[name]["inputs"].values()) for name in FRAMINGS}
    framings = ("tableXII.negative", "tableXII.positive")
    vector = VECTORS["tableXII.delta"]
    for means, expected in ((printed, vector["expected"]), (rows, (0.209, 0.027))):
        found = [means[name] - means["tableXII.neutral"] for name in framings]
        assert found == pytest.approx(expected, abs=vector["tolerance"])


def weighed(options):
    """Weigh printed rates against printed tokens: 200 statements that all answer alike."""
    rates, tokens = np.array(list(options.values())).T
    y = np.tile(1000 * rates, (200, 1))
    found = token_tradeoff(list(options), y, np.full_like(y, 1000), tokens, n_boot=1, seed=0)
    return {option.name: option for option in found.options}


@pytest.mark.parametrize(
    ("name", "worst", "best"),
    [("VI.96pct", 0.675, 0.024), ("VI.85pct", 0.675, 0.104), ("XIV.77", 0.104, 0.024), ("VI.role83", 0.138, 0.024)],
)
def test_reductions(name, worst, best):
    found = weighed({"worst": (worst, 1.0), "best": (best, 1.0)})["best"].reduction
    assert found == pytest.approx(VECTORS[name]["expected"], abs=VECTORS[name]["tolerance"])
    assert found == pytest.approx(VECTORS[name]["recomputed"])


def test_token_costs():
    vector = VECTORS["XIV.tokens"]
    tokens = vector["inputs"]
    by_cto = weighed({name: (0.5, count) for name, count in tokens.items()})
    by_bj = weighed({name: (0.5, tokens[name]) for name in ("BJ", "BJ+ae")})
    found = [by_cto["BJ"].cost, by_bj["BJ+ae"].cost - 1, by_cto["BJ+ae"].cost, by_cto["SC"].cost]
    assert found == pytest.approx(vector["recomputed"])
    # SC's 1.549 was printed as 1.6.
    assert found == pytest.approx(vector["expected"], abs=vector["tolerance"] + 0.002)


def test_frontier_of_the_paper_leaves_the_cheapest_out():
    vector = VECTORS["pareto"]
    found = {name for name, option in weighed(vector["inputs"]).items() if option.on_frontier}
    assert found == set(vector["recomputed"]) == {"CTO", *vector["expected"]}


@pytest.mark.parametrize("name", of("tost."))
def test_equivalence_of_peers(name):
    vector = VECTORS[name]
    given, expected, ours = vector["inputs"], vector["expected"], vector["recomputed"]
    found = tost(given["diff"], given["se"], given["df"], given["delta"])
    for side in ("t_lower", "t_upper"):
        assert getattr(found, side) == pytest.approx(expected[side], abs=vector["tolerance"][side])
    # The p values are those of the printed t: difference and margin in units of the standard error.
    lower, upper = expected["t_lower"], expected["t_upper"]
    printed = tost((lower + upper) / 2, 1, given["df"], (lower - upper) / 2)
    assert (printed.p_lower, printed.p_upper) == pytest.approx((ours["p_lower"], ours["p_upper"]), rel=1e-6)
    assert found.p_different == pytest.approx(ours["p_min_effect"], rel=1e-6)
    assert found.verdict == printed.verdict
    # In every case of the paper the honest verdict is one of the two sure ones.
    assert (found.verdict == "equivalent") == (expected["result"] == "Equivalent")
    assert (found.verdict == "different") == (ours["conclusion_strict"] == "Relatively Biased")


def test_religion_is_where_the_task_explains_less_than_twice_the_sentiment():
    """Section V-E: .052 and .033 there; in nine of ten categories the task explains over twice as much."""
    task, sentiment = 0.052, 0.033
    assert task / sentiment == pytest.approx(VECTORS["religion"]["recomputed"])
    assert task < 2 * sentiment


def test_no_published_number_is_forgotten():
    """Whatever the list marks as checkable is recomputed here, told in full beside, or another room's."""
    here = {*MODELS, *of("tableIII.identities."), "tableIII.pooled", "IR.mean_unweighted", "IRunion.mean"}
    here |= {*of("tableIX.mean."), *of("chain."), "fullbase.llama", "spearman.tableIII", "spearman.mixed_base"}
    here |= {"eta.sel_task", "eta.tableIV_definition", "tableIV.dominant", "pareto", "XIV.tokens", "XIV.77", "religion"}
    here |= {*of("design."), *of("tableX."), *of("tableXII."), *of("tost."), "VI.96pct", "VI.85pct", "VI.role83"}
    checkable = {each for each, vector in VECTORS.items() if vector["status"] != "not_checkable"}
    left = checkable - here - PROSE
    assert {each for each in left if not each.startswith(ELSEWHERE)} == set()
    assert {each for each in left if VECTORS[each]["status"] == "reproduced"} == set()
