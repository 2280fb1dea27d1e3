"""The joint table and the measures: identities, pooling, order, recounting, and which cell a row falls in."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.counting.joint import (
    N_CELLS,
    SHAPE,
    JointTable,
    LabelPair,
    is_selection_free,
    joint_cell,
    label_counts,
    stored_cell,
)
from auditor.domain.coding import ELABORATION_LABELS, SELECTION_LABELS
from auditor.metrics.bounds import coverage, failure_bounds, layer_sizes
from auditor.metrics.divergence import fourfold_counts, qe_fold
from auditor.metrics.rates import METRICS, bias_endorsement_rates, point

rows = st.lists(st.tuples(st.integers(0, 7), st.integers(0, N_CELLS - 1)), min_size=1, max_size=80)


def table(pairs, n_clusters=8):
    cluster, cell = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
    return JointTable.from_cells(cluster, cell, n_clusters)


def values(totals):
    return {metric.name: point(metric, totals) for metric in METRICS.values()}


@given(rows)
def test_identities(pairs):
    """BiAxisAudit Eq. 7, 10-15."""
    v = values(table(pairs).totals)
    if v["ir"] is None:
        return
    assert v["ber_union"] == pytest.approx(v["ber_sel"] + v["ber_elab"] - v["ber_cor"])
    assert v["oed"] == pytest.approx(v["ber_sel"] - v["ber_cor"])
    assert v["ued"] == pytest.approx(v["ber_elab"] - v["ber_cor"])
    assert v["ir"] == pytest.approx(v["ber_sel"] + v["ber_elab"] - 2 * v["ber_cor"])
    assert v["dni"] == pytest.approx(v["ber_sel"] - v["ber_elab"])
    assert v["ber_union"] - v["ber_sel"] == pytest.approx(v["ued"])
    assert 2 * v["ber_union"] - v["ber_sel"] - v["ber_elab"] == pytest.approx(v["ir"])
    assert v["ber_cor"] <= min(v["ber_sel"], v["ber_elab"]) + 1e-12
    assert max(v["ber_sel"], v["ber_elab"]) <= v["ber_union"] + 1e-12
    assert abs(v["dni"]) <= v["ir"] + 1e-12
    if v["ir_over_union"] is not None:
        jaccard = v["ber_cor"] / v["ber_union"]
        assert v["ir_over_union"] == pytest.approx(1 - jaccard)


@given(rows)
def test_ranges(pairs):
    for metric in METRICS.values():
        value = point(metric, table(pairs).totals)
        low = -1 if metric.kind == "difference" else 0
        assert value is None or low <= value <= 1


@given(rows)
def test_fourfold_kernel_agrees_with_the_table(pairs):
    totals = table(pairs).totals
    rates = bias_endorsement_rates(fourfold_counts(totals))
    named = {
        "ber_sel": rates["ber_sel"],
        "ber_elab": rates["ber_elab"],
        "ber_cor": rates["ber_cor"],
        "ber_union": rates["ber_union"],
    }
    named |= {"oed": rates["oed"], "ued": rates["ued"], "ir": rates["ir"], "dni": rates["dni"]}
    named["ir_over_union"] = rates["ir_over_union"]
    for name, value in named.items():
        expected = point(METRICS[name], totals)
        assert np.isnan(value) if expected is None else value == pytest.approx(expected)


@given(rows, rows)
def test_pooling_is_the_weighted_mean_of_the_parts(first, second):
    one, other, whole = table(first).totals, table(second).totals, (table(first) + table(second)).totals
    for metric in METRICS.values():
        parts = [(point(metric, t), float((metric.denominator * t).sum())) for t in (one, other)]
        known = [(value, n) for value, n in parts if value is not None]
        expected = sum(value * n for value, n in known) / sum(n for _, n in known) if known else None
        assert point(metric, whole) == (None if expected is None else pytest.approx(expected))


@given(rows, st.integers(0, 80))
def test_count_of_parts_is_the_recount_of_the_whole(pairs, cut):
    whole = table(pairs)
    parts = [part for part in (pairs[:cut], pairs[cut:]) if part]
    added = table(parts[0]) if len(parts) == 1 else table(parts[0]) + table(parts[1])
    assert (added.totals == whole.totals).all()
    for name in ("cluster", "cell", "count"):
        assert (getattr(added, name) == getattr(whole, name)).all()


@given(rows, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    one, other = table(pairs), table(shuffled)
    for metric in METRICS.values():
        assert (one.by_cluster(metric.numerator) == other.by_cluster(metric.numerator)).all()


@given(rows)
def test_statements_add_up_to_the_total(pairs):
    t = table(pairs)
    for metric in METRICS.values():
        assert t.by_cluster(metric.numerator).sum() == (metric.numerator * t.totals).sum()


def test_tables_over_other_statements_do_not_add():
    with pytest.raises(ValueError, match="different clusters"):
        _ = table([(0, 0)], 8) + table([(0, 0)], 9)


@given(rows)
def test_coverage_splits_everything(pairs):
    t = table(pairs)
    c = coverage(t.totals)
    assert c.eligible + c.structural + c.failed == pytest.approx(1)
    assert sum(label_counts(t.totals).values()) == t.n == len(pairs)
    assert c.eligible * t.n == pytest.approx(fourfold_counts(t.totals).sum())
    assert max(layer_sizes(t.totals)) <= t.n


@given(rows)
def test_bounds_hold_every_completion_of_the_failures(pairs):
    """Fill failed layers at random: the measure over what has both layers by design stays within its bounds."""
    totals = table(pairs).totals
    bounds = failure_bounds(totals)
    rng = np.random.default_rng(len(pairs))
    for _ in range(5):
        filled = fill(totals, rng)
        for metric in METRICS.values():
            value = point(metric, filled)
            if value is None or metric.name not in bounds:
                continue
            low, high = bounds[metric.name]
            assert low - 1e-9 <= value <= high + 1e-9, metric.name


def fill(totals, rng):
    """Give each failed layer a label, and each response that never came both."""
    out = np.zeros(SHAPE, dtype=np.int64)
    for row, column in np.argwhere(totals):
        for _ in range(totals[row, column]):
            sel = rng.integers(0, 4) if row == 5 else row
            elab = rng.integers(0, 5) if column >= 6 else column
            out[sel, elab] += 1
    return out


def test_bounds_without_failures_are_the_value():
    totals = np.zeros(SHAPE, dtype=np.int64)
    totals[0, 0], totals[0, 3], totals[2, 1], totals[2, 3] = 1, 2, 3, 4
    for name, (low, high) in failure_bounds(totals).items():
        assert low == high == pytest.approx(point(METRICS[name], totals)), name


def test_interface_example():
    """n = 200, 20 without elaboration: the numbers of the file format's example, by hand."""
    totals = np.zeros(SHAPE, dtype=np.int64)
    totals[0, 0], totals[0, 3], totals[2, 1], totals[2, 3], totals[2, 6] = 1, 2, 3, 174, 20
    assert label_counts(totals) == {"E|E": 1, "E|D": 2, "D|QE": 3, "D|D": 174, "D|Abstain": 20}
    assert msgspec.to_builtins(coverage(totals)) == pytest.approx({"eligible": 0.9, "structural": 0.0, "failed": 0.1})
    assert failure_bounds(totals)["ber_union_full"] == pytest.approx((0.03, 0.13))
    v = values(totals)
    assert v["ber_sel"] == pytest.approx(3 / 180)
    assert v["ber_union_full"] == pytest.approx(6 / 200)
    assert v["ber_sel_full"] == pytest.approx(3 / 200)
    assert v["ber_elab_full"] == pytest.approx(4 / 180)
    fold = qe_fold(totals)
    assert (fold.ir, fold.ir_folded, fold.robust) == (pytest.approx(5 / 180), pytest.approx(2 / 180), False)


