"""What a vendor changes, on the paper's own table and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from auditor.domain.estimate import Insufficient
from auditor.metrics.ranks import compare_panels, leave_vendors_out, mean_rates
from auditor.stats.ranks import spearman

#: Table III: counts (n11, n10, n01, n00) that round to every printed rate.
TABLE_III = {
    "LLaMA-3 70B": (2392, 1698, 826, 4466),
    "Doubao Seed 2 Lite": (1453, 2558, 514, 5137),
    "DeepSeek V3": (1738, 2082, 775, 5539),
    "Qwen Plus": (864, 1806, 602, 7670),
    "GPT-OSS 20B": (237, 82, 88, 1176),
    "GPT-5.4": (120, 160, 206, 2162),
    "Gemini 3 Flash": (110, 92, 541, 12401),
    "Claude Sonnet 4.6": (109, 200, 36, 8743),
}
VENDORS = ("Meta", "ByteDance", "DeepSeek", "Alibaba", "OpenAI", "OpenAI", "Google", "Anthropic")
COUNTS = np.array(list(TABLE_III.values()), dtype=float)

tables = st.integers(2, 6).flatmap(lambda k: arrays(np.int64, (k, 4), elements=st.integers(1, 40)))


def test_unweighted_means_of_table_three():
    """Section V-C: IR averages .176. The ratio's .636 is the pooled one: the mean is .657 (.655 of printed rates)."""
    rates = mean_rates(COUNTS)
    assert float(rates["ir"]) == pytest.approx(0.176, abs=0.0005)
    assert float(rates["ir_over_union"]) == pytest.approx(0.657, abs=0.0005)


def test_no_vendor_alone_makes_the_rankings_agree():
    """Table III without any one vendor: rho is .786 (without Meta) to .929 (without ByteDance)."""
    left = {one.vendor: one for one in leave_vendors_out(COUNTS, VENDORS)}
    assert sorted(left) == sorted(set(VENDORS))
    for vendor, one in left.items():
        kept = [index for index, name in enumerate(VENDORS) if name != vendor]
        sel, elab = ((COUNTS[kept, 0] + COUNTS[kept, side]) / COUNTS[kept].sum(axis=1) for side in (1, 2))
        assert one.correlation == spearman(sel, elab)
        assert one.correlation.n == len(kept)
    assert left["Meta"].correlation.rho == pytest.approx(0.786, abs=0.0005)
    assert left["ByteDance"].correlation.rho == pytest.approx(0.929, abs=0.0005)
    assert all(0.785 < one.correlation.rho < 0.929 for one in left.values())


def test_what_the_pooled_rate_owes_to_one_vendor():
    """Pooled BER_sel .236; without LLaMA .203, without Gemini, which hardly endorses, .290."""
    left = {one.vendor: one for one in leave_vendors_out(COUNTS, VENDORS)}
    whole = COUNTS.sum(axis=0)
    for vendor, one in left.items():
        rest = whole - COUNTS[[name == vendor for name in VENDORS]].sum(axis=0)
        assert float(one.pooled["ber_sel"]) == pytest.approx((rest[0] + rest[1]) / rest.sum())
    found = [float(left[vendor].pooled["ber_sel"]) for vendor in ("Meta", "Google")]
    assert found == pytest.approx((0.203, 0.290), abs=0.0005)


@given(tables)
def test_leaving_one_of_each_vendor_out_is_the_jackknife(counts):
    """With a vendor each, the means without one average to the mean of all."""
    counts = counts.astype(float)
    left = leave_vendors_out(counts, [str(index) for index in range(len(counts))])
    assert np.mean([float(one.unweighted["dni"]) for one in left]) == pytest.approx(float(mean_rates(counts)["dni"]))
    assert [one.vendor for one in left] == sorted(str(index) for index in range(len(counts)))


def test_nothing_to_leave_out():
    with pytest.raises(ValueError, match="at least two"):
        leave_vendors_out(COUNTS, ["one"] * 8)
    with pytest.raises(ValueError, match="both labels"):
        leave_vendors_out(np.array([[1.0, 2, 3, 4], [0, 0, 0, 0]]), ["a", "b"])


def test_the_same_panel_changes_nothing():
    rates = {"a": 0.1, "b": 0.3, "c": 0.2}
    swap = compare_panels(rates, rates)
    assert swap.same_ranking
    assert (swap.agreement.change, swap.agreement.rho, swap.missing) == (0, 1, ())


def test_a_swap_names_whom_it_moves_and_who_is_missing():
    swap = compare_panels({"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.4}, {"a": 0.1, "b": 0.15, "c": 0.2, "e": 0.9})
    assert (swap.deployment, swap.missing) == ("b", ("d", "e"))
    assert swap.agreement.change == pytest.approx(0.15)
    assert swap.agreement.rank_shift == 1
    assert not swap.same_ranking


def test_two_deployments_have_no_ranking():
    found = compare_panels({"a": 0.1, "b": 0.2, "c": 0.3}, {"a": 0.1, "b": 0.2})
    assert found == Insufficient(reason="2 deployments with a rate by both panels, 3 needed")
