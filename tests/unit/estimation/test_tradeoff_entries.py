"""``tradeoff``: which rows enter, what they cost on average, and what stays out."""

import pytest
from support.documents.json_entries import written
from support.documents.row_tallies import tallied

from auditor.estimation.mitigation import OUTCOMES, tradeoff

#: Condition (fields off the baseline), endorsing selections of every hundred, mean tokens.
CONDITIONS = [
    ({"task": "CTO"}, 60, 8),
    ({"task": "SC"}, 20, 12),
    ({}, 10, 26),
    ({"role": "ai_ethicist"}, 2, 28),
]


def asked(statements=100, deployments=("m1", "m2"), conditions=CONDITIONS, **fields):
    """Statement by statement one response; tokens alternate one below and one above the mean."""
    return [
        {
            "deployment": deployment,
            "statement_id": f"S{number:03d}",
            "sel": "E" if number < endorsed else "D",
            "elab": "E" if number >= 90 else "D",
            "completion_tokens": tokens + (1 if number % 2 else -1),
            **condition,
            **fields,
        }
        for deployment in deployments
        for condition, endorsed, tokens in conditions
        for number in range(statements)
    ]


def entries(rows, n_boot=40):
    found = {entry["outcome"]: entry for entry in written(tradeoff(tallied(rows), seed=0, n_boot=n_boot))}
    assert tuple(found) == OUTCOMES
    return found


def test_rates_tokens_and_recipes_by_hand():
    found = entries(asked())
    for outcome, rates in {
        "ber_sel_full": {"CTO": 0.6, "SC": 0.2, "baseline": 0.1, "ai_ethicist": 0.02},
        "ber_union_full": {"CTO": 0.7, "SC": 0.3, "baseline": 0.2, "ai_ethicist": 0.12},
    }.items():
        entry = found[outcome]
        assert (entry["rubric"], entry["by"], entry["n_statements"]) == ("statement", {}, 100)
        assert {option["name"]: option["rate"] for option in entry["options"]} == pytest.approx(rates)
        assert {option["name"]: option["tokens"] for option in entry["options"]} == {
            "CTO": 8,
            "SC": 12,
            "baseline": 26,
            "ai_ethicist": 28,
        }
        for option in entry["options"]:
            assert option["reduction"] == pytest.approx(1 - option["rate"] / rates["CTO"])
            assert option["cost"] == pytest.approx(option["tokens"] / 8)
            assert option["on_frontier"]
        assert (entry["left_out"], entry["deployments"]) == ([], ["m1", "m2"])
    assert {recipe["use"]: recipe["name"] for recipe in found["ber_sel_full"]["recipes"]} == {
        "max_reduction": "ai_ethicist",
        "balanced": "baseline",
        "cost_constrained": "SC",
    }
    # Of a hundred, the last ten elaborations endorse and no selection of these does: DNI = sel - elab.
    dni = {option["name"]: option["dni"]["value"] for option in found["ber_sel_full"]["options"]}
    assert dni == pytest.approx({"CTO": 0.5, "SC": 0.1, "baseline": 0.0, "ai_ethicist": -0.08})
    by = {option["name"]: option["by"] for option in found["ber_sel_full"]["options"]}
    assert by["ai_ethicist"] == {"task": "BJ", "perspective": "self", "role": "ai_ethicist", "sentiment": "neutral"}


def test_rows_that_say_no_tokens_are_missing_with_the_reason():
    silent = [{name: value for name, value in row.items() if name != "completion_tokens"} for row in asked()]
    for entry in entries(silent).values():
        assert entry["missing"] == "no row says its completion tokens"


def test_a_deployment_that_does_not_say_its_tokens_is_in_neither_rates_nor_tokens():
    silent = [row | {"sel": "E", "completion_tokens": None} for row in asked(deployments=("m3",))]
    assert entries([*asked(), *silent]) == entries(asked())


def test_free_tasks_crossed_conditions_and_other_rubrics_are_no_options():
    others = [
        *asked(conditions=[({"task": "Explain", "sel": "Abstain"}, 0, 5)]),
        *asked(conditions=[({"task": "CTO", "sentiment": "skeptical"}, 0, 5)]),
        *asked(conditions=[({"task": "Rate"}, 0, 5)], rubric="proposition", claim="stereotype"),
    ]
    assert entries([*asked(), *others]) == entries(asked())


def test_conditions_without_tokens_or_statements_are_named():
    others = [
        *asked(conditions=[({"task": "Rate", "completion_tokens": None}, 0, 5)]),
        *asked(conditions=[({"sentiment": "negative", "completion_tokens": 0}, 0, 5)]),
        *asked(conditions=[({"perspective": "media"}, 0, 5)], statements=99),
    ]
    found = entries([*asked(), *others])["ber_sel_full"]
    assert found["left_out"] == ["Rate", "media", "negative"]
    assert {option["name"] for option in found["options"]} == {"CTO", "SC", "baseline", "ai_ethicist"}


def test_tokens_are_means_over_responses():
    rows = [*asked(deployments=("m1",)), *asked(deployments=("m2",), completion_tokens=100)]
    found = entries(rows)["ber_sel_full"]
    assert {option["name"]: option["tokens"] for option in found["options"]}["SC"] == (12 + 100) / 2


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (asked(conditions=CONDITIONS[:1]), "fewer than two conditions with 100 statements"),
        (asked(completion_tokens=0), "no row that asks for a selection says that it has completion tokens"),
        (asked(statements=50), "fewer than two conditions with 100 statements"),
    ],
)
def test_what_cannot_be_weighed_says_why(rows, reason):
    for entry in entries(rows).values():
        assert entry["missing"] == reason


def test_there_is_no_entry_where_nothing_was_asked_under_conditions():
    assert tradeoff(tallied([{"rubric": "open", "sel": "Abstain"}]), seed=0, n_boot=20) == []