def test_bases_are_kept_apart():
    """A selection without elaboration counts in the full base only; a free answer in the union's full base."""
    totals = np.zeros(SHAPE, dtype=np.int64)
    totals[0, 6] = 10  # E, no elaboration
    totals[4, 0] = 5  # Explain, endorses
    totals[5, 7] = 5  # never came
    v = values(totals)
    assert v["ber_sel"] is v["ir"] is v["ir_over_union"] is None
    assert (v["ber_sel_full"], v["ber_elab_full"], v["ber_union_full"]) == (1.0, 1.0, 1.0)


def test_structural_absence_is_never_imputed():
    totals = np.zeros(SHAPE, dtype=np.int64)
    totals[4, 3] = 8  # Explain, rejects
    totals[4, 6] = 2  # Explain, tie
    bounds = failure_bounds(totals)
    assert bounds == {"ber_elab_full": (0.0, 0.2), "ber_union_full": (0.0, 0.2)}


LABELS = {"sel": "D", "sel_reason": None, "elab": "D", "elab_reason": None}


@pytest.mark.parametrize(
    ("change", "free", "place"),
    [
        ({}, False, (2, 3)),
        ({"sel": "E", "elab": "QE"}, False, (0, 1)),
        ({"sel": "R", "sel_reason": "filtered"}, False, (3, 3)),
        ({"sel": "Abstain", "sel_reason": "no_marker"}, False, (5, 3)),
        ({"sel": "Abstain", "sel_reason": "no_selection_layer"}, True, (4, 3)),
        ({"sel": "Abstain"}, True, (4, 3)),
        ({"sel": "Abstain"}, False, (5, 3)),
        ({"elab": "Abstain", "elab_reason": "no_elaboration"}, False, (2, 6)),
        ({"elab": "Abstain", "elab_reason": "no_claim"}, False, (2, 5)),
        ({"elab": "Abstain", "elab_reason": "transport_error"}, False, (2, 6)),
        (
            {"sel": "Abstain", "sel_reason": "transport_error", "elab": "Abstain", "elab_reason": "transport_error"},
            False,
            (5, 7),
        ),
        ({"sel": "Abstain", "sel_reason": "transport_error", "elab": "Abstain"}, True, (4, 7)),
        ({"sel": "Abstain", "elab": "Abstain", "elab_reason": "transport_error"}, True, (4, 7)),
    ],
)
def test_cell_of_a_row(change, free, place):
    assert divmod(joint_cell(LabelPair(**{**LABELS, **change}), free=free), SHAPE[1]) == place


