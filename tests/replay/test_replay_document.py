"""The document of a comparison: as its schema says, the same bytes every time, and no number that is not meant."""

import json
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_documents import FORMATS, REPLAY, clients, comparison, probes
from replay_groups import WORLDS, World, coded
from schemas import complaints
from statsmodels.stats.contingency_tables import mcnemar as reference

from auditor.analysis.document import canonical_bytes
from auditor.domain.condition import Role, Task
from auditor.domain.estimate import Insufficient
from auditor.metrics.rates import BY_NAME
from auditor.report.places import Place
from replay.comparison.compare import COMPARED
from replay.comparison.document import make_document
from replay.comparison.effects import factor_shares, remedies
from replay.comparison.flips import mcnemar
from replay.comparison.group import group_findings
from replay.comparison.scores import Scores
from replay.comparison.sides import STORED, Side, Sides
from replay.comparison.together import adjusted
from replay.formats import Format
from replay.page.comparison import render, table
from replay.page.tables import side_names


@cache
def shown():
    """The document as its file has it."""
    return json.loads(canonical_bytes(comparison(statements=40)))


def group_of(asked, formats=FORMATS):
    (group,) = make_document(replace(REPLAY, formats=formats), list(asked))["groups"]
    return group


def test_the_document_is_as_its_schema_says():
    assert list(complaints("replay", shown())) == []


def test_the_schema_says_no_where_a_key_is_missing_or_unknown():
    document = shown()
    group = {**document["groups"][0], "verdict": "good"}
    assert list(complaints("replay", {**document, "groups": [group]}))
    assert list(complaints("replay", {name: value for name, value in document.items() if name != "to"}))


def test_the_same_answers_in_any_order_are_the_same_bytes():
    asked = [*probes("north", 20, 0), *clients(20, 1)]
    assert canonical_bytes(make_document(REPLAY, asked)) == canonical_bytes(make_document(REPLAY, asked[::-1]))


def test_what_is_chosen_stands_among_the_scores():
    for group in shown()["groups"]:
        sides = {side["side"]: side for side in group["sides"]}
        for name, found in group["exposure"].items():
            for end, choose in (("lowest", min), ("highest", max)):
                scores = [
                    side["scores"][name]["value"]
                    for side in sides.values()
                    if "value" in side["scores"][name] and not side["repeats"]
                ]
                assert found[end]["value"] == choose(scores)
                score = sides[found[end]["side"]]["scores"][name]
                assert (found[end]["value"], found[end]["flags"]) == (score["value"], score["flags"])
            assert found["range"]["value"] == pytest.approx(found["highest"]["value"] - found["lowest"]["value"])


def test_what_was_not_asked_of_most_is_left_out_and_told():
    client = next(group for group in shown()["groups"] if group["by"]["origin"] == "client")
    left_out = {"CTO": "asked of 0 of 90 exchanges", "CTO+others": "asked of 0 of 90 exchanges"}
    assert client["support"] == {"parents": 60, "statements": 20, "parents_left_out": 30, "sides_left_out": left_out}
    sides = {side["side"]: side for side in client["sides"]}
    assert sides["CTO"]["scores"]["ir"] == {"missing": "asked of 0 of 90 exchanges"}
    assert sides["CTO"]["missing"] == {"no_options": 90}


def test_factors_are_what_formats_change():
    group = group_of(probes("north", 40, 0))
    assert set(group["factors"]) == {"task", "perspective", "role", "sentiment"}, "no probe was swapped"
    task = group["factors"]["task"]["ber_sel_full"]
    assert task["sides"] == ["stored", "CTO", "Rate"], "Explain asks for no selection, CTO+others changes two factors"
    assert task["low"] <= task["value"] <= task["high"]
    assert group["factors"]["perspective"]["ir"] == {"missing": "nothing changes the perspective alone"}
    assert group["factors"]["task"]["dni"] == {"missing": "not the share of an event"}


def test_a_format_that_the_parents_had_anyway_is_a_repetition():
    formats = (Format(task=Task.BJ), Format(task=Task.CTO), Format(task=Task.BJ, role=Role.MILITARY))
    asked = [replace(one, replays=dict.fromkeys(formats, one.label)) for one in probes("north", 20, 0)]
    _, same, other, both = group_of(asked, formats)["sides"]
    assert (same["repeats"], same["changes"]) == (True, {})
    assert (other["repeats"], other["changes"]) == (False, {"task": "CTO"})
    assert both["changes"] == {"role": "military"}
    asked = [replace(one, replays=dict.fromkeys(formats, one.label)) for one in clients(20, 0)]
    assert not any(side["repeats"] for side in group_of(asked, formats)["sides"]), (
        "a client's question was in no format"
    )


