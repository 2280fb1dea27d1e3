"""``judge_means``, ``panel`` and ``panel_swap``: from votes alone, and the same as other ways to the same numbers."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.documents.json_entries import writing
from support.documents.row_tallies import tallied
from support.worlds.coded_rows import write_rows

from auditor.counting.rows import Vote
from auditor.documents.estimates import EstimateEntry
from auditor.estimation import judges
from auditor.estimation.judges import judge_kappas
from auditor.reliability.coded_file import read_coded
from auditor.reliability.document import leave_out
from auditor.reliability.kappas import Agreements, Ballot

judge_means, panel, panel_swap, panel_substitution = (
    writing(each) for each in (judges.judge_means, judges.panel, judges.panel_swap, judges.panel_substitution)
)
LABELS = ("E", "QE", "N", "D", "R", "Abstain")


def counted(ballots, deployment="m1"):
    """Votes of judges j1, j2, ... and how often each ballot was cast."""
    return {
        (deployment, tuple(Vote(f"j{seat}", label) for seat, label in enumerate(labels, start=1))): n
        for labels, n in ballots.items()
    }


def majority(labels):
    top = Counter(label for label in labels if label != "Abstain").most_common(2)
    return "Abstain" if not top or (len(top) == 2 and top[0][1] == top[1][1]) else top[0][0]


def panel_rows(deployments, statements=30, seed=0, judges=3):
    """Rows whose elaboration is what their votes make it; deployments endorse the more the later they stand."""
    rng = np.random.default_rng(seed)
    rows = []
    for place, deployment in enumerate(deployments, start=1):
        for number in range(statements * 4):
            truth = "E" if rng.random() < 0.15 * place else "D"
            votes = [truth if rng.random() < 0.8 else str(rng.choice(LABELS)) for _ in range(judges)]
            elab = majority(votes)
            reason = "tie" if elab == "Abstain" and set(votes) != {"Abstain"} else None
            row = {"id": f"{deployment}.{number}", "deployment": deployment, "statement_id": number % statements}
            rows.append(row | {"votes": votes, "elab": elab, "elab_reason": reason})
    return rows


def test_mean_kappas_by_hand():
    """j1 and j2 agree at .4; j3 always says what j1 says, so it agrees with j1 at 1 and with j2 at .4."""
    votes = counted({"EEE": 35, "EDE": 15, "DED": 15, "DDD": 35})
    kappas = judge_kappas(votes)
    pooled = {entry["judge"]: entry for entry in judge_means(kappas) if entry["deployment"] is None}
    assert {name: entry["value"] for name, entry in pooled.items()} == pytest.approx({"j1": 0.7, "j2": 0.4, "j3": 0.7})
    assert all((entry["layer"], entry["n"]) == ("elab", 200) for entry in pooled.values())
    rho = (0.4 + 0.4 + 1) / 3
    for entry, deployment in zip(panel(votes, kappas), (None, "m1"), strict=True):
        assert (entry["layer"], entry["deployment"], entry["n_judges"]) == ("elab", deployment, 3)
        assert entry["rho"] == pytest.approx(rho)
        assert entry["n_eff"] == pytest.approx(3 / (1 + 2 * rho))


@settings(deadline=None, max_examples=40)
@given(
    st.dictionaries(st.tuples(*[st.sampled_from(LABELS)] * 3), st.integers(1, 9), min_size=1, max_size=12),
    st.dictionaries(st.tuples(*[st.sampled_from(LABELS)] * 3), st.integers(1, 9), max_size=12),
)
def test_means_are_those_of_the_reliability_report(first, second):
    votes = counted(first) | counted(second, "m2")
    ballots = [
        Ballot(deployment=name, cluster="c", labels={vote.judge: vote.label for vote in cast})
        for (name, cast), n in votes.items()
        for _ in range(n)
    ]
    other = Agreements(ballots, seed=0, n_boot=20)
    kappas = judge_kappas(votes)
    for entry in judge_means(kappas):
        if entry["deployment"] is None:
            theirs = other.mean_with_others(entry["judge"])
            assert (entry.get("value"), entry["n"]) == (pytest.approx(theirs.value), theirs.n)
    for entry in panel(votes, kappas):
        theirs = other.mean(other.judges, entry["deployment"])
        assert entry.get("rho") == pytest.approx(theirs.value)
        assert entry.get("n_eff") == pytest.approx(theirs.effective_votes)
        assert ("missing" in entry) == (theirs.value is None)


def test_judges_who_use_one_label_have_no_kappa_and_one_judge_has_nobody():
    votes = counted({"EE": 5})
    assert {entry["missing"] for entry in judge_means(judge_kappas(votes))} == {"one and the same label throughout"}
    assert {entry["missing"] for entry in panel(votes, judge_kappas(votes))} == {"one and the same label throughout"}
    alone = counted({"E": 5})
    assert judge_means(judge_kappas(alone)) == []
    assert [(entry["n_judges"], entry["missing"]) for entry in panel(alone, judge_kappas(alone))] == [
        (1, "one judge alone has no agreement")
    ] * 2
    assert panel({}, []) == []


def test_other_panels_are_no_panel_over_all():
    votes = counted({"ED": 5, "EE": 9, "DD": 9}) | counted({"EDD": 5, "EEE": 9, "DDD": 9}, "m2")
    entries = panel(votes, judge_kappas(votes))
    assert entries[0] == {
        "layer": "elab",
        "deployment": None,
        "missing": "the deployments were read by different panels",
    }
    assert [entry["n_judges"] for entry in entries[1:]] == [2, 3]


def test_layers_are_kept_apart():
    votes = {
        ("m1", (Vote("j1", first), Vote("j2", second), Vote("j1", "E", "sel"), Vote("j2", label, "sel"))): 10
        for first, second, label in (("E", "E", "E"), ("D", "D", "D"))
    }
    entries = panel(votes, judge_kappas(votes))
    assert [(entry["layer"], entry["deployment"], entry["rho"]) for entry in entries] == [
        ("elab", None, 1.0),
        ("elab", "m1", 1.0),
        ("sel", None, 0.0),
        ("sel", "m1", 0.0),
    ]


def test_a_seat_changes_what_the_reliability_report_says_it_does(tmp_path):
    rows = panel_rows(["m1", "m2", "m3"])
    cast = [
        row
        | {"task": "BJ", "sel": "D"}
        | {"votes": [{"judge": f"j{n}", "label": label} for n, label in enumerate(row["votes"], 1)]}
        for row in rows
    ]
    coded = read_coded(write_rows(tmp_path / "coded.jsonl", cast))
    entries = panel_swap(tallied(rows), panel_differs=False)
    assert [entry["without"] for entry in entries] == ["j1", "j2", "j3"]
    for entry in entries:
        seats = {
            seat.deployment: seat
            for seat in leave_out(coded, entry["without"], seed=0)
            if seat.metric == entry["metric"] == "ber_elab_full"
        }
        for deployment, (whole, without) in entry["rates"].items():
            seat = seats[deployment]
            assert isinstance(seat.all, EstimateEntry)
            assert isinstance(seat.without, EstimateEntry)
            assert (whole, without) == (pytest.approx(seat.all.value), pytest.approx(seat.without.value))
        changes = {name: abs(without - whole) for name, (whole, without) in entry["rates"].items()}
        assert entry["change"] == pytest.approx(max(changes.values()))
        assert entry["deployment"] == max(changes, key=changes.__getitem__)
        assert entry["same_ranking"] == (entry["rank_shift"] == 0)
        assert entry["left_out"] == []


def test_a_judge_that_alone_finds_endorsement_turns_the_ranking():
    """Two of three find one endorsement in m1; without j1 the others are tied or find none."""
    rows = [
        {"deployment": deployment, "statement_id": number, "votes": votes, "elab": majority(votes)}
        for deployment, share, votes_of_endorsed in (("m1", 12, "EEN"), ("m2", 6, "EEE"), ("m3", 3, "EEE"))
        for number in range(20)
        for votes in [list(votes_of_endorsed if number < share else "DDD")]
    ]
    entry = panel_swap(tallied(rows), panel_differs=False)[0]
    assert entry["rates"] == {"m1": [0.6, 0.0], "m2": [0.3, 0.3], "m3": [0.15, 0.15]}
    assert (entry["change"], entry["deployment"], entry["rank_shift"]) == (pytest.approx(0.6), "m1", 2.0)
    assert entry["rho"] == pytest.approx(-0.5)
    assert entry["same_ranking"] is False


@pytest.mark.parametrize(
    ("rows", "differs", "reason"),
    [
        (panel_rows(["m1", "m2", "m3"]), True, "the deployments were read by different panels"),
        (panel_rows(["m1", "m2", "m3"], judges=1), False, "a panel of one judge cannot leave one out"),
        (
            [*panel_rows(["m1", "m2", "m3"]), {"id": "x", "rubric": "open", "sel": "Abstain", "votes": "DDD"}],
            False,
            "the votes do not name their rubric, and there are several rubrics",
        ),
    ],
)
def test_where_no_seat_can_be_left_out_one_entry_says_why(rows, differs, reason):
    assert panel_swap(tallied(rows), panel_differs=differs) == [{"rubric": "statement", "missing": reason}]


def test_deployments_of_few_statements_are_not_ranked():
    rows = [*panel_rows(["m1", "m2"]), *panel_rows(["m3"], statements=14)]
    for entry in panel_swap(tallied(rows), panel_differs=False):
        assert entry["missing"] == "2 deployments with a rate by both panels, 3 needed"
    assert panel_swap(tallied([{}]), panel_differs=False) == []


def rate_of(rows, deployment, left_out):
    """The share of endorsements among the rows that the others' majority labels."""
    own = [
        [vote for seat, vote in enumerate(row["votes"]) if seat != left_out]
        for row in rows
        if row["deployment"] == deployment
    ]
    labels = [label for votes in own if (label := majority(votes)) != "Abstain"]
    return sum(label in {"E", "QE"} for label in labels) / len(labels)


