"""Models of coded rows: Simpson's paradox, what the analysis of variance refuses, levels, formulas and their errors."""

import numpy as np
import pytest
from support.documents.row_tallies import tallied
from support.worlds.model_worlds import WORLDS

from auditor.documents.model import CoefficientEntry, MarginalEntry, MissingCoefficient, MissingMarginal
from auditor.errors import UsageError
from auditor.estimation.formula import parse_formula
from auditor.estimation.regression import explain, regress
from auditor.estimation.variation import Variation, scopes

RATES = {"BJ": 6, "SC": 3, "CTO": 2}


def asked(deployment, task, often=1, statements=60, **fields):
    """Answers to all statements, of which every sixth, third or second is endorsed, whoever is asked."""
    return [
        {"deployment": deployment, "statement_id": number, "task": task, "elab": "D", **fields,
         "sel": "E" if number % RATES[task] == 0 else "D"}
        for number in range(statements) for _ in range(often)
    ]  # fmt: skip


MIXED = [*asked("a", "BJ", 3), *asked("a", "CTO"), *asked("b", "BJ"), *asked("b", "CTO", 3)]


def fitted(rows, formula="sel ~ deployment + task", **options):
    return regress(tallied(rows), parse_formula(formula), **options)


def test_equal_deployments_with_unequal_mixes_have_no_difference_and_the_pooled_table_has():
    model = fitted(MIXED)
    deployment, task = model.differences
    assert isinstance(deployment, MarginalEntry)
    assert (deployment.level, deployment.reference) == ("b", "a")
    assert deployment.value == pytest.approx(0, abs=1e-9)
    assert deployment.pooled == pytest.approx(1 / 6)
    assert deployment.low < 0 < deployment.high
    assert (task.level, task.value, task.support) == ("CTO", pytest.approx(1 / 3), 1.0)
    assert [entry.term for entry in model.coefficients] == ["intercept", "deployment", "task"]
    assert model.coefficients[2].value == pytest.approx(np.log(5))
    assert (model.n, model.n_cells, model.clusters.n, model.flags) == (480, 4, 60, ("few_clusters",))


def test_it_answers_where_the_analysis_of_variance_refuses():
    """A crossed design with an empty cell, asked unequally often."""
    rows = [
        *asked("a", "BJ"), *asked("a", "CTO", 2), *asked("a", "SC"), *asked("a", "BJ", 2, role="military"),
        *asked("a", "CTO", role="military", perspective="others"), *asked("a", "SC", perspective="others"),
    ]  # fmt: skip
    tallies = tallied(rows)
    (scope,) = (each for each in scopes(tallies) if not each.by)
    *_, factorial = Variation(tallies, seed=0, n_boot=20).shares(scope)
    assert factorial.missing.startswith("not a factorial")
    differences = fitted(rows, "sel ~ task + role + perspective").differences
    assert {(entry.term, entry.level): round(entry.value, 6) for entry in differences} == {
        ("task", "SC"): 0.166667, ("task", "CTO"): 0.333333, ("role", "military"): 0.0, ("perspective", "others"): 0.0,
    }  # fmt: skip


def test_an_interaction_without_answers_is_missing_and_the_rest_is_not():
    rows = [*asked("a", "BJ"), *asked("a", "CTO"), *asked("b", "BJ")]
    model = fitted(rows, "sel ~ deployment*task")
    *_, crossed = model.coefficients
    assert isinstance(crossed, MissingCoefficient)
    assert (crossed.term, crossed.level, crossed.missing) == ("deployment:task", "b:CTO", "no answer has these levels")
    deployment, task = model.differences
    assert deployment.support == pytest.approx(2 / 3)  # under CTO the second deployment is not known
    assert task.value == pytest.approx(1 / 3)


def test_what_goes_together_cannot_be_told_apart():
    rows = [{**row, "keyed": "E" if row["deployment"] == "a" else "D"} for row in MIXED]
    model = fitted(rows, "sel ~ deployment + order + task")
    deployment, order, _ = model.differences
    assert isinstance(deployment, MissingMarginal)
    assert isinstance(order, MissingMarginal)
    assert order.missing == "cannot be told from other terms"


def test_a_level_that_nobody_endorses_has_a_difference_and_no_coefficient():
    rows = [*MIXED, *({**row, "sel": "D"} for row in asked("c", "BJ"))]
    model = fitted(rows)
    assert model.method.is_separated
    (coefficient,) = (entry for entry in model.coefficients if entry.level == "c")
    assert coefficient.missing == "no answer with these levels endorses"
    third = model.differences[1]
    assert third.level == "c"
    assert third.rate < 0.02
    assert third.high - third.low > 2 / 60
    assert isinstance(model.coefficients[1], CoefficientEntry)


def test_the_same_rows_and_seed_give_the_same_model_in_any_order():
    assert fitted(MIXED, seed=3) == fitted(MIXED[::-1], seed=3)


@pytest.mark.parametrize(
    ("formula", "written"),
    [
        ("sel~deployment", "sel ~ deployment"),
        ("elab ~ a:b", "elab ~ a + b + a:b"),
        ("union ~ a*b*c", "union ~ a + b + c + a:b + a:c + b:c + a:b:c"),
        ("sel ~ a*b + b:a + a", "sel ~ a + b + a:b"),
    ],
)
def test_a_formula_is_written_in_full(formula, written):
    assert str(parse_formula(formula)) == written


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("deployment + task", "the model 'deployment [+] task' must be OUTCOME ~ TERM"),
        ("sel ~ ", "must be OUTCOME ~ TERM"),
        ("bias ~ task", "the outcome of a model must be sel, elab, union.*, not 'bias'"),
        ("sel ~ task + ", "a term that is no name: ''"),
        ("sel ~ __import__('os')", "a term that is no name"),
        ("sel ~ a:a", "different fields, not 'a:a'"),
        ("sel ~ a*b*c*d", "up to 3 different fields"),
    ],
)
def test_a_formula_that_cannot_be_read_is_one_line(formula, message):
    with pytest.raises(UsageError, match=message):
        parse_formula(formula)


@pytest.mark.parametrize(
    ("rows", "formula", "message"),
    [
        (MIXED, "sel ~ dialect", "the model's term 'dialect' is no field of the rows"),
        (MIXED, "sel ~ category", "the model's term 'category': no row has a field 'category'"),
        (asked("a", "BJ", statements=10), "sel ~ deployment", "10 clusters, 15 needed"),
        (MIXED, "elab ~ deployment", "the model explains nothing: no answer endorses"),
    ],
)
def test_a_model_that_cannot_be_fitted_is_one_line(rows, formula, message):
    with pytest.raises(UsageError, match=message):
        fitted(rows, formula)


@pytest.mark.parametrize("name", ["two conditions, crossed", "six deployments, 60 statements"])
def test_equal_deployments_are_not_found_to_differ(name):
    """``tests/bench/test_model_coverage.py`` has more worlds and audits."""
    formula, found, pooled = parse_formula("sel ~ deployment + task"), 0, []
    for seed in range(25):
        cells = WORLDS[name].audit(np.random.default_rng([6, seed]))
        entries = [
            e for e in explain(cells, formula, cluster="statement", seed=0).differences if e.term == "deployment"
        ]
        found += min(entry.p_adjusted for entry in entries) <= 0.05
        pooled.append(abs(entries[0].pooled))
    assert found <= 4
    assert np.mean(pooled) > 0.05
