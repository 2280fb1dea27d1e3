"""Decisions by group: the rules of the presets, and findings at the promised rate."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from auditor.documents.base import Missing
from auditor.documents.decisions import DecisionGroupEntry, DecisionsDocument, ImpactRatioEntry
from auditor.errors import InputError, UsageError
from auditor.estimation.decisions import DecisionOptions, compare_decisions, load_rule
from auditor.stats.intervals import Interval
from auditor.stats.rate_ratios import GroupCounts, ratio_interval, ratios_to_highest
from biasmeter.commands.main import app


def rows(**counts: tuple[int, int]) -> list[dict[str, Any]]:
    """Return rows of one field: favourable and all decisions by group."""
    return [
        {"sex": name, "race_ethnicity": "Asian", "decision": "yes" if place < yes else "no"}
        for name, (yes, n) in counts.items()
        for place in range(n)
    ]


def compare(data: list[dict[str, Any]], preset: str = "eeoc", **options: Any) -> DecisionsDocument:
    return compare_decisions(data, DecisionOptions(rule=load_rule(preset), **options))


def by_sex(document: DecisionsDocument) -> dict[str, DecisionGroupEntry]:
    return {each.values[0]: each for each in document.tables[0].categories}


def ratio_of(entry: DecisionGroupEntry) -> ImpactRatioEntry:
    assert isinstance(entry.impact_ratio, ImpactRatioEntry)
    return entry.impact_ratio


def test_the_example_of_the_guidelines() -> None:
    """29 CFR 1607.4 D by its arithmetic: 60 of 100 and 30 of 100 are a ratio of one half."""
    document = compare(rows(Male=(60, 100), Female=(30, 100)))
    found = by_sex(document)
    assert (ratio_of(found["Female"]).value, ratio_of(found["Male"]).value) == (0.5, 1.0)
    assert (ratio_of(found["Female"]).under_threshold, ratio_of(found["Female"]).finding) == (True, "below")
    assert ratio_of(found["Male"]).finding == "not_below"
    assert document.tables[0].highest == ["Male"]
    assert len(document.tables) == 2  # no intersections


def test_few_decisions_show_nothing_although_the_ratio_is_low() -> None:
    found = ratio_of(by_sex(compare(rows(Male=(6, 10), Female=(3, 10))))["Female"])
    assert (found.value, found.under_threshold, found.finding) == (0.5, True, "unclear")


def test_local_law_144_has_categories_intersections_and_no_threshold() -> None:
    data = [
        {"sex": sex, "race_ethnicity": race, "decision": place % 3 == 0}
        for sex in ("male", "FEMALE", "", "robot")
        for race in ("White", "Asian")
        for place in range(60)
    ]
    data += [{"sex": "Male", "race_ethnicity": "Two or more races", "decision": True} for _ in range(5)]
    document = compare(data, "ll144")
    sex, race, both = document.tables
    assert [tuple(each.values) for each in sex.categories] == [("Female",), ("Male",)]
    assert (sex.n, sex.n_unknown, race.n_unknown, both.n_unknown) == (245, 240, 0, 240)
    assert ratio_of(sex.categories[0]).finding is UNSET
    small = next(each for each in race.categories if each.values == ["Two or More Races"])
    assert (small.excluded, small.n, small.favourable) == ("fewer than 2 % of all decisions", 5, 5)
    assert race.highest != ["Two or More Races"]
    assert {tuple(each.values) for each in both.categories if not isinstance(each.impact_ratio, Missing)} == {
        (sex, race) for sex in ("Male", "Female") for race in ("White", "Asian")
    }


def test_scores_count_over_the_median_of_all() -> None:
    data = [{"sex": "a" if score < 60 else "b", "race_ethnicity": "x", "points": score} for score in range(100)]
    document = compare([*data, {"sex": "a", "race_ethnicity": "x", "points": None}], score="points")
    assert (document.kind, document.median, document.n, document.n_unread) == ("score", 49.5, 100, 1)
    assert {name: each.favourable for name, each in by_sex(document).items()} == {"a": 10, "b": 40}


def test_decisions_of_one_person_are_not_independent() -> None:
    data = [
        {"sex": sex, "race_ethnicity": "x", "decision": "yes" if person % 5 < high else "no", "who": f"{sex}{person}"}
        for sex, high in (("a", 4), ("b", 2))
        for person in range(30)
        for _ in range(20)
    ]
    alone, together = (ratio_of(by_sex(compare(data, cluster=cluster))["b"]).interval for cluster in (None, "who"))
    assert together[1] - together[0] > 3 * (alone[1] - alone[0])


def test_no_favourable_decision_has_no_ratio() -> None:
    document = compare(rows(Male=(0, 50), Female=(0, 50)))
    assert by_sex(document)["Male"].impact_ratio == Missing(missing="no group has a favourable decision")
    assert by_sex(compare(rows(Male=(3, 50))))["Male"].impact_ratio == Missing(
        missing="fewer than two groups are compared"
    )


def simulate(rates: list[float], n: list[int], seed: int, runs: int) -> tuple[float, float]:
    """Return how often all intervals hold the true ratios, and how often any group is found below 0.8."""
    rng = np.random.default_rng(seed)
    true = np.array(rates) / max(rates)
    held = found = 0
    for _ in range(runs):
        y = rng.binomial(n, rates)
        groups = [GroupCounts(y=np.repeat([1.0, 0.0], [k, m - k]), n=np.ones(m)) for k, m in zip(y, n, strict=True)]
        ratios = [each for each in ratios_to_highest(groups) if each is not None]
        held += all(each.interval.low <= t <= each.interval.high for each, t in zip(ratios, true, strict=True))
        found += any(each.interval.high < 0.8 for each in ratios)
    return held / runs, found / runs


def test_a_planted_violation_is_found_and_an_absent_one_at_most_at_the_promised_rate() -> None:
    held, found = simulate([0.4, 0.2, 0.4], [400, 400, 200], seed=1, runs=300)
    assert held >= 0.92
    assert found >= 0.95
    for rates, n in (([0.3, 0.24], [500, 500]), ([0.5, 0.5, 0.5, 0.4], [600, 300, 100, 300]), ([0.3] * 4, [200] * 4)):
        held, found = simulate(rates, n, seed=2, runs=300)
        assert held >= 0.92
        assert found <= 0.05


def pairs(rng: np.random.Generator, rates: tuple[float, float], cases: int) -> list[dict[str, Any]]:
    """Each case decided twice, under a name of each group; cases differ, so the two decisions are alike."""
    own = rng.beta(*(2 * np.array([rates[0], 1 - rates[0]])), size=cases)
    return [
        {"sex": sex, "race_ethnicity": "x", "case": f"c{case}", "decision": bool(rng.random() < own[case] * kept)}
        for case in range(cases)
        for sex, kept in (("Male", 1.0), ("Female", rates[1] / rates[0]))
    ]


def test_counterfactual_swaps_are_one_row_for_each_group_of_a_case() -> None:
    """With the case as cluster a planted violation is found, and an absent one at most at the promised rate."""
    found = {}
    for rates, cases in (((0.5, 0.25), 400), ((0.5, 0.4), 400), ((0.5, 0.5), 400)):
        rng = np.random.default_rng(3)
        ratios = [ratio_of(by_sex(compare(pairs(rng, rates, cases), cluster="case"))["Female"]) for _ in range(40)]
        found[rates] = sum(each.finding == "below" for each in ratios)
        assert sum(each.interval[0] <= rates[1] / rates[0] <= each.interval[1] for each in ratios) >= 37
    assert found[0.5, 0.25] >= 38
    assert max(found[0.5, 0.4], found[0.5, 0.5]) <= 2


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=2, max_size=5).filter(
        lambda given: any(y for y, _ in given)
    )
)
def test_every_ratio_lies_in_its_interval_within_0_and_1(given: list[tuple[int, int]]) -> None:
    groups = [GroupCounts(y=np.repeat([1.0, 0.0], [min(y, n), n - min(y, n)]), n=np.ones(n)) for y, n in given]
    for found in ratios_to_highest(groups):
        assert found is not None
        assert 0 <= found.interval.low <= found.value + 1e-12
        assert found.value - 1e-12 <= found.interval.high <= 1


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.floats(0.001, 0.2), st.floats(0.001, 0.2))
def test_the_interval_of_a_ratio_holds_it(p: float, q: float, first: float, second: float) -> None:
    found = ratio_interval(
        p,
        Interval(low=max(p - first, 0), high=min(p + first, 1)),
        q,
        Interval(low=max(q - second, 0), high=min(q + second, 1)),
    )
    assert found.low <= p / q + 1e-9
    assert found.high >= p / q - 1e-9


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([{"sex": "a", "race_ethnicity": "x", "decision": "perhaps"}], {}, "row 1: decision 'perhaps' is neither yes"),
        ([{"sex": "a", "decision": "yes"}], {}, "no row has a field 'race_ethnicity'"),
        ([{"sex": "a"}], {}, "no row has a decision: decision"),
        ([{"sex": "a", "points": "many"}], {"score": "points"}, "row 1: points 'many' is not a number"),
        ([{"sex": "a", "points": "inf"}], {"score": "points"}, "row 1: points 'inf' is not a number"),
    ],
)
def test_bad_rows_are_told_in_one_line(data: list[dict[str, Any]], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(data, **options)


def test_a_rule_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "house.yaml"
    path.write_text(
        "title: House rule\nsource: internal\nfields: [sex]\nintersections: false\nthreshold: 0.9\n"
        "exclude_below: 0\nscore: above_median\ncategories: {}\n"
    )
    assert ratio_of(by_sex(compare(rows(Male=(90, 100), Female=(50, 100)), str(path)))["Female"]).finding == "below"
    with pytest.raises(UsageError, match="--preset none: neither a file nor one of eeoc, ll144"):
        load_rule("none")
    path.write_text("title: House rule\n")
    with pytest.raises(UsageError, match=r"house\.yaml: is not a rule: .*source"):
        load_rule(str(path))


def test_the_command_writes_document_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "decisions.csv"
    lines = [f"{row['sex']},<b>x</b>,{row['decision']}" for row in rows(Male=(60, 100), Female=(30, 100))]
    table.write_text("sex,race_ethnicity,decision\n" + "\n".join(lines))
    app(["decisions", str(table), "-o", str(tmp_path / "out")], standalone_mode=False)
    assert "Female  30 of 100" in capsys.readouterr().out
    document = json.loads((tmp_path / "out" / "decisions.json").read_text())
    assert document["rule"]["name"] == "eeoc"
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Below 0.8 beyond chance: Female." in page
    assert "<b>x</b>" not in page
    for options, message in (
        (["-o", "out"], "name a file with decisions, or a store with -c"),
        ([str(table), "-o", "out", "--last", "7d"], "need -c"),
    ):
        with pytest.raises(UsageError, match=message):
            app(["decisions", *options], standalone_mode=False)