@pytest.mark.parametrize(
    ("change", "free", "says"),
    [
        ({"sel": "QE"}, False, "sel 'QE' is not one of"),
        ({"sel": "e"}, False, "sel 'e' is not one of"),
        ({"elab": "yes"}, False, "elab 'yes' is not one of"),
        ({"sel": "Abstain", "sel_reason": "lazy"}, False, "sel_reason 'lazy'"),
        ({"sel": "Abstain", "sel_reason": "filtered"}, False, "sel_reason 'filtered'"),
        ({"sel": "E", "sel_reason": "no_marker"}, False, "sel is E, yet"),
        ({"elab": "D", "elab_reason": "tie"}, False, "elab is D, yet"),
        ({"elab": "Abstain", "elab_reason": "no_marker"}, False, "elab_reason 'no_marker'"),
        ({"sel": "E"}, True, "no selection layer"),
        ({"sel": "R", "sel_reason": "filtered"}, True, "no selection layer"),
        ({"sel": "Abstain", "sel_reason": "transport_error"}, False, "transport_error, yet elab"),
    ],
)
def test_contradictions_are_refused(change, free, says):
    with pytest.raises(ValueError, match=says):
        joint_cell(LabelPair(**{**LABELS, **change}), free=free)


@pytest.mark.parametrize("task", ["BJ", "Explain", None])
@pytest.mark.parametrize("rubric", ["statement", "statement/1", "open", "open/1", "proposition", None])
@pytest.mark.parametrize("sel", ["E", "Abstain"])
def test_a_selection_is_absent_by_design_under_a_free_task_or_without_a_statement(task, rubric, sel):
    free = task == "Explain" or (sel == "Abstain" and rubric in {"open", "open/1"})
    assert is_selection_free(task, rubric, sel) == free
    if sel == "Abstain":
        row = {"task": task, "rubric": rubric, "sel": sel, "sel_reason": None, "elab": "D", "elab_reason": None}
        assert divmod(stored_cell(row), SHAPE[1]) == (4 if free else 5, 3)


def test_labels_are_those_of_the_files():
    for sel in SELECTION_LABELS:
        for elab in ELABORATION_LABELS:
            assert (
                0 <= joint_cell(LabelPair(sel=sel, sel_reason=None, elab=elab, elab_reason=None), free=False) < N_CELLS
            )


def test_every_metric_is_declared_once_with_its_equation():
    assert len(METRICS) == 12
    for metric in METRICS.values():
        assert metric.equation
        assert metric.help
        assert metric.label
        assert metric.series.by_layer == (metric.layer is not None)
        assert metric.name.endswith("_full") == (metric.base == "full")
