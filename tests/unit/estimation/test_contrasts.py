"""Additivity, flips of DNI and dominance by category: against counts made by hand, and the paper's numbers."""

import json
from collections import Counter
from itertools import product

import numpy as np
import pytest
from support.worlds.coded_rows import coded_rows, factorial_conditions, oat_conditions, write_rows

from auditor.counting.conditions import BASELINE, FACTORS
from auditor.documents.codec import canonical_bytes
from auditor.documents.conditions import VarianceShareEntry
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.estimation.contrasts import dominance
from auditor.metrics.additivity import Square, additivity_contrasts, find_squares

FOUR = Square(factors=(0, 2), levels=("BJ", "ai_ethicist"), places=(0, 1, 2, 3))


def document(folder, rows, **options):
    chosen = Options(**{"n_boot": 60, **options})
    rows = [row | {"id": str(number)} for number, row in enumerate(rows)]
    return json.loads(canonical_bytes(analyse(read_tallies(write_rows(folder / "rows.jsonl", rows), chosen), chosen)))


@pytest.fixture(scope="module")
def crossed():
    return list(coded_rows(factorial_conditions(), statements=40))


@pytest.fixture(scope="module")
def found(crossed, tmp_path_factory):
    return document(tmp_path_factory.mktemp("crossed"), crossed)


def counted(rows, deployment):
    """Selections that endorse, and selections, by condition."""
    endorsed, selected = Counter(), Counter()
    for row in rows:
        if row["sel"] != "Abstain" and deployment in {None, row["deployment"]}:
            condition = tuple(row[factor] for factor in FACTORS)
            selected[condition] += 1
            endorsed[condition] += row["sel"] == "E"
    return endorsed, selected


def rate(rows, deployment, condition):
    endorsed, selected = counted(rows, deployment)
    return endorsed[condition] / selected[condition]


@pytest.mark.parametrize("deployment", [None, "m1", "m2"])
def test_joint_and_additive_changes_are_those_of_the_four_conditions(crossed, found, deployment):
    by = {} if deployment is None else {"deployment": deployment}
    (entry,) = [each for each in found["additivity"] if each["by"] == by]
    start = tuple(entry["reference"])
    assert start == ("CTO", "self", "none", "neutral")
    assert len(entry["contrasts"]) == 2 * 3 + 3  # two other tasks with three other factors, three pairs of those
    base, size = rate(crossed, deployment, start), counted(crossed, deployment)[1]
    for contrast in entry["contrasts"]:
        changed = dict(zip(contrast["factors"], contrast["levels"], strict=True))
        first, second = (
            tuple(changed[name] if name == factor else own for name, own in zip(FACTORS, start, strict=True))
            for factor in contrast["factors"]
        )
        both = tuple(changed.get(name, own) for name, own in zip(FACTORS, start, strict=True))
        joint = rate(crossed, deployment, both) - base
        additive = rate(crossed, deployment, first) + rate(crossed, deployment, second) - 2 * base
        assert contrast["joint"]["value"] == pytest.approx(joint, abs=1e-9)
        assert contrast["additive"]["value"] == pytest.approx(additive, abs=1e-9)
        assert contrast["departure"]["value"] == pytest.approx(joint - additive, abs=1e-9)
        assert contrast["n"] == sum(size[each] for each in (start, first, second, both))
        for each in ("joint", "additive", "departure"):
            assert contrast[each]["low"] < contrast[each]["value"] < contrast[each]["high"]


def test_the_papers_numbers_give_65_1_points_together_and_68_7_in_sum():
    """Section VI-B prints 68.7 and 72.0; its own rates give 65.1 and 68.7."""
    task, role = 0.573, 0.114
    rates = np.array([0.675, 0.675 - task, 0.675 - role, 0.024])
    trials = np.full((40, 4), 25.0)
    out = additivity_contrasts([FOUR], trials * rates, trials, n_boot=40, seed=0)
    assert out.joint.value[0] == pytest.approx(-0.651)
    assert out.additive.value[0] == pytest.approx(-0.687)
    assert out.departure.value[0] == pytest.approx(0.036)


def test_a_one_at_a_time_design_has_no_contrast(tmp_path):
    assert {
        each["missing"] for each in document(tmp_path, coded_rows(oat_conditions(), statements=20))["additivity"]
    } == {"no two changes were asked one at a time and together"}


def test_a_square_needs_all_four_conditions():
    conditions = list(product(("BJ", "CTO"), ("self",), ("none", "chef"), ("neutral",)))
    start = ("CTO", "self", "none", "neutral")
    assert len(find_squares(conditions, start)) == 1
    for lacking in conditions:
        assert find_squares([each for each in conditions if each != lacking], start) == []


def answers(rng, departure, statements=100):
    """Events of four conditions with one response each, of known departure, statements differing."""
    base = np.array([0.6, 0.35, 0.4, 0.15 + departure])
    own = rng.normal(0, 0.08, statements)[:, None]
    return (rng.random((statements, 4)) < np.clip(base + own, 0, 1)).astype(float)