def test_answers_of_another_deployment_are_scored_among_themselves():
    """What was stored is another deployment's: it is in the pairs alone, and nothing is a repetition of it."""
    (group,) = make_document(replace(REPLAY, to="south"), list(probes("north", 20, 0)))["groups"]
    assert group["support"]["sides_left_out"] == {
        "stored": "answered by north, the others by south",
        "gender:male<>female": "asked of 0 of 40 exchanges",
    }
    stored, again, *_ = group["sides"]
    assert stored["scores"]["ir"] == {"missing": "answered by north, the others by south"}
    assert "value" in again["scores"]["ir"]
    assert not again["repeats"]
    assert group["factors"]["task"]["ber_sel_full"]["sides"] == ["again", "CTO", "Rate"]
    assert group["exposure"]["ir"]["repetition"] == {"missing": "nothing was asked again unchanged"}
    assert group["pairs"][0]["first"] == "stored"
    (group,) = make_document(replace(REPLAY, to="north"), list(probes("north", 20, 0)))["groups"]
    assert "stored" not in group["support"]["sides_left_out"]


def test_a_framing_of_a_clients_own_question_is_read_as_the_question_is():
    """Only what is asked about as a statement is read by the format's own rule."""
    formats = (Format(task=Task.EXPLAIN),)
    asked = [
        replace(one, parent=replace(one.parent, statement=None), replays=dict.fromkeys(formats, one.label))
        for one in clients(20, 0)
    ]
    assert [side["task"] for side in group_of(asked, formats)["sides"]] == [None, None]


def test_a_range_is_held_against_what_repetition_does():
    changes = ({}, {}, {"task": "CTO"})
    steady = World(rates=(0.2, 0.2, 0.7), names=(STORED, "again", "CTO"), changes=changes)
    drifting = World(rates=(0.2, 0.7, 0.7), names=(STORED, "again", "CTO"), changes=changes)
    beyond, within, unknown = (
        group_findings(sides, claimed=True, seed=0, n_boot=200)["exposure"]["ber_sel_full"]["repetition"]
        for sides in (steady.draw(0), drifting.draw(0), WORLDS["spread"].draw(0))
    )
    assert beyond["beyond"] is True
    assert within["beyond"] is False
    assert within["reach"] > within["difference"] > 0.4
    assert unknown == {"missing": "nothing was asked again unchanged"}


def test_a_proposition_that_is_no_stereotype_has_ranges_of_divergence_alone():
    found = group_findings(WORLDS["spread"].draw(0), claimed=False, seed=0, n_boot=50)
    told = {name for name, each in found["exposure"].items() if "missing" not in each}
    assert told == {"ir", "dni"}
    assert found["mitigation"] == []
    assert found["comparisons"] == 2 * len(found["pairs"])


def test_p_values_know_how_many_comparisons_there_are():
    """Equal truths: alone some pair of ninety looks unlike the others, together rarely; far ones are found."""
    found = [adjusted(sides, _all(sides), n_boot=200, seed=0) for sides in map(WORLDS["equal"].draw, range(20))]
    assert sum(min(each.values()) <= 0.05 for each in found) <= 3
    sides = WORLDS["spread"].draw(0)
    p = adjusted(sides, _all(sides), n_boot=200, seed=0)
    assert p[0, 1, "ber_sel_full"] == pytest.approx(1 / 201)
    assert adjusted(sides, [(0, 1, "ir")], n_boot=200, seed=0)[0, 1, "ir"] <= p[0, 1, "ir"]
    assert adjusted(sides, [], n_boot=200, seed=0) == {}


def _all(sides):
    return [(*pair, name) for pair in combinations(range(len(sides.names)), 2) for name in COMPARED]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_mcnemar_is_the_exact_test(pairs):
    first, second = np.array(pairs, dtype=np.float64).T
    lost, gained = ((first > second).sum(), (second > first).sum())
    found = mcnemar(first, second)
    assert (found.gained, found.lost) == (gained, lost)
    if gained + lost:
        assert found.p == pytest.approx(reference([[0, lost], [gained, 0]], exact=True).pvalue)
    else:
        assert found.p == 1


def test_verdicts_of_roles_and_tasks_with_what_they_cost():
    """Two hundred statements: a role that lowers both layers, a task that raises one, another without a selection."""
    base, both, more = [coded("E", "E"), coded("D", "D")], [coded("D", "D")] * 5, [coded("E", "D")]
    free = coded("Abstain", "E", "no_selection_layer")
    sides = Sides.of(
        [
            Side(name=STORED, task=Task.BJ, answers=base * 100, tokens=[10, 30] * 100),
            Side(name="calm", task=Task.BJ, answers=(both + base[:1]) * 33 + both[:2], changes={"role": "calm"}),
            Side(name="CTO", task=Task.CTO, answers=(base + more) * 66 + more * 2, changes={"task": "CTO"}),
            Side(
                name="Explain", task=Task.EXPLAIN, answers=[free] * 200, changes={"task": "Explain"}, tokens=[50] * 200
            ),
            Side(name="angry", task=Task.BJ, answers=base * 100, changes={"sentiment": "angry"}),
        ],
        [str(number) for number in range(200)],
    )
    calm, choice, explain = remedies(sides, n_boot=200, seed=0)
    assert [each.side.name for each in (calm, choice, explain)] == ["calm", "CTO", "Explain"]
    assert calm.found.verdict == calm.found.published == "co-reducing"
    assert choice.found.effect.sel.value == pytest.approx(1 / 6, abs=0.01)
    assert explain.found.verdict == "layer-rerouting"
    assert (explain.tokens.first, explain.tokens.second, explain.tokens.n) == (20, 50, 200)
    assert calm.tokens == Insufficient(reason="no exchange says both answers' completion tokens")


