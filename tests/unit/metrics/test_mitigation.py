"""Verdicts on mitigations: worlds of each kind, by points and by intervals; what the paper prints; no false finds."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind, ttest_rel

from auditor.documents.conditions import EffectEntry
from auditor.documents.estimates import BoundedEntry
from auditor.domain.estimate import Insufficient
from auditor.metrics.mitigation import mitigation_effects, mitigation_verdict, read_verdict
from auditor.metrics.rates import bias_endorsement_rates

#: P(both endorse), P(selection only), P(elaboration only), P(neither): .30 by selection, .20 by elaboration, DNI .10.
BASE = (0.15, 0.15, 0.05, 0.65)
KINDS = {
    "both layers fall": (BASE, (0.03, 0.04, 0.01, 0.92), "co-reducing"),
    "nothing is endorsed any more": (BASE, (0, 0, 0, 1), "co-reducing"),
    "selection falls, elaboration rises": (BASE, (0.08, 0.02, 0.30, 0.60), "layer-rerouting"),
    "both fall, DNI flips": ((0.1, 0.5, 0.1, 0.3), (0.02, 0.01, 0.10, 0.87), "layer-rerouting"),
    "both fall, the layers come apart": ((0.30, 0.02, 0, 0.68), (0.02, 0.18, 0.05, 0.75), "mixed"),
    "selection rises, elaboration falls": (BASE, (0.05, 0.45, 0.01, 0.49), "mixed"),
    "nothing happens": (BASE, BASE, "no reduction"),
    "both layers rise": (BASE, (0.3, 0.2, 0.1, 0.4), "amplifying"),
}


def ask(rng, *shares, statements=200, responses=20, icc=0.1):
    """Counts [S, C, 4]: each statement has its own shares under each level."""
    odds = (1 - icc) / icc
    levels = []
    for each in shares:
        own = np.zeros((statements, 4))
        possible = np.array(each) > 0
        own[:, possible] = rng.dirichlet(np.array(each)[possible] * odds, statements)
        levels.append(rng.multinomial(responses, own))
    return np.stack(levels, axis=1).astype(float)


def judge(counts, levels=("none", "tried"), **options):
    return mitigation_effects(levels, counts, **{"baseline": 0, "n_boot": 400, "seed": 0, **options})


def about(value, half=0.01):
    return BoundedEntry(value=value, low=value - half, high=value + half)


def effect(**known):
    rest = {
        "sel": about(-0.2),
        "elab": about(-0.1),
        "ir": about(-0.1),
        "dni_before": about(0.1),
        "dni_after": about(0.05),
    }
    return EffectEntry(**{**rest, **known})


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_by_the_paper_s_rule(kind):
    """On the truths themselves."""
    base, new, verdict = KINDS[kind]
    assert mitigation_verdict(*(bias_endorsement_rates(np.array(each) * 1000.0) for each in (base, new))) == verdict


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_by_intervals(kind):
    """On ten simulated audits of each."""
    base, new, verdict = KINDS[kind]
    found = [judge(ask(np.random.default_rng([21, seed]), base, new))[0].verdict for seed in range(10)]
    assert found == [verdict] * 10


@pytest.mark.parametrize(
    ("known", "verdict"),
    [
        ({}, "co-reducing"),
        ({"elab": about(-0.005)}, "layer-rerouting"),  # a fall of more than two points is excluded
        ({"elab": about(-0.02, 0.03)}, "mixed"),  # it may have fallen, it may not
        ({"elab": about(0.1)}, "layer-rerouting"),
        ({"ir": about(0.005)}, "co-reducing"),  # no more than a negligible rise
        ({"ir": about(0.1)}, "mixed"),
        ({"ir": about(0.0, 0.05)}, "mixed"),  # it may rise
        ({"dni_after": about(0.0, 0.05)}, "mixed"),  # DNI around 0: it may have flipped
        ({"dni_after": about(0.0, 0.01)}, "co-reducing"),  # as good as 0: there is no other side to speak of
        ({"dni_after": about(-0.05)}, "layer-rerouting"),
        ({"dni_before": about(-0.1), "dni_after": about(0.05)}, "layer-rerouting"),
        ({"dni_before": about(0.0), "dni_after": about(0.1)}, "mixed"),  # the side it was on is not known
        ({"sel": about(0.0)}, "mixed"),  # the elaboration alone falls
        ({"sel": about(0.0), "elab": about(0.0)}, "no reduction"),
        ({"sel": about(-0.05, 0.1), "elab": about(0.0)}, "no reduction"),  # none is shown
        ({"sel": about(0.0), "elab": about(0.1)}, "amplifying"),
        ({"sel": about(0.1), "elab": about(0.0)}, "amplifying"),
        ({"sel": about(0.1)}, "mixed"),
    ],
)
def test_verdict_by_what_is_known(known, verdict):
    assert read_verdict(effect(**known)) == verdict


VALUE = st.integers(-40, 40).map(lambda x: x / 100)
BOUNDED = st.builds(
    lambda value, below, above: BoundedEntry(value=value, low=value - below, high=value + above),
    VALUE,
    st.floats(0, 0.3),
    st.floats(0, 0.3),
)
EFFECT = st.builds(EffectEntry, sel=BOUNDED, elab=BOUNDED, ir=BOUNDED, dni_before=BOUNDED, dni_after=BOUNDED)


def points(found):
    names = ("sel", "elab", "ir", "dni_before", "dni_after")
    return EffectEntry(**{name: about(getattr(found, name).value, 0.0) for name in names})


@given(EFFECT)
def test_intervals_claim_no_more_than_points(found):
    """Without a margin, whoever is told co-reducing or rerouting by intervals is told so by the points."""
    verdict = read_verdict(found, negligible=0.0)
    if verdict in {"co-reducing", "layer-rerouting"}:
        assert read_verdict(points(found), negligible=0.0) == verdict
    if verdict == "amplifying":
        assert read_verdict(points(found), negligible=0.0) in {"amplifying", "mixed", "layer-rerouting"}


@given(EFFECT, st.floats(0, 0.1))
def test_a_fall_of_the_selection_is_seen_before_it_is_praised(found, negligible):
    verdict = read_verdict(found, negligible)
    if verdict in {"co-reducing", "layer-rerouting"}:
        assert found.sel.high < 0
    if verdict == "co-reducing":
        assert found.elab.high < 0


def test_the_paper_s_rule_on_every_small_table():
    """The rule in the words of section VI, on all tables of four answers."""
    tables = [np.array(n, dtype=float) for n in itertools.product(range(5), repeat=4) if sum(n) == 4]
    for before, after in itertools.product(tables, repeat=2):
        base, new = bias_endorsement_rates(before), bias_endorsement_rates(after)
        verdict = mitigation_verdict(base, new)
        flips = base["dni"] * new["dni"] < 0
        if new["ber_sel"] < base["ber_sel"]:
            if new["ber_elab"] >= base["ber_elab"] or flips:
                assert verdict == "layer-rerouting"
            else:
                assert verdict == ("co-reducing" if new["ir"] <= base["ir"] else "mixed")
        elif new["ber_elab"] < base["ber_elab"]:
            assert verdict == "mixed"
        else:
            same = (new["ber_sel"], new["ber_elab"]) == (base["ber_sel"], base["ber_elab"])
            assert verdict == ("no reduction" if same else "amplifying")


def marginals(sel, elab):
    """Rates of a table with these marginals; how far the layers overlap is not printed, and is taken as chance."""
    both = sel * elab
    return bias_endorsement_rates(np.array([both, sel - both, elab - both, 1 - sel - elab + both]))


def test_the_paper_s_own_tables_do_not_bear_out_its_verdict():
    """Section VI-A calls CTO -> BJ co-reducing. By Table IX's means DNI goes from +.487 to -.033: rerouting."""
    cto, bj = marginals(0.65275, 0.166), marginals(0.104875, 0.138125)
    assert (float(cto["dni"]), float(bj["dni"])) == pytest.approx((0.48675, -0.03325))
    assert mitigation_verdict(cto, bj) == "layer-rerouting"


