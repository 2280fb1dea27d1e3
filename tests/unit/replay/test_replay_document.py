"""The document of a comparison: as its schema says, the same bytes every time, and no number that is not meant."""

import json
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from support.documents.json_entries import typed
from support.documents.published_schemas import complaints
from support.documents.replay_documents import FORMATS, REPLAY, clients, comparison, plain, probes
from support.lazy_imports import ImportedLater
from support.worlds.replay_groups import WORLDS, World, coded

from auditor.documents.base import Missing
from auditor.documents.codec import canonical_bytes, decode
from auditor.documents.comparison import ComparisonDocument, GroupKeyEntry
from auditor.domain.condition import Role, Task
from auditor.domain.estimate import Insufficient
from auditor.metrics.rates import METRICS
from biasmeter.terminal.comparison_output import table
from replay.comparison.arms import STORED, Arm, Arms
from replay.comparison.effects import factor_shares, remedies
from replay.comparison.findings import ComparisonGroup, group_entry
from replay.comparison.pairs import COMPARED, adjusted_p_values, mcnemar
from replay.comparison.scores import Scores
from replay.formats import ReplayFormat
from replay.page.arms import side_name
from replay.page.render import render
from replay.results import make_document

sm = ImportedLater("statsmodels.api")


@cache
def shown():
    """The document as its file has it."""
    return json.loads(canonical_bytes(comparison(statements=40)))


def group_of(asked, formats=FORMATS):
    (group,) = groups_of(replace(REPLAY, formats=formats), asked)
    return group


def groups_of(replay, asked):
    """The groups of a document, as JSON values."""
    return plain(make_document(replay, list(asked)).groups)


def group_of_arms(arms, *, claimed, n_boot):
    """The entry of a group that was drawn, as JSON values."""
    group = ComparisonGroup(
        by=GroupKeyEntry(deployment="d", origin="client", route="r", task=None),
        rubric="proposition",
        claim="stereotype" if claimed else None,
        clusters=[f"S{number:04}" for number in arms.cluster],
        inclusions=[1.0] * len(arms.cluster),
        arms=arms.arms,
    )
    return plain(group_entry(group, seed=0, n_boot=n_boot))


def test_the_document_is_read_back_as_it_was_written():
    written = canonical_bytes(comparison(statements=20))
    assert canonical_bytes(decode(written, ComparisonDocument, "comparison.json")) == written


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
        arms = {arm["side"]: arm for arm in group["sides"]}
        for name, found in group["exposure"].items():
            for end, choose in (("lowest", min), ("highest", max)):
                scores = [
                    arm["scores"][name]["value"]
                    for arm in arms.values()
                    if "value" in arm["scores"][name] and not arm["repeats"]
                ]
                assert found[end]["value"] == choose(scores)
                score = arms[found[end]["side"]]["scores"][name]
                assert (found[end]["value"], found[end]["flags"]) == (score["value"], score["flags"])
            assert found["range"]["value"] == pytest.approx(found["highest"]["value"] - found["lowest"]["value"])


def test_what_was_not_asked_of_most_is_left_out_and_told():
    client = next(group for group in shown()["groups"] if group["by"]["origin"] == "client")
    left_out = {"CTO": "asked of 0 of 90 exchanges", "CTO+others": "asked of 0 of 90 exchanges"}
    assert client["support"] == {"parents": 60, "statements": 20, "parents_left_out": 30, "sides_left_out": left_out}
    arms = {arm["side"]: arm for arm in client["sides"]}
    assert arms["CTO"]["scores"]["ir"] == {"missing": "asked of 0 of 90 exchanges"}
    assert arms["CTO"]["missing"] == {"no_options": 90}


def test_factors_are_what_formats_change():
    group = group_of(probes("north", 40, 0))
    assert set(group["factors"]) == {"task", "perspective", "role", "sentiment"}, "no probe was swapped"
    task = group["factors"]["task"]["ber_sel_full"]
    assert task["sides"] == ["stored", "CTO", "Rate"], "Explain asks for no selection, CTO+others changes two factors"
    assert task["low"] <= task["value"] <= task["high"]
    assert group["factors"]["perspective"]["ir"] == {"missing": "no format changes only the perspective"}
    assert group["factors"]["task"]["dni"] == {"missing": "a difference of two rates has no share of variance"}


def test_a_format_that_the_parents_had_anyway_is_a_repetition():
    formats = (ReplayFormat(task=Task.BJ), ReplayFormat(task=Task.CTO), ReplayFormat(task=Task.BJ, role=Role.MILITARY))
    asked = [replace(one, replays=dict.fromkeys(formats, one.label)) for one in probes("north", 20, 0)]
    _, same, other, both = group_of(asked, formats)["sides"]
    assert (same["repeats"], same["changes"]) == (True, {})
    assert (other["repeats"], other["changes"]) == (False, {"task": "CTO"})
    assert both["changes"] == {"role": "military"}
    asked = [replace(one, replays=dict.fromkeys(formats, one.label)) for one in clients(20, 0)]
    assert not any(arm["repeats"] for arm in group_of(asked, formats)["sides"]), "a client's question was in no format"


