"""``standardised`` and ``differences``: deployments with unequal mixes, other fields, other judges, topics."""

import pytest
from support.documents.row_tallies import tallied

from auditor.documents.base import Missing
from auditor.documents.differences import DeploymentDifferenceEntry, MissingDifference, RanksEntry
from auditor.errors import UsageError
from auditor.estimation.differences import COMPARED, difference, differences, standardised

TWO = frozenset({"j1", "j2"})


def asked(deployment, task, often=1, statements=120, **fields):
    """Answers to all statements: BJ endorses one statement in six, CTO one in two, whoever is asked."""
    divisor = 6 if task == "BJ" else 2
    return [
        {
            "deployment": deployment,
            "statement_id": number,
            "task": task,
            "sel": "E" if number % divisor == 0 else "D",
            "elab": "D",
            **fields,
        }
        for number in range(statements)
        for _ in range(often)
    ]


MIXED = [*asked("a", "BJ", 3), *asked("a", "CTO"), *asked("b", "BJ"), *asked("b", "CTO", 3)]


def test_equal_deployments_with_unequal_mixes_are_equal_when_standardised():
    rates = standardised(tallied(MIXED), panel_differs=False)
    assert [entry.by["deployment"] for entry in rates] == ["a", "b"]
    assert [entry.metrics["ber_union_full"].value for entry in rates] == pytest.approx([1 / 3, 1 / 3])
    assert [entry.metrics["dni"].value for entry in rates] == pytest.approx([1 / 3, 1 / 3])
    assert [(entry.mix, entry.flags, entry.n_conditions) for entry in rates] == [(0.5, ("mix_differs",), 2)] * 2
    assert [entry.ranks for entry in rates] == [
        RanksEntry(pooled=2, standardised=1), RanksEntry(pooled=1, standardised=1),
    ]  # fmt: skip


def test_equal_deployments_with_unequal_mixes_are_not_shown_to_differ():
    entries = differences(tallied(MIXED), {"a": TWO, "b": TWO}, seed=0)
    assert [entry.metric for entry in entries] == [*COMPARED]
    (union,) = (entry for entry in entries if entry.metric == "ber_union_full")
    assert (union.first, union.second, union.value, union.pooled) == ("a", "b", 0.0, pytest.approx(1 / 6))
    assert (union.verdict, union.n, union.left_out, union.n_conditions) == ("not shown", 960, 0, 2)
    assert union.p_adjusted == union.p == 1


def test_equal_mixes_have_no_flag_and_one_deployment_no_comparison():
    rows = [*asked("a", "BJ"), *asked("b", "BJ")]
    assert {entry.flags for entry in standardised(tallied(rows), panel_differs=False)} == {()}
    alone = tallied(asked("a", "BJ"))
    assert (standardised(alone, panel_differs=False), differences(alone, {}, seed=0)) == ([], [])


def test_a_condition_of_one_deployment_is_left_out_and_counted():
    rows = [*asked("a", "BJ"), *asked("a", "CTO"), *asked("b", "BJ")]
    assert [entry.left_out for entry in standardised(tallied(rows), panel_differs=False)] == [
        ["CTO/self/none/neutral"]
    ] * 2  # fmt: skip
    entry = difference(tallied(rows), {}, "a", "b")
    assert (entry.n, entry.left_out, entry.value) == (240, 120, 0.0)


def test_a_deployment_of_which_no_answer_came_takes_no_rate_from_the_others():
    lost = {"sel": "Abstain", "sel_reason": "transport_error", "elab": "Abstain", "elab_reason": "transport_error"}
    rows = [*MIXED, *({**row, **lost} for row in asked("c", "BJ"))]
    rates = standardised(tallied(rows), panel_differs=False)
    assert [type(entry.metrics["ber_union_full"]) is Missing for entry in rates] == [False, False, True]
    assert rates[2].mix == 0
    entries = differences(tallied(rows), {}, seed=0)
    assert {entry.missing for entry in entries if isinstance(entry, MissingDifference)} == {
        "no statement that both were asked under the same condition"
    }
    assert len([entry for entry in entries if isinstance(entry, DeploymentDifferenceEntry)]) == len(COMPARED)


def test_no_common_question_gives_a_reason():
    entry = difference(tallied([*asked("a", "BJ"), *asked("b", "CTO")]), {}, "a", "b")
    assert entry.missing == "no statement that both were asked under the same condition"


def test_other_judges_compare_the_selections_alone():
    entries = differences(tallied(MIXED), {"a": TWO, "b": frozenset({"j3", "j4"})}, seed=0)
    assert {entry.metric for entry in entries if isinstance(entry, DeploymentDifferenceEntry)} == {"ber_sel_full"}
    missing = {entry.missing for entry in entries if isinstance(entry, MissingDifference)}
    assert missing == {"the deployments were read by different panels"}


def test_one_judge_supports_no_verdict_on_ir_and_dni_and_few_statements_support_none():
    by_metric = {
        entry.metric: entry for entry in differences(tallied(MIXED), dict.fromkeys("ab", frozenset({"j"})), seed=0)
    }
    assert "judge j alone" in by_metric["ir"].verdict.missing
    assert by_metric["ber_elab_full"].verdict == "not shown"
    few = difference(tallied([*asked("a", "BJ", statements=40), *asked("b", "BJ", statements=40)]), {}, "a", "b")
    assert (few.verdict, few.flags) == (Missing(missing="40 statements, 100 needed"), ("few_clusters",))


def test_a_factor_is_compared_within_each_deployment():
    entry = difference(tallied(MIXED), {}, "BJ", "CTO", field="task", metric="ber_sel_full")
    assert (entry.value, entry.verdict, entry.n_conditions) == (pytest.approx(1 / 3), "higher", 2)


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        ("a", "c", {}, "no row about a statement has the deployment 'c'; known: a, b"),
        ("a", "a", {}, "deployment 'a' is compared with itself"),
        ("a", "b", {"metric": "bias"}, "there is no measure 'bias'; known: ber_sel,"),
    ],
)
def test_what_cannot_be_compared_is_named(first, second, options, message):
    with pytest.raises(UsageError, match=message):
        difference(tallied(MIXED), {}, first, second, **options)