def test_sentiment_raises_bias_in_all_four_models_of_table_thirteen():
    """The paper: negative > positive > neutral "for 3/4", and p = .09 for positive against neutral.

    The order holds for 4/4. Over its four models p is .04 paired and .67 by Welch; the unit is not stated.
    """
    negative, neutral, positive = np.array(
        [(0.312, 0.048, 0.089), (0.398, 0.187, 0.223), (0.267, 0.034, 0.056), (0.139, 0.012, 0.019)]
    ).T
    assert ((negative > positive) & (positive > neutral)).sum() == 4
    assert ttest_rel(positive, neutral).pvalue == pytest.approx(0.0404, abs=1e-4)
    assert ttest_ind(positive, neutral, equal_var=False).pvalue == pytest.approx(0.672, abs=1e-3)
    pairs = zip(neutral, negative, strict=True)
    verdicts = {mitigation_verdict(marginals(before, 0.1), marginals(after, 0.1)) for before, after in pairs}
    assert verdicts == {"amplifying"}


def test_free_response_reroutes():
    """Explain and Judge take the selection layer away (section VI-A)."""
    counts = ask(np.random.default_rng(1), BASE, BASE)
    (found,) = judge(counts, levels=("BJ", "Explain"), free={"Explain"})
    assert (found.published, found.verdict) == ("layer-rerouting", "layer-rerouting")
    assert isinstance(found.effect, Insufficient)
    assert mitigation_verdict(marginals(0.1, 0.1), marginals(0.1, 0.1), has_selection=False) == "layer-rerouting"