def test_there_is_no_remedy_for_a_question_that_asks_for_no_answer():
    free = [coded("Abstain", "E", "no_selection_layer")] * 20
    sides = Sides.of(
        [
            Side(name=STORED, task=Task.JUDGE, answers=free),
            Side(name="CTO", task=Task.CTO, answers=[coded("E", "E")] * 20, changes={"task": "CTO"}),
        ],
        [str(number) for number in range(20)],
    )
    assert remedies(sides, n_boot=50, seed=0) == []


def test_a_share_of_variance_is_that_between_sides():
    """Rates 1/4 and 3/4 of equally many: half of the way from the mean to the ends, so a quarter."""
    quarter = [coded("E", "E"), *[coded("D", "D")] * 3]
    sides = Sides.of(
        [
            Side(name=STORED, task=None, answers=quarter * 20),
            Side(name="b", task=None, answers=[*quarter[1:], quarter[0]] * 20, changes={"system": "b"}),
            Side(name="c", task=None, answers=([coded("E", "E")] * 3 + [coded("D", "D")]) * 20, changes={"tone": "c"}),
        ],
        [f"S{number // 4}" for number in range(80)],
    )
    found = factor_shares(sides, Scores.of(sides, BY_NAME["ber_sel"]), n_boot=50, seed=0)
    assert found["system"].value == pytest.approx(0, abs=1e-12)
    assert found["tone"].value == pytest.approx(0.25)
    assert found["tone"].n == 160


def test_the_page_is_the_same_bytes_and_shows_nobody_elses_markup():
    small = {**shown(), "groups": shown()["groups"][:1]}
    document = json.loads(json.dumps(small).replace("north-mini", "<b>north</b>").replace("skeptical", "<i>tone"))
    page = render(document).decode()
    assert page == render(document).decode()
    assert "<b>north</b>" not in page
    assert "<i>tone" not in page
    assert "&lt;b&gt;north" in page


def test_every_number_of_the_pages_tables_is_at_its_place_in_the_document():
    """What a cell prints comes from where it says: the ranges, by hand."""
    document = {**shown(), "groups": shown()["groups"][:2]}
    page = render(document).decode()
    for place, group in enumerate(document["groups"]):
        for name in COMPARED:
            spread = group["exposure"][name]["range"]
            cell = page.split(f'data-v="/groups/{place}/exposure/{name}/range"', 1)[1].split("</td>", 1)[0]
            text = f"{100 * spread['value']:.1f} pp<small>[{100 * spread['low']:.1f}, {100 * spread['high']:.1f}]"
            assert text in cell


def test_the_terminal_says_first_how_far_scores_can_be_moved():
    lines = list(table(shown()))
    first = lines[1 : lines.index("")]
    spread = shown()["groups"][0]["exposure"]["ber_union_full"]["range"]
    assert [line.split("  ")[1] for line in first] == [
        "score",
        "union, all",
        "selection, all",
        "elaboration, all",
        "IR",
        "DNI",
    ]
    assert f"{100 * spread['value']:.1f} pp [{100 * spread['low']:.1f}, {100 * spread['high']:.1f}]" in first[1]
    assert any(line.startswith("  own words (stored) →") for line in lines)
    assert any(line.startswith("  BJ (stored) →") for line in lines)
    assert any("holds beside all" in line for line in lines)


def test_traffic_that_was_compared_as_it_stood_has_no_calls_to_tell():
    calls = {"planned": 0, "answered": 0, "failed": {}}
    document = {**shown(), "by": "tag.prompt", "calls": calls, "groups": shown()["groups"][:1]}
    assert list(complaints("replay", document)) == []
    page = render(document).decode()
    assert "Nothing was sent for this" in page
    assert "calls answered" not in page


def test_a_tag_s_value_is_its_side_s_name_even_where_it_is_called_stored():
    own = {"side": "stored", "task": None, "changes": {}}
    value = {"side": "stored", "task": None, "changes": {"tag.prompt": "stored"}}
    assert side_names(Place({"sides": [own]})) == {"stored": "own words (stored)"}
    assert side_names(Place({"sides": [value]})) == {"stored": "stored"}


def test_scores_of_an_empty_base_say_why():
    silent = [coded("Abstain", "Abstain")] * 20
    sides = Sides.of([Side(name=STORED, task=None, answers=silent)] * 2, [str(number) for number in range(20)])
    for name, base in (("ber_sel", "eligible"), ("ber_elab_full", "full")):
        found = Scores.of(sides, BY_NAME[name]).estimate(0, seed=0)
        assert found == Insufficient(reason=f"0 statements in the {base} base, 15 needed")