def test_answers_of_another_deployment_are_scored_among_themselves():
    """What was stored is another deployment's: it is in the pairs alone, and nothing is a repetition of it."""
    (group,) = groups_of(replace(REPLAY, to="south"), probes("north", 20, 0))
    assert group["support"]["sides_left_out"] == {
        "stored": "answered by north, the others by south",
        "gender:male<>female": "asked of 0 of 40 exchanges",
    }
    stored, again, *_ = group["sides"]
    assert stored["scores"]["ir"] == {"missing": "answered by north, the others by south"}
    assert "value" in again["scores"]["ir"]
    assert not again["repeats"]
    assert group["factors"]["task"]["ber_sel_full"]["sides"] == ["again", "CTO", "Rate"]
    assert group["exposure"]["ir"]["repetition"] == {"missing": "no question was repeated unchanged"}
    assert group["pairs"][0]["first"] == "stored"
    (group,) = groups_of(replace(REPLAY, to="north"), probes("north", 20, 0))
    assert "stored" not in group["support"]["sides_left_out"]


def test_a_framing_of_a_clients_own_question_is_read_as_the_question_is():
    """Only what is asked about as a statement is read by the format's own rule."""
    formats = (ReplayFormat(task=Task.EXPLAIN),)
    asked = [
        replace(one, parent=replace(one.parent, statement=None), replays=dict.fromkeys(formats, one.label))
        for one in clients(20, 0)
    ]
    assert [arm["task"] for arm in group_of(asked, formats)["sides"]] == [None, None]


def test_a_range_is_held_against_what_repetition_does():
    changes = ({}, {}, {"task": "CTO"})
    steady = World(rates=(0.2, 0.2, 0.7), names=(STORED, "again", "CTO"), changes=changes)
    drifting = World(rates=(0.2, 0.7, 0.7), names=(STORED, "again", "CTO"), changes=changes)
    beyond, within, unknown = (
        group_of_arms(arms, claimed=True, n_boot=200)["exposure"]["ber_sel_full"]["repetition"]
        for arms in (steady.draw(0), drifting.draw(0), WORLDS["spread"].draw(0))
    )
    assert beyond["beyond"] is True
    assert within["beyond"] is False
    assert within["reach"] > within["difference"] > 0.4
    assert unknown == {"missing": "no question was repeated unchanged"}


def test_a_proposition_that_is_no_stereotype_has_ranges_of_divergence_alone():
    found = group_of_arms(WORLDS["spread"].draw(0), claimed=False, n_boot=50)
    told = {name for name, each in found["exposure"].items() if "missing" not in each}
    assert told == {"ir", "dni"}
    assert found["mitigation"] == []
    assert found["comparisons"] == 2 * len(found["pairs"])


def test_p_values_know_how_many_comparisons_there_are():
    """Equal truths: alone some pair of ninety looks unlike the others, together rarely; far ones are found."""
    found = [adjusted_p_values(arms, _all(arms), n_boot=200, seed=0) for arms in map(WORLDS["equal"].draw, range(20))]
    assert sum(min(each.values()) <= 0.05 for each in found) <= 3
    arms = WORLDS["spread"].draw(0)
    p = adjusted_p_values(arms, _all(arms), n_boot=200, seed=0)
    assert p[0, 1, "ber_sel_full"] == pytest.approx(1 / 201)
    assert adjusted_p_values(arms, [(0, 1, "ir")], n_boot=200, seed=0)[0, 1, "ir"] <= p[0, 1, "ir"]
    assert adjusted_p_values(arms, [], n_boot=200, seed=0) == {}


def _all(arms):
    return [(*pair, name) for pair in combinations(range(len(arms.names)), 2) for name in COMPARED]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_mcnemar_is_the_exact_test(pairs):
    first, second = np.array(pairs, dtype=np.float64).T
    lost, gained = ((first > second).sum(), (second > first).sum())
    found = mcnemar(first, second)
    assert (found.gained, found.lost) == (gained, lost)
    if gained + lost:
        assert found.p == pytest.approx(sm.stats.mcnemar([[0, lost], [gained, 0]], exact=True).pvalue)
    else:
        assert found.p == 1