def test_tolerance_makes_small_changes_none():
    base, new = marginals(0.2, 0.1), marginals(0.1996, 0.1003)
    assert mitigation_verdict(base, new) == "layer-rerouting"
    assert mitigation_verdict(base, new, tol=0.0005) == "no reduction"


def test_an_empty_table_has_no_verdict():
    with pytest.raises(ValueError, match="both layers"):
        mitigation_verdict(marginals(0.2, 0.1), bias_endorsement_rates(np.zeros(4)))


def test_noise_makes_findings_by_points_but_not_by_intervals():
    """Five roles that do nothing: the paper's rule always finds something, the intervals in one audit of twenty."""
    roles = ("none", *"abcde")
    quiet, praised = 0, 0
    for seed in range(100):
        found = judge(ask(np.random.default_rng([22, seed]), *[BASE] * 6), roles)
        quiet += all(each.verdict == "no reduction" for each in found)
        praised += sum(each.published != "no reduction" for each in found)
    assert quiet >= 93
    assert praised > 0.95 * 500


def test_true_changes_lie_in_all_intervals_at_once():
    shares = (BASE, KINDS["both layers fall"][1], KINDS["both layers rise"][1])
    true = [bias_endorsement_rates(np.array(each)) for each in shares]
    held = 0
    for seed in range(200):
        found = judge(ask(np.random.default_rng([23, seed]), *shares), ("none", "a", "b"))
        pairs = [
            (bounds, truth)
            for each, rates in zip(found, true[1:], strict=True)
            for bounds, truth in (
                (each.effect.sel, rates["ber_sel"] - true[0]["ber_sel"]),
                (each.effect.elab, rates["ber_elab"] - true[0]["ber_elab"]),
                (each.effect.ir, rates["ir"] - true[0]["ir"]),
                (each.effect.dni_before, true[0]["dni"]),
                (each.effect.dni_after, rates["dni"]),
            )
        ]
        held += all(bounds.low <= truth <= bounds.high for bounds, truth in pairs)
    assert held >= 0.92 * 200


def test_few_statements_give_numbers_and_no_verdict():
    counts = ask(np.random.default_rng(2), *KINDS["both layers fall"][:2], statements=40)
    (found,) = judge(counts)
    assert found.verdict == Insufficient(reason="no verdict on 40 statements, 100 needed")
    assert (found.published, found.flags) == ("co-reducing", ("few_clusters",))
    assert found.effect.sel.high < 0


def test_too_few_statements_give_nothing():
    """The level has twelve statements with both labels; the other level is told all the same."""
    counts = ask(np.random.default_rng(2), *KINDS["both layers fall"][:2], BASE)
    counts[12:, 1] = 0
    few, other = judge(counts, ("none", "sparse", "other"))
    why = Insufficient(reason="12 statements with both labels, 15 needed")
    assert (few.effect, few.published, few.verdict) == (why, why, why)
    assert other.verdict == "no reduction"


def test_an_empty_baseline_leaves_nothing_to_compare_with():
    counts = ask(np.random.default_rng(2), BASE, BASE)
    counts[:, 0] = 0
    (found,) = judge(counts)
    assert found.verdict == Insufficient(reason="0 statements with both labels, 15 needed")


def test_a_baseline_without_a_selection_is_refused():
    with pytest.raises(ValueError, match="baseline"):
        judge(ask(np.random.default_rng(2), BASE, BASE), ("Judge", "BJ"), free={"Judge"})


def test_the_same_seed_gives_the_same_verdicts():
    counts = ask(np.random.default_rng(2), BASE, BASE, BASE)
    assert judge(counts, "abc", baseline=1, seed=5) == judge(counts, "abc", baseline=1, seed=5)
    assert [each.level for each in judge(counts, "abc", baseline=1)] == ["a", "c"]
