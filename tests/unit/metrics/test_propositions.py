"""Propositions 1 to 3 of BiAxisAudit (section III), over joint tables with every label and every kind of absence.

Counts are integers, so that the statements hold exactly and not to a tolerance.
"""

from fractions import Fraction
from itertools import cycle, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.counting.joint import N_CELLS, SHAPE, JointTable
from auditor.metrics.rates import ELAB_ENDORSES, ELIGIBLE, METRICS, SEL_ENDORSES, point

#: Cells of the eligible base by (A, B): the label pairs that may stand for each.
CELLS = {
    (a, b): np.flatnonzero((ELIGIBLE * (a == SEL_ENDORSES) * (b == ELAB_ENDORSES)).ravel()).tolist()
    for a in (0, 1)
    for b in (0, 1)
}
OUTSIDE = np.flatnonzero(ELIGIBLE.ravel() == 0).tolist()

responses = st.lists(st.tuples(st.integers(0, 7), st.integers(0, N_CELLS - 1)), min_size=1, max_size=60)
deltas = st.builds(Fraction, st.integers(1, 49), st.just(100))


def table(rows):
    cluster, cell = (np.array(side, dtype=np.int64) for side in zip(*rows, strict=True))
    return JointTable.from_cells(cluster, cell, 8)


def hits(name, totals):
    """Count the responses a measure of the eligible base counts."""
    return int((METRICS[name].numerator * totals).sum())


@st.composite
def tables_of(draw, both, only_sel, only_elab, neither):
    """Give a table with these fourfold counts, over any labels, statements and responses outside the base."""
    counts = {(1, 1): both, (1, 0): only_sel, (0, 1): only_elab, (0, 0): neither}
    labels = {stance: draw(st.lists(st.sampled_from(cells), min_size=1, max_size=4)) for stance, cells in CELLS.items()}
    cells = [cell for stance, count in counts.items() for cell in islice(cycle(labels[stance]), count)]
    cells += draw(st.lists(st.sampled_from(OUTSIDE), max_size=5))
    statements = draw(st.lists(st.integers(0, 7), min_size=1, max_size=5))
    return table(list(zip(cycle(statements), cells, strict=False)))


@given(responses)
def test_proposition_1_single_axis_under_reporting(rows):
    """Each layer alone misses what only the other endorses (Eq. 14); both misses together are IR (Eq. 15)."""
    totals = table(rows).totals
    union, sel, elab = (hits(name, totals) for name in ("ber_union", "ber_sel", "ber_elab"))
    assert union - sel == hits("ued", totals)
    assert union - elab == hits("oed", totals)
    assert (union - sel) + (union - elab) == hits("ir", totals)


@given(responses)
def test_proposition_1_bound_is_reached(rows):
    """Section III-D calls IR a strict lower bound of the two errors: it is their sum, in every table."""
    v = {metric.name: point(metric, table(rows).totals) for metric in METRICS.values()}
    if v["ir"] is not None:
        assert 2 * v["ber_union"] - v["ber_sel"] - v["ber_elab"] == pytest.approx(v["ir"], abs=1e-12)


@given(st.data(), st.integers(0, 12), st.integers(1, 12), st.integers(0, 12))
def test_proposition_2_cancellation_trap(data, both, each, neither):
    """DNI = 0 does not imply IR = 0: with equal shares c in both directions DNI is 0 and IR 2c, whatever the labels."""
    totals = data.draw(tables_of(both, each, each, neither)).totals
    n = both + 2 * each + neither
    assert point(METRICS["dni"], totals) == 0
    assert point(METRICS["ir"], totals) == 2 * each / n > 0
    assert point(METRICS["ber_sel"], totals) == point(METRICS["ber_elab"], totals) == (both + each) / n


@given(responses)
def test_proposition_2_says_all_there_is(rows):
    """DNI is 0 exactly where the directions balance, and IR = 0 does imply DNI = 0: |DNI| <= IR."""
    totals = table(rows).totals
    ir, dni, oed, ued = (hits(name, totals) for name in ("ir", "dni", "oed", "ued"))
    assert (dni == 0) == (oed == ued)
    assert abs(dni) <= ir
    assert (ir, dni) == (oed + ued, oed - ued)


@given(st.data(), deltas, st.integers(0, 40), st.integers(0, 10))
def test_proposition_3_agreeing_layers_may_spread_over_prompts(data, delta, low, more):
    """(i) IR is 0 under every condition, yet the union's range exceeds delta; exactly delta does not suffice."""
    n = 100
    high = min(n, low + int(delta * n) + 1 + more)
    totals = [data.draw(tables_of(k, 0, 0, n - k)).totals for k in (low, high)]
    assert [hits("ir", each) for each in totals] == [0, 0]
    unions = [Fraction(hits("ber_union", each), n) for each in totals]
    assert max(unions) - min(unions) > delta


@given(st.data(), deltas, st.lists(st.integers(0, 50), min_size=2, max_size=4))
def test_proposition_3_a_steady_union_may_hide_disagreement(data, delta, splits):
    """(ii) The union is the same under every condition, yet IR exceeds delta under each, and DNI may be anything."""
    n = 100
    disagree = int(delta * n) + 1
    both = 10
    totals = []
    for split in splits:
        only_sel = min(split, disagree)
        drawn = data.draw(tables_of(both, only_sel, disagree - only_sel, n - both - disagree))
        totals.append(drawn.totals)
    assert {Fraction(hits("ber_union", each), n) for each in totals} == {Fraction(both + disagree, n)}
    assert all(Fraction(hits("ir", each), n) > delta for each in totals)


@given(st.data(), st.integers(1, 24))
def test_proposition_3_by_the_paper_s_own_construction_gives_delta_itself(data, half):
    """OED = UED = delta / 2 makes IR delta, and rates eps and eps + delta a spread of delta: neither exceeds it."""
    n, delta = 100, Fraction(2 * half, 100)
    hidden = data.draw(tables_of(10, half, half, n - 10 - 2 * half)).totals
    assert Fraction(hits("ir", hidden), n) == delta
    low, high = (data.draw(tables_of(k, 0, 0, n - k)).totals for k in (5, 5 + 2 * half))
    assert Fraction(hits("ber_union", high) - hits("ber_union", low), n) == delta


def test_the_four_stances_share_out_the_eligible_cells():
    assert sum(len(cells) for cells in CELLS.values()) + len(OUTSIDE) == N_CELLS == SHAPE[0] * SHAPE[1]
    assert {stance: len(cells) for stance, cells in CELLS.items()} == {(0, 0): 9, (0, 1): 6, (1, 0): 3, (1, 1): 2}