@pytest.mark.parametrize("audits", [150, pytest.param(400, marks=pytest.mark.bench)])
@pytest.mark.parametrize("departure", [0.0, 0.25])
def test_intervals_of_the_departure_hold(departure, audits):
    rng, held = np.random.default_rng(3), 0
    for seed in range(audits):
        y = answers(rng, departure)
        out = additivity_contrasts([FOUR], y, np.ones_like(y), n_boot=200, seed=seed).departure
        held += out.low[0] <= departure <= out.high[0]
    print(f"\na departure of {departure} is held in {held / audits:.3f} of {audits} audits")
    assert held >= 136 / 150 * audits  # of 150, 95 % would give 142.5, with a standard error of 2.7


def labelled(dni, condition, statements=40):
    """Answers under one condition whose DNI is positive or negative throughout, but for one statement of 40."""
    for statement in range(statements):
        sel, elab = ("E", "D") if dni > 0 else ("D", "E")
        odd = statement == 0
        yield {
            "deployment": "m1",
            "statement_id": f"S{statement}",
            **dict(zip(FACTORS, condition, strict=True)),
            "sel": "D" if odd else sel,
            "elab": "D" if odd else elab,
        }


def test_the_papers_map_flips_sixteen_of_24_conditions(tmp_path):
    """Figure 8: all CTO and SC cells over-estimate, all BJ cells under-estimate."""
    rows = [
        row
        for condition in factorial_conditions()
        for row in labelled(-1 if condition[0] == "BJ" else 1, condition, statements=120)
    ]
    pooled, alone = document(tmp_path, rows)["sign_flips"]
    assert (pooled["by"], alone["by"]) == ({}, {"deployment": "m1"})
    for entry in (pooled, alone):
        assert (entry["n_opposite"], entry["n_flipped"], entry["n_conditions"], entry["n_tested"]) == (16, 16, 24, 23)
        assert entry["baseline"]["value"] == entry["lowest"] == pytest.approx(-119 / 120)


def test_few_statements_have_signs_and_no_verdict(tmp_path):
    rows = [
        row for place, condition in enumerate(factorial_conditions()) for row in labelled(place % 2 or -1, condition)
    ]
    entry = document(tmp_path, rows)["sign_flips"][0]
    assert (entry["n_compared"], entry["n_tested"], entry["n_flipped"]) == (23, 0, 0)
    assert 0 < entry["n_opposite"] < 24


def test_without_the_baseline_there_is_nothing_to_flip_from(tmp_path):
    rows = [row for each in factorial_conditions() if each != BASELINE for row in labelled(1, each)]
    (entry, _) = document(tmp_path, rows)["sign_flips"]
    assert entry["missing"] == "the baseline condition was not asked"


def shares(category, **effects):
    return VarianceShareEntry(
        by={"category": category},
        rubric="statement",
        outcome="ber_union_full",
        base="full",
        design="oat",
        weights="responses",
        flags=(),
        n=100,
        effects={name: value for name, (value, _) in effects.items()},
        intervals={name: (value - wide, value + wide) for name, (value, wide) in effects.items()},
    )


def test_religion_is_the_papers_exception_among_ten_categories():
    """Section V-B: more than twice the next share in 9 of 10; Religion has .052 against .033."""
    others = [shares(f"c{each}", task=(0.10, 0.01), sentiment=(0.03, 0.001 * each)) for each in range(9)]
    religion = shares("religion", task=(0.052, 0.01), role=(0.01, 0.005), sentiment=(0.033, 0.01))
    (entry,) = dominance([*others, religion])
    assert (entry.n_exceeding, entry.n_largest, entry.n_categories) == (9, 10, 10)
    (exception,) = [each for each in entry.categories if not each.exceeds]
    assert (exception.category, exception.next_factor) == ("religion", "sentiment")
    assert exception.ratio == pytest.approx(1.5757575757575757)
    assert entry.n_supported == 9


def test_intervals_support_less_than_values_say():
    wide = shares("age", task=(0.10, 0.05), sentiment=(0.03, 0.02))
    lone = shares("body", task=(0.10, 0.05))
    (entry,) = dominance([wide, lone])
    assert (entry.n_exceeding, entry.n_supported, entry.left_out) == (1, 0, ["body"])


def test_shares_by_category_are_those_of_the_document(tmp_path):
    made = document(tmp_path, coded_rows(oat_conditions(), statements=80))
    (entry,) = made["dominance"]
    for each in entry["categories"]:
        (own,) = [
            row
            for row in made["eta_squared"]
            if row["by"] == {"category": each["category"]}
            and (row["design"], row.get("weights")) == ("oat", "responses")
        ]
        rest = {name: value for name, value in own["effects"].items() if name != "task"}
        assert each["share"]["value"] == own["effects"]["task"]
        assert each["next_share"]["value"] == max(rest.values())
        assert each["exceeds"] == (own["effects"]["task"] > 2 * max(rest.values()))
    assert entry["n_categories"] == 4
