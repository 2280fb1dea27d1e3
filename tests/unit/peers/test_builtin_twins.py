"""The simulator's built-in twins: the same weights at two hosts, of which one turns open questions away."""

import pytest
from support.worlds.peer_scores import analysed

from auditor.peers.comparison import PeerOptions
from auditor.peers.domains import shipped_domain
from auditor.peers.score_table import ScoreCollector, ScoreRow
from auditor.simulate.config import load
from auditor.simulate.respondent import ChatTurn, Respondent
from auditor.simulate.wire import embed

HOME, ABROAD = "sim-twin-home", "sim-twin-abroad"
MARGIN = 0.04


@pytest.fixture(scope="module")
def table():
    """What every built-in deployment answers to the shipped pack, by the words of its answers."""
    loaded = load()
    respondent, collector = Respondent(loaded.scenario, loaded.pool), ScoreCollector()
    for one in shipped_domain("political-censorship").questions:
        for deployment in loaded.scenario.deployments:
            text = respondent.respond(deployment, [ChatTurn(role="user", content=one.text)], 0).text
            row = ScoreRow(
                question_id=one.id,
                theme=one.theme,
                deployment=deployment.name,
                response=text,
                embedding=embed(text) if text else None,
                blocked=not text,
            )
            collector.add(row, 1)
    return collector.finish()


def test_the_host_that_turns_questions_away_is_different_and_its_twin_is_not(table):
    abroad, home = analysed(table, PeerOptions(targets=(ABROAD, HOME)))["targets"]
    found = abroad["instruments"]["embedding"]
    assert (found["verdict"], found["n_peers"]) == ("different", 5)
    assert {each["verdict"] for each in found["leave_one_peer_out"]} == {"different"}
    assert home["instruments"]["embedding"]["verdict"] == "equivalent"


def test_with_a_declared_margin_one_host_is_different_from_the_other(table):
    (pair,) = analysed(table, PeerOptions(targets=(HOME,), margin=MARGIN, hosts={"twin-7": (ABROAD, HOME)}))["hosts"]
    found = pair["instruments"]["embedding"]
    assert found["verdict"] == "different"
    assert found["paired"]["low"] > MARGIN
    others = tuple(name for name in table.deployments if name != ABROAD)
    (without,) = analysed(table, PeerOptions(targets=(HOME,), margin=MARGIN, peers=others))["targets"]
    assert without["instruments"]["embedding"]["verdict"] == "equivalent"
