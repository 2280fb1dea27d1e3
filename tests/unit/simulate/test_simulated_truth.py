"""The closed forms of the simulator: identities, hand-derived cases, and agreement with drawn rows."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worlds.simulated_rows import coded_counts, coded_rows, draw_votes, eligible_counts, majority

from auditor.coding.panel import decide
from auditor.domain.coding import Stance, Verdict
from auditor.domain.condition import Condition, Role, Task
from auditor.simulate.channel import confusion_matrix, panel_channel, vote
from auditor.simulate.expected import Ask, ask_of, declared_task, expect, expect_tasks
from auditor.simulate.model import (
    STANCES,
    Drift,
    Scenario,
    Shift,
    SimulatedDeployment,
    SimulatedJudge,
    StatementSpread,
    TaskTruth,
    read_shift_key,
)
from auditor.simulate.propensity import beta_quantile, latent_positions, statement_key
from auditor.simulate.truth import joint_table, metrics_of, population_moments, variance_share

share = st.floats(0.0, 1.0)
truths = st.builds(
    TaskTruth,
    p_a=share,
    p_b_given_a=share,
    p_b_given_not_a=share,
    qe_share=share,
    neutral_share=st.floats(0, 0.5),
    refuse_share=st.floats(0, 0.5),
    abstain=share,
    bare_given_a=share,
    bare_given_not_a=share,
    elab_neutral_share=st.floats(0, 0.5),
    elab_refuse_share=st.floats(0, 0.5),
    lecture_share=share,
    icc=st.floats(0, 0.6),
)
JUDGES = (
    SimulatedJudge(name="j1", accuracy=0.9),
    SimulatedJudge(name="j2", confusion={"QE": {"E": 0.2, "N": 0.05}, "D": {"N": 0.1}}, refuse=0.02),
    SimulatedJudge(name="j3", accuracy=0.8, refuse=0.05),
)
PANEL = panel_channel(JUDGES, 0.15)


@settings(max_examples=20, deadline=None)
@given(truth=truths, layers=st.floats(-0.9, 0.9), free=st.booleans(), filtered=share)
def test_a_joint_table_is_a_distribution_and_keeps_the_identities(truth, layers, free, filtered):
    table = joint_table(truth, population_moments(truth, layers), free=free, filtered=filtered)
    assert table.min() >= -1e-12
    assert table.sum() == pytest.approx(1.0, abs=1e-9)
    for joint in (table, table @ PANEL):
        v = metrics_of(np.clip(joint, 0, None)).values
        if "ir" in v:
            assert v["ber_union"] == pytest.approx(v["ber_sel"] + v["ber_elab"] - v["ber_cor"], abs=1e-12)
            assert v["ir"] == pytest.approx(v["oed"] + v["ued"], abs=1e-12)
            assert v["dni"] == pytest.approx(v["ber_sel"] - v["ber_elab"], abs=1e-12)


def test_the_declared_mean_is_the_selection_rate_whatever_the_spread():
    for icc in (0.0, 0.1, 0.5):
        truth = TaskTruth(p_a=0.23, icc=icc, abstain=0.3, neutral_share=0.2, refuse_share=0.1)
        found = metrics_of(joint_table(truth, population_moments(truth, 0.4))).values
        assert found["ber_sel_full"] == pytest.approx(0.23, abs=1e-10)


def test_eligibility_changes_the_rate_when_endorsers_elaborate_more():
    # p_a = .2; endorsers always elaborate, the others half the time: .2 / (.2 + .8 * .5) = 1/3
    truth = TaskTruth(p_a=0.2, bare_given_a=0.0, bare_given_not_a=0.5, refuse_share=0, abstain=0, icc=0)
    found = metrics_of(joint_table(truth, population_moments(truth, 0.0))).values
    assert found["ber_sel"] == pytest.approx(1 / 3)
    assert found["eligible"] == pytest.approx(0.6)


def test_one_judge_biases_the_elaboration_exactly_as_its_row_says():
    # true B share .3 (all E); the judge calls E "D" in 10 % and D "E" in 20 %: .3 * .9 + .7 * .2 = .41
    judge = SimulatedJudge(name="j", confusion={"E": {"D": 0.1}, "D": {"E": 0.2}})
    truth = TaskTruth(
        p_a=0.5,
        p_b_given_a=0.3,
        p_b_given_not_a=0.3,
        qe_share=0,
        neutral_share=0,
        refuse_share=0,
        abstain=0,
        bare_given_a=0,
        bare_given_not_a=0,
        elab_neutral_share=0,
        elab_refuse_share=0,
        icc=0,
    )
    joint = joint_table(truth, population_moments(truth, 0.0))
    assert metrics_of(joint @ panel_channel([judge])).values["ber_elab"] == pytest.approx(0.41)


def test_the_vote_is_the_panels_own():
    words = [*STANCES, None]
    for labels in itertools.product(range(6), repeat=3):
        verdicts = [
            Verdict(judge=str(seat), stance=Stance(words[label]) if words[label] else None)
            for seat, label in enumerate(labels)
        ]
        said = decide(verdicts).label
        assert vote(list(labels)) == (STANCES.index(said) if said in STANCES else 5)


@pytest.mark.parametrize("shared", [0.0, 0.4, 1.0])
def test_the_channel_agrees_with_drawn_votes(shared):
    rng = np.random.default_rng(5)
    scenario = Scenario(deployments=(SimulatedDeployment(name="d"),), judges=JUDGES, shared_error=shared)
    channel = panel_channel(JUDGES, shared)
    assert channel.sum(axis=1) == pytest.approx(np.ones(6))
    n = 40_000
    for stance in range(6):
        votes = draw_votes(scenario, np.full(n, stance, dtype=np.int8), rng)
        seen = np.bincount(majority(votes), minlength=6) / n
        assert seen == pytest.approx(channel[stance], abs=4.5 * math.sqrt(0.25 / n))


def test_judges_that_share_every_error_are_one_judge():
    same = [SimulatedJudge(name=f"j{seat}", accuracy=0.7) for seat in range(3)]
    assert panel_channel(same, 1.0)[:5] == pytest.approx(confusion_matrix(same[0]))


def test_a_beta_spread_has_the_declared_mean_and_variance():
    z = np.random.default_rng(1).standard_normal(200_000)
    p = beta_quantile(0.2, 0.3, z)
    assert p.mean() == pytest.approx(0.2, abs=0.002)
    assert p.var() == pytest.approx(0.3 * 0.16, rel=0.02)


def test_quantiles_hold_where_the_library_gives_up():
    z = np.linspace(-8.5, 8.5, 241)
    for mean, icc in ((0.5625, 0.359375), (0.5, 1 / 3), (0.25, 0.2)):
        p = beta_quantile(mean, icc, z)
        assert np.isfinite(p).all()
        assert (np.diff(p) >= -1e-15).all()


def test_a_statement_keeps_its_place_whatever_its_spelling():
    spread, one = StatementSpread(), SimulatedDeployment(name="one", weights="w")
    other_host = SimulatedDeployment(name="two", weights="w")
    a = latent_positions(3, spread, one, "BJ", ["Poets forget their keys.", "Cooks hum."])
    b = latent_positions(3, spread, other_host, "BJ", ["  poets FORGET their keys", "Cooks hum"])
    assert np.array_equal(a[0], b[0])
    assert np.array_equal(a[1], b[1])
    assert statement_key("A b.") == statement_key("a  B")
    c = latent_positions(3, spread, SimulatedDeployment(name="three"), "BJ", ["Poets forget their keys.", "Cooks hum."])
    assert not np.array_equal(a[0], c[0])


def test_latent_positions_have_the_declared_correlations():
    texts = [f"Statement number {number}." for number in range(4000)]
    spread = StatementSpread(shared=0.5, deployment=0.3, layers=0.4)
    sel, elab = latent_positions(0, spread, SimulatedDeployment(name="a"), "BJ", texts)
    other, _ = latent_positions(0, spread, SimulatedDeployment(name="b"), "BJ", texts)
    task, _ = latent_positions(0, spread, SimulatedDeployment(name="a"), "SC", texts)
    assert np.std(sel) == pytest.approx(1, abs=0.05)
    assert np.corrcoef(sel, elab)[0, 1] == pytest.approx(0.4, abs=0.06)
    assert np.corrcoef(sel, other)[0, 1] == pytest.approx(0.5, abs=0.06)
    assert np.corrcoef(sel, task)[0, 1] == pytest.approx(0.8, abs=0.06)


def test_shifts_add_up_where_all_their_levels_fit():
    deployment = SimulatedDeployment(
        name="d",
        tasks={"BJ": TaskTruth(p_a=0.5), "CTO": TaskTruth(p_a=0.5)},
        shifts={
            "role=ai_ethicist": Shift(sel=-1.0),
            "task=CTO,role=ai_ethicist": Shift(sel=-1.0),
            "sentiment=negative": Shift(elab=2.0),
        },
    )
    assert declared_task(deployment, Ask(role="ai_ethicist")).p_a == pytest.approx(1 / (1 + math.e))
    assert declared_task(deployment, Ask(task=Task.CTO, role="ai_ethicist")).p_a == pytest.approx(1 / (1 + math.e**2))
    assert declared_task(deployment, Ask(role="military")).p_a == 0.5
    for wrong in ("role", "colour=red", "role=", "role=a,role=b"):
        with pytest.raises(ValueError, match=r"form|twice"):
            read_shift_key(wrong)


def test_drift_replaces_and_shifts():
    drift = Drift(at=60.0, tasks={"BJ": TaskTruth(p_a=0.8)}, shift=Shift(sel=1.0))
    deployment = SimulatedDeployment(name="d", tasks={"BJ": TaskTruth(p_a=0.1)}, drift=drift)
    assert declared_task(deployment, Ask()).p_a == 0.1
    assert declared_task(deployment, Ask(), drifted=True).p_a == pytest.approx(1 / (1 + math.exp(-math.log(4) - 1)))


def test_drawn_counts_agree_with_the_limit():
    truth = TaskTruth(p_a=0.3, p_b_given_a=0.6, p_b_given_not_a=0.2, icc=0.3)
    rng = np.random.default_rng(7)
    counts = coded_counts(truth, statements=100, draws=5, audits=400, layers=0.5, channel=PANEL, rng=rng)
    assert counts.shape == (400, 100, 5, 6)
    assert counts.dtype == np.int64
    limit = joint_table(truth, population_moments(truth, 0.5)) @ PANEL
    per_audit = counts.sum(axis=1) / 500
    error = per_audit.std(axis=0, ddof=1) / math.sqrt(400) + 1e-5
    assert (np.abs(per_audit.mean(axis=0) - limit) < 5 * error).all()
    four = eligible_counts(counts.sum(axis=(0, 1)))
    pooled = metrics_of(counts.sum(axis=(0, 1))).values
    assert pooled["ir"] == pytest.approx((four[1] + four[2]) / four.sum())


def test_drawn_rows_agree_with_truth_and_limit_on_their_own_statements():
    texts = [f"Statement number {number}." for number in range(50)]
    deployment = SimulatedDeployment(
        name="d", filtered=0.05, tasks={"BJ": TaskTruth(p_a=0.3, icc=0.3), "Explain": TaskTruth(p_b_given_not_a=0.2)}
    )
    scenario = Scenario(deployments=(deployment,), judges=JUDGES, shared_error=0.2, seed=11)
    plan = {Ask(): 300, Ask(task=Task.EXPLAIN): 200, Ask(answer_only=True): 100}
    rows = coded_rows(scenario, plan, texts, rng=np.random.default_rng(2), draws=2)
    assert rows.sel.size == 50 * 600 * 2
    for elab, key in ((rows.elab_true, "true_joint"), (rows.elab, "limit_joint")):
        seen = np.zeros((5, 6))
        np.add.at(seen, (rows.sel, elab), 1)
        wanted = getattr(expect(scenario, deployment, plan, statements=texts), key)
        n = rows.sel.size
        assert seen / n == pytest.approx(wanted, abs=5 * math.sqrt(0.25 / n))
        assert (seen[wanted == 0] == 0).all()


def test_rows_come_in_the_order_they_say():
    scenario = Scenario(deployments=(SimulatedDeployment(name="a"), SimulatedDeployment(name="b")))
    plan = {Ask(): 1, Ask(task=Task.CTO): 2}
    rows = coded_rows(scenario, plan, ["x", "y", "z"], rng=np.random.default_rng(0), draws=2)
    assert rows.deployment.tolist() == [0] * 18 + [1] * 18
    assert rows.statement[:6].tolist() == [0, 1, 2, 0, 1, 2]
    assert rows.draw[:6].tolist() == [0, 0, 0, 1, 1, 1]
    assert rows.template[6:18].tolist() == [0] * 6 + [1] * 6
    assert rows.ask[:18].tolist() == [0] * 6 + [1] * 12


def test_undefined_is_missing_with_a_reason():
    nothing = metrics_of(np.diag([0.0, 0.0, 0.0, 0.0, 1.0]) @ np.ones((5, 6)))
    assert "ir" not in nothing.values
    assert nothing.missing["ir"]
    table = np.zeros((5, 6))
    table[2, 3] = 1
    assert metrics_of(table).missing == {"ir_over_union": "nothing is endorsed on either layer"}
    with pytest.raises(ValueError, match="mass"):
        metrics_of(np.zeros((5, 6)))
    with pytest.raises(ValueError, match="variance"):
        variance_share(np.zeros(2), np.ones(2))


def test_a_panel_is_chosen_by_name_and_a_condition_is_a_question():
    scenario = Scenario(deployments=(SimulatedDeployment(name="a"),), judges=JUDGES)
    alone = expect(scenario, scenario.deployments[0], Ask(), judges=["j1"])
    joint = alone.true_joint @ panel_channel([JUDGES[0]])
    assert alone.limit_joint == pytest.approx(joint)
    with pytest.raises(ValueError, match="no such judge"):
        expect(scenario, scenario.deployments[0], Ask(), judges=["gone"])
    with pytest.raises(ValueError, match="weight"):
        expect(scenario, scenario.deployments[0], {})
    assert (
        expect(Scenario(deployments=(SimulatedDeployment(name="a"),)), SimulatedDeployment(name="a"), Ask()).limit
        is None
    )
    cell = Condition(task=Task.CTO, role=Role.MILITARY)
    assert ask_of(cell, answer_only=True) == Ask(task=Task.CTO, role="military", answer_only=True)


def test_every_task_and_period_has_a_row():
    scenario = Scenario(
        deployments=(
            SimulatedDeployment(name="a"),
            SimulatedDeployment(name="b", drift=Drift(at=5.0, shift=Shift(sel=1.0))),
        ),
        judges=JUDGES,
    )
    rows = expect_tasks(scenario)
    assert len(rows) == 6 + 12
    assert {row["period"] for row in rows} == {"always", "before drift", "after drift"}
