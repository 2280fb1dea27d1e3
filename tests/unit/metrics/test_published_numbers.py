"""What BiAxisAudit prints, recomputed by our measures: the same where the paper agrees with itself, ours where not.

The numbers stand here in full; ``test_paper_vectors`` goes through the whole list of them where it is at hand.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import t

from auditor.counting.joint import SHAPE
from auditor.metrics.rates import METRICS, bias_endorsement_rates, point
from auditor.stats.ranks import spearman, spearman_leave_one_out
from auditor.stats.variance import eta_squared_factorial, eta_squared_oneway

#: Table III: counts (n11, n10, n01, n00) that round to every printed value, and what is printed.
TABLE_III = {
    "LLaMA-3 70B": ((2392, 1698, 826, 4466), (0.436, 0.343, 0.255, 0.524, 0.269, 0.093)),
    "Doubao Seed 2 Lite": ((1453, 2558, 514, 5137), (0.415, 0.204, 0.150, 0.468, 0.318, 0.212)),
    "DeepSeek V3": ((1738, 2082, 775, 5539), (0.377, 0.248, 0.172, 0.453, 0.282, 0.129)),
    "Qwen Plus": ((864, 1806, 602, 7670), (0.244, 0.134, 0.079, 0.299, 0.220, 0.110)),
    "GPT-OSS 20B": ((237, 82, 88, 1176), (0.202, 0.205, 0.150, 0.257, 0.107, -0.004)),
    "GPT-5.4": ((120, 160, 206, 2162), (0.106, 0.123, 0.045, 0.184, 0.138, -0.017)),
    "Gemini 3 Flash": ((110, 92, 541, 12401), (0.015, 0.050, 0.008, 0.057, 0.048, -0.034)),
    "Claude Sonnet 4.6": ((109, 200, 36, 8743), (0.034, 0.016, 0.012, 0.038, 0.026, 0.018)),
}
NAMES = ("ber_sel", "ber_elab", "ber_cor", "ber_union", "ir", "dni")
#: Table IX: selection on CTO, SC, BJ, Rate, then elaboration on the same.
TABLE_IX = {
    "Qwen Plus": (0.645, 0.127, 0.029, 0.033, 0.134, 0.098, 0.112, 0.089),
    "DeepSeek V3": (0.773, 0.219, 0.064, 0.109, 0.248, 0.201, 0.187, 0.223),
    "Claude Sonnet 4.6": (0.228, 0.035, 0.025, 0.001, 0.016, 0.012, 0.018, 0.009),
    "Doubao Seed 2 Lite": (0.772, 0.172, 0.168, 0.193, 0.204, 0.189, 0.176, 0.198),
    "Gemini 3 Flash": (0.683, 0.212, 0.105, 0.119, 0.050, 0.041, 0.038, 0.052),
    "GPT-5.4": (0.692, 0.133, 0.118, 0.172, 0.123, 0.109, 0.098, 0.134),
    "GPT-OSS 20B": (0.696, 0.325, 0.241, 0.077, 0.205, 0.198, 0.187, 0.176),
    "LLaMA-3 70B": (0.733, 0.152, 0.089, 0.270, 0.348, 0.312, 0.289, 0.334),
}
#: Templates of CTO, SC, BJ, Rate in the OAT grid: BJ carries all other factors' sweeps.
TEMPLATES = np.array([20, 20, 301, 20])


def totals(counts):
    out = np.zeros(SHAPE)
    out[0, 0], out[0, 3], out[2, 0], out[2, 3] = counts
    return out


def printed(name):
    return np.array([row[1][NAMES.index(name)] for row in TABLE_III.values()])


@pytest.mark.parametrize("model", TABLE_III)
def test_table_three(model):
    counts, expected = TABLE_III[model]
    found = [point(METRICS[name], totals(counts)) for name in NAMES]
    assert found == pytest.approx(expected, abs=0.0005)


def test_table_three_pooled_is_response_weighted():
    pooled = sum(totals(counts) for counts, _ in TABLE_III.values())
    assert pooled.sum() == 66_583
    found = [point(METRICS[name], pooled) for name in NAMES]
    assert found == pytest.approx((0.236, 0.159, 0.106, 0.290, 0.184, 0.077), abs=0.001)


def test_mean_over_models_is_another_number_than_the_pooled_one():
    """63.6 % is the pooled ratio; the paper calls it the average over models, which is 65.5 %."""
    rates = bias_endorsement_rates(np.array([counts for counts, _ in TABLE_III.values()], dtype=float))
    assert printed("ir").mean() == pytest.approx(0.176, abs=0.0005)
    assert rates["ir"].mean() == pytest.approx(0.176, abs=0.0005)
    pooled = sum(totals(counts) for counts, _ in TABLE_III.values())
    assert point(METRICS["ir_over_union"], pooled) == pytest.approx(0.636, abs=0.0028)
    assert (printed("ir") / printed("ber_union")).mean() == pytest.approx(0.655, abs=0.0005)
    assert rates["ir_over_union"].min() == pytest.approx(0.418, abs=0.002)
    assert rates["ir_over_union"].max() == pytest.approx(0.852, abs=0.0005)


def test_direction_of_divergence():
    """Five models endorse more by selection, three more by elaboration; three by over ten points; mean |DNI| 7.7."""
    dni = printed("dni")
    assert ((dni > 0).sum(), (dni < 0).sum()) == (5, 3)
    assert (abs(dni) > 0.10).sum() == 3
    assert abs(dni).mean() == pytest.approx(0.077, abs=0.0005)  # the paper's Fig. 2(b): 7.5 pp


def test_the_paper_s_two_trap_cases_by_point_values():
    trapped = [model for model, (_, row) in TABLE_III.items() if row[4] > 0.1 and abs(row[5]) <= 0.02]
    assert trapped == ["GPT-OSS 20B", "GPT-5.4"]
    ratio = {model: abs(row[5]) / row[4] for model, (_, row) in TABLE_III.items()}
    assert [model for model in ratio if ratio[model] <= 0.2] == ["GPT-OSS 20B", "GPT-5.4"]
    # App. E-B speaks of GPT-OSS's "elevated DNI": it is -.004.
    assert TABLE_III["GPT-OSS 20B"][1][5] == -0.004


def test_rankings_agree_where_the_paper_says_they_do_not():
    """The paper: rho = .238, p = .570 "on the same responses". Its Table III: rho = 6/7, p = .0107 exact."""
    sel, elab = printed("ber_sel"), printed("ber_elab")
    result = spearman(sel, elab)
    # d = (0, 2, -1, 1, -2, 0, -1, 1) or so: sum d^2 = 12; rho = 1 - 72/504
    assert result.rho == pytest.approx(6 / 7)
    assert (result.p, result.p_method) == (pytest.approx(0.010714, abs=1e-6), "exact")
    assert spearman_leave_one_out(sel, elab) == pytest.approx((0.785714, 0.928571), abs=1e-6)


def test_published_rho_has_its_published_p_only_by_t():
    """rho = .238 of 8 is a sum of squared rank differences of 64: p = .582 by permutations, .570 by t."""
    y = next(
        order for order in (np.array(o, dtype=float) for o in _orders()) if ((np.arange(8.0) - order) ** 2).sum() == 64
    )
    result = spearman(np.arange(8.0), y)
    assert result.rho == pytest.approx(0.238, abs=0.0005)
    assert result.p == pytest.approx(0.582, abs=0.0005)
    statistic = result.rho * np.sqrt(6 / (1 - result.rho**2))
    assert 2 * t.sf(statistic, 6) == pytest.approx(0.570, abs=0.0005)


def _orders():
    rng = np.random.default_rng(0)
    while True:
        yield rng.permutation(8)


def test_attainable_leave_one_out_values():
    """The printed range [-.143, .429] are values of rho for seven items: sums of squared differences of 64 and 32."""
    found = tuple(1 - 6 * squares / (7 * 48) for squares in (64, 32))
    assert found == pytest.approx((-0.143, 0.429), abs=0.0005)


def test_first_of_selection_is_first_of_elaboration():
    """Finding 2 ranks LLaMA 4/8 by selection at 13.8 % and gives its elaboration as 25.5 %: both are other measures."""
    counts = totals(TABLE_III["LLaMA-3 70B"][0])
    assert point(METRICS["ber_sel"], counts) == pytest.approx(0.436, abs=0.0005)
    assert point(METRICS["ber_elab"], counts) == pytest.approx(0.343, abs=0.0005)
    assert point(METRICS["ber_cor"], counts) == pytest.approx(0.255, abs=0.0005)
    assert printed("ber_sel").argmax() == printed("ber_elab").argmax() == 0


def full_base(model):
    return float((np.array(TABLE_IX[model][:4]) * TEMPLATES).sum() / TEMPLATES.sum())


def test_full_base_is_another_base():
    """The 13.8 % is LLaMA's rate on the full base: rank 5 there, by the paper's own rows (it says 4)."""
    assert full_base("LLaMA-3 70B") == pytest.approx(0.138, abs=0.0006)
    ordered = sorted(TABLE_IX, key=full_base, reverse=True)
    assert ordered.index("LLaMA-3 70B") + 1 == 5
    sel = np.array([full_base(model) for model in TABLE_III])
    mixed = spearman(sel, printed("ber_elab"))
    assert mixed.rho == pytest.approx(0.2619, abs=0.0001)  # the paper's .238 mixes bases, and one swap


@pytest.mark.parametrize(
    ("column", "ours", "theirs"),
    [
        (0, 0.653, 0.675),
        (1, 0.172, 0.178),
        (2, 0.105, 0.104),
        (3, 0.122, 0.122),
        (4, 0.166, 0.166),
        (5, 0.145, 0.145),
        (6, 0.138, 0.138),
        (7, 0.152, 0.152),
    ],
)
def test_table_nine_means(column, ours, theirs):
    mean = np.mean([row[column] for row in TABLE_IX.values()])
    assert mean == pytest.approx(ours, abs=0.0005)
    assert (abs(mean - theirs) > 0.001) == (column in {0, 1})


def test_table_nine_order_and_deltas():
    assert all(row[0] > row[1] > row[2] for row in TABLE_IX.values())
    mean = np.mean(list(TABLE_IX.values()), axis=0)
    assert mean[0] - mean[2] == pytest.approx(0.548, abs=0.0005)  # the paper: .573
    claude = TABLE_IX["Claude Sonnet 4.6"][:4]
    assert (min(claude), max(claude)) == (0.001, 0.228)  # the paper: near-zero, .001-.025
    assert 128 <= 0.193 / 0.001 <= 387  # its 175-fold ratio, within the rounding of .001
    same = sum(TABLE_IX[model][4] == TABLE_III[model][1][1] for model in TABLE_IX)
    assert same == 7  # one column is the pooled elaboration rate of Table III but for LLaMA: mis-populated


@pytest.mark.parametrize(
    ("union", "sel"), [(0.193, 0.228), (0.001, 0.025), (0.202, 0.692), (0.564, 0.675), (0.070, 0.104)]
)
def test_union_can_never_be_below_selection(union, sel):
    """Sections V-B and Table IX together print unions below selections; no counts give that."""
    rng = np.random.default_rng(0)
    rates = bias_endorsement_rates(rng.integers(1, 50, (500, 4)).astype(float))
    assert (rates["ber_union"] >= np.maximum(rates["ber_sel"], rates["ber_elab"])).all()
    assert union < sel


def test_eta_of_selection_by_task():
    """.130 comes out with response-level variance, the grid's weights, and the rows' CTO mean of .653 (not .675)."""
    means = np.array([0.65275, 0.171875, 0.104875, 0.12175])
    assert eta_squared_oneway(means * TEMPLATES, TEMPLATES) == pytest.approx(0.130, abs=0.0005)
    printed_means = np.array([0.675, 0.178, 0.104, 0.122])
    assert eta_squared_oneway(printed_means * TEMPLATES, TEMPLATES) == pytest.approx(0.141, abs=0.0005)
    assert eta_squared_oneway(means, np.ones(4)) == pytest.approx(0.265, abs=0.0005)


def test_eta_of_elaboration_by_task_is_next_to_nothing():
    """The paper: .018. Means of .138 to .166 allow at most .0015 at the level of responses."""
    means = np.array([0.166, 0.145, 0.138, 0.152])
    assert eta_squared_oneway(means, np.ones(4)) == pytest.approx(0.00084, abs=1e-5)
    extreme = max(eta_squared_oneway([0.166 * w, 0.138 * (1 - w)], [w, 1 - w]) for w in np.linspace(0.01, 0.99, 99))
    assert extreme == pytest.approx(0.0015, abs=0.0001)


def test_eta_of_union_by_task_cannot_be_what_is_printed():
    """The paper: .395. Rates between .07 and .564 share out at most .302, whatever the weights."""
    extreme = max(eta_squared_oneway([0.07 * (1 - w), 0.564 * w], [1 - w, w]) for w in np.linspace(0.01, 0.99, 99))
    assert extreme == pytest.approx(0.302, abs=0.0005)
    means = np.array([0.07, 0.328, 0.564, 0.085, 0.1, 0.15])
    weights = np.array([301, 20, 20, 20, 20, 20])
    assert eta_squared_oneway(means * weights, weights) < 0.302


def test_factorial_reproduces_table_four_from_figure_seven():
    """Cell means CTO .346 / .084, SC .150 / .213, BJ nothing; 1,600 responses a cell."""
    cells = np.array([[0.346, 0.084], [0.150, 0.213], [0.0, 0.0]])
    shares = eta_squared_factorial(cells * 6400, np.full((3, 2), 6400))
    assert shares[(0,)] == pytest.approx(0.078, abs=0.001)
    assert shares[(1,)] == pytest.approx(0.009, abs=0.001)
    assert shares[(0, 1)] == pytest.approx(0.043, abs=0.001)
    assert cells[0].mean() == pytest.approx(0.215)
    assert cells[1].mean() == pytest.approx(0.182, abs=0.0006)
    assert np.diff(cells, axis=1).ravel()[:2] == pytest.approx((-0.262, 0.063))


def test_interactions_do_not_exceed_the_main_effects():
    """The abstract says they do; Table IV sums to .099 of main effects and .061 of interactions."""
    task, role, perspective, sentiment, *interactions = (
        0.078, 0.012, 0.0, 0.009, 0.011, 0.001, 0.043, 0.0, 0.005, 0.001,
    )  # fmt: skip
    assert task + role + perspective + sentiment == pytest.approx(0.099)
    assert sum(interactions) == pytest.approx(0.061)
    assert interactions[2] / sentiment == pytest.approx(4.8, abs=0.05)
    assert interactions[2] / task == pytest.approx(0.55, abs=0.005)


def test_spread_and_disagreement_can_equal_the_tolerance():
    """Proposition 3 claims strictly more than delta; its own constructions give exactly delta."""
    delta, eps = 0.2, 0.05
    assert max(eps, eps + delta) - min(eps, eps + delta) == pytest.approx(delta)
    rates = bias_endorsement_rates(np.array([0.0, delta / 2, delta / 2, 1 - delta]))
    assert (float(rates["ir"]), float(rates["dni"])) == (pytest.approx(delta), 0.0)


def test_kappas_within_the_panel_are_further_off_than_said():
    """Eight judges make 28 pairs; .79 lies .05, not .03, from the mean of .74."""
    assert len([pair for pair in np.ndindex(8, 8) if pair[0] < pair[1]]) == 28
    widest, mean = 0.79, 0.74
    assert widest - mean == pytest.approx(0.05)


def test_signs_per_task_make_sixteen_flips():
    """CTO and SC positive, BJ (the baseline's task) negative in each of 8 cells: 16 of 24 flip."""
    signs = np.repeat([1, 1, -1], 8)
    assert (signs != signs[-1]).sum() == 16
    assert all(later <= earlier for earlier, later in pairwise(signs))