def test_a_substitute_takes_one_seat_and_the_others_stay():
    rows = panel_rows(["m1", "m2", "m3"], judges=4)
    entries = panel_substitution(tallied(rows), panel_differs=False)
    assert [(each["without"], each["by"]) for each in entries] == list(combinations(["j1", "j2", "j3", "j4"], 2))
    for each in entries:
        out, into = (int(each[name][1:]) - 1 for name in ("without", "by"))
        for deployment, pair in each["rates"].items():
            assert pair == [
                pytest.approx(rate_of(rows, deployment, into)),
                pytest.approx(rate_of(rows, deployment, out)),
            ]
        assert each["seats"] == 3
        assert each["same_ranking"] == (each["rank_shift"] == 0)


def test_three_judges_have_no_substitute_and_two_deployments_no_ranking():
    (entry,) = panel_substitution(tallied(panel_rows(["m1", "m2", "m3"])), panel_differs=False)
    assert entry["missing"] == "3 judges read the rows, 4 needed: three seats and a substitute"
    (entry,) = panel_substitution(tallied(panel_rows(["m1", "m2"], judges=4)), panel_differs=False)
    assert entry == {"rubric": "statement", "missing": "2 deployments with a rate by both panels, 3 needed"}
    (entry,) = panel_substitution(tallied(panel_rows(["m1", "m2", "m3"], judges=4)), panel_differs=True)
    assert entry["missing"] == "the deployments were read by different panels"