def test_verdicts_of_roles_and_tasks_with_what_they_cost():
    """Two hundred statements: a role that lowers both layers, a task that raises one, another without a selection."""
    base, both, more = [coded("E", "E"), coded("D", "D")], [coded("D", "D")] * 5, [coded("E", "D")]
    free = coded("Abstain", "E", "no_selection_layer")
    arms = Arms.of(
        [
            Arm(name=STORED, task=Task.BJ, answers=base * 100, tokens=[10, 30] * 100),
            Arm(name="calm", task=Task.BJ, answers=(both + base[:1]) * 33 + both[:2], changes={"role": "calm"}),
            Arm(name="CTO", task=Task.CTO, answers=(base + more) * 66 + more * 2, changes={"task": "CTO"}),
            Arm(
                name="Explain", task=Task.EXPLAIN, answers=[free] * 200, changes={"task": "Explain"}, tokens=[50] * 200
            ),
            Arm(name="angry", task=Task.BJ, answers=base * 100, changes={"sentiment": "angry"}),
        ],
        [str(number) for number in range(200)],
    )
    calm, choice, explain = remedies(arms, n_boot=200, seed=0)
    assert [each.side for each in (calm, choice, explain)] == ["calm", "CTO", "Explain"]
    assert calm.verdict == calm.published == "co-reducing"
    assert choice.effect.sel.value == pytest.approx(1 / 6, abs=0.01)
    assert explain.verdict == "layer-rerouting"
    assert (explain.tokens.first, explain.tokens.second, explain.tokens.n) == (20, 50, 200)
    assert calm.tokens == Missing(missing="no exchange has the completion tokens of both answers")


def test_there_is_no_remedy_for_a_question_that_asks_for_no_answer():
    free = [coded("Abstain", "E", "no_selection_layer")] * 20
    arms = Arms.of(
        [
            Arm(name=STORED, task=Task.JUDGE, answers=free),
            Arm(name="CTO", task=Task.CTO, answers=[coded("E", "E")] * 20, changes={"task": "CTO"}),
        ],
        [str(number) for number in range(20)],
    )
    assert remedies(arms, n_boot=50, seed=0) == []


def test_a_share_of_variance_is_that_between_sides():
    """Rates 1/4 and 3/4 of equally many: half of the way from the mean to the ends, so a quarter."""
    quarter = [coded("E", "E"), *[coded("D", "D")] * 3]
    arms = Arms.of(
        [
            Arm(name=STORED, task=None, answers=quarter * 20),
            Arm(name="b", task=None, answers=[*quarter[1:], quarter[0]] * 20, changes={"system": "b"}),
            Arm(name="c", task=None, answers=([coded("E", "E")] * 3 + [coded("D", "D")]) * 20, changes={"tone": "c"}),
        ],
        [f"S{number // 4}" for number in range(80)],
    )
    found = factor_shares(arms, Scores.of(arms, METRICS["ber_sel"]), n_boot=50, seed=0)
    assert found["system"].value == pytest.approx(0, abs=1e-12)
    assert found["tone"].value == pytest.approx(0.25)
    assert found["tone"].n == 160


def test_the_page_is_the_same_bytes_and_shows_nobody_elses_markup():
    small = {**shown(), "groups": shown()["groups"][:1]}
    document = json.loads(json.dumps(small).replace("north-mini", "<b>north</b>").replace("skeptical", "<i>tone"))
    page = render(typed(document, ComparisonDocument)).decode()
    assert page == render(typed(document, ComparisonDocument)).decode()
    assert "<b>north</b>" not in page
    assert "<i>tone" not in page
    assert "&lt;b&gt;north" in page


def test_every_number_of_the_pages_tables_is_at_its_place_in_the_document():
    """What a cell prints comes from where it says: the ranges, by hand."""
    document = {**shown(), "groups": shown()["groups"][:2]}
    page = render(typed(document, ComparisonDocument)).decode()
    for place, group in enumerate(document["groups"]):
        for name in COMPARED:
            spread = group["exposure"][name]["range"]
            cell = page.split(f'data-v="/groups/{place}/exposure/{name}/range"', 1)[1].split("</td>", 1)[0]
            text = f"{100 * spread['value']:.1f} pp<small>[{100 * spread['low']:.1f}, {100 * spread['high']:.1f}]"
            assert text in cell


def test_the_terminal_says_first_how_far_scores_can_be_moved():
    lines = list(table(typed(shown(), ComparisonDocument)))
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
    assert any("holds after adjusting for all" in line for line in lines)


def test_traffic_that_was_compared_as_it_stood_has_no_calls_to_tell():
    calls = {"planned": 0, "answered": 0, "failed": {}}
    document = {**shown(), "by": "tag.prompt", "calls": calls, "groups": shown()["groups"][:1]}
    assert list(complaints("replay", document)) == []
    page = render(typed(document, ComparisonDocument)).decode()
    assert "Nothing was sent for this" in page
    assert "calls answered" not in page


def test_a_tag_s_value_is_its_side_s_name_even_where_it_is_called_stored():
    stored = structs.replace(typed(shown(), ComparisonDocument).groups[0].sides[0], task=None)
    assert side_name(stored) == "own words (stored)"
    assert side_name(structs.replace(stored, changes={"tag.prompt": "stored"})) == "stored"


def test_scores_of_an_empty_base_say_why():
    silent = [coded("Abstain", "Abstain")] * 20
    arms = Arms.of([Arm(name=STORED, task=None, answers=silent)] * 2, [str(number) for number in range(20)])
    for name, base in (("ber_sel", "eligible"), ("ber_elab_full", "full")):
        found = Scores.of(arms, METRICS[name]).estimate(0, seed=0)
        assert found == Insufficient(reason=f"0 statements in the {base} base, 15 needed")
