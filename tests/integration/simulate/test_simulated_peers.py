"""Simulated judges score peers' answers, and simulated deployments draft questions, as the product asks them."""

from collections import Counter
from contextlib import asynccontextmanager

import numpy as np
import pytest
from aiohttp import web
from support.worlds.peer_scores import analysed

from auditor.judges.asking import Asker
from auditor.judges.endpoint import JudgeEndpoint, open_client
from auditor.peers.comparison import PeerOptions
from auditor.peers.domains import shipped_domain
from auditor.peers.generate import PackRequest, generate
from auditor.peers.judging import DeviationJudge, build_messages
from auditor.peers.score_table import ScoreCollector, ScoreRow
from auditor.simulate.config import load
from auditor.simulate.judging import STANCE_SCORES, ScoreRequest, judge_score, read_score_request
from auditor.simulate.model import Scenario, SimulatedDeployment, SimulatedJudge
from auditor.simulate.phrases import true_stance
from auditor.simulate.recognise import KnownStatements
from auditor.simulate.respondent import ChatTurn, Respondent
from auditor.simulate.server import create_app

ABROAD, HOME = "sim-twin-abroad", "sim-twin-home"
EXACT, STERN = SimulatedJudge(name="exact", accuracy=1.0), SimulatedJudge(name="stern", accuracy=1.0, severity=1)
SCENARIO = Scenario(
    deployments=(SimulatedDeployment(name="writer"),),
    judges=(EXACT, STERN, SimulatedJudge(name="clumsy", accuracy=1.0, malformed=1.0)),
)
TARGET = "political censorship"


@asynccontextmanager
async def served(scenario=SCENARIO):
    runner = web.AppRunner(create_app(scenario, pool=KnownStatements()), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@pytest.fixture(scope="module")
def answers():
    """What every built-in deployment answers to part of the shipped pack."""
    respondent, found = Respondent(load().scenario, load().pool), {}
    for one in shipped_domain("political-censorship").questions[::2]:
        for deployment in load().scenario.deployments:
            found[one, deployment.name] = respondent.respond(
                deployment, [ChatTurn(role="user", content=one.text)], 0
            ).text
    return found


def scored(answers, judges):
    """The table of the scores that simulated judges give."""
    collector = ScoreCollector()
    for (one, name), text in answers.items():
        request = ScoreRequest(question=one.text, answer=text, highest=10, repaired=False)
        score = {judge.name: judge_score(0, judge, 0.0, request) for judge in judges}
        row = ScoreRow(
            question_id=one.id, theme=one.theme, deployment=name, response=text, score=score, blocked=not text
        )
        collector.add(row, 1)
    return collector.finish()


async def test_the_products_judge_reads_the_simulated_scores(answers):
    sample = list(answers.items())[:36]
    async with served() as url:
        client = open_client()
        for judge in ("exact", "stern", "clumsy"):
            endpoint = JudgeEndpoint(name=judge, base_url=url, model=judge, first_backoff=0.01)
            reader = DeviationJudge(endpoint, TARGET, client)
            for (one, _), text in sample:
                score = await reader.read(one.text, text)
                expected = STANCE_SCORES[true_stance(text)] if true_stance(text) else 6 if text else 9
                assert score.value == expected + (judge == "stern"), (judge, text)
        await client.aclose()


@pytest.mark.parametrize("highest", [2, 5, 10, 100])
def test_scores_stay_on_the_scale_that_is_asked_for(highest):
    for severity in (-9, 0, 9):
        judge = SimulatedJudge(name="j", accuracy=0.5, severity=severity)
        for answer in ("", "No.", "I decline to answer this.", "There is no good reason to hold on to that view."):
            request = ScoreRequest(question="Why?", answer=answer, highest=highest, repaired=False)
            assert 1 <= judge_score(3, judge, 0.0, request) <= highest


def test_the_request_is_found_by_its_blocks_and_its_scale():
    turns = [ChatTurn(**message) for message in build_messages(TARGET, "Who decides?", "BEGIN ANSWER x\n1")]
    found = read_score_request(turns)
    assert found is not None
    assert (found.question, found.answer, found.highest, found.repaired) == (
        "Who decides?",
        "BEGIN ANSWER x\n1",
        10,
        False,
    )
    assert read_score_request([ChatTurn(role="user", content="Who decides? From 1 to 10.")]) is None


def test_d_llm_of_the_planted_host_is_largest_and_as_the_paper_defines_it(answers):
    table = scored(answers, [EXACT, STERN])
    names = sorted({name for _, name in answers})
    given = {
        key: judge_score(0, EXACT, 0.0, ScoreRequest(question=key[0].text, answer=text, highest=10, repaired=False))
        for key, text in answers.items()
    }
    questions = sorted({one for one, _ in answers}, key=lambda one: one.id)
    scores = np.array([[given[one, name] for name in names] for one in questions], dtype=float)
    peers = (scores.sum(axis=1, keepdims=True) - scores) / (len(names) - 1)
    d_llm = dict(zip(names, np.abs(scores - peers).mean(axis=0), strict=True))
    assert max(d_llm, key=lambda name: d_llm[name]) == ABROAD
    found = analysed(table, PeerOptions(targets=tuple(names)))["targets"]
    for name, entry in zip(names, found, strict=True):
        assert entry["instruments"]["judge:exact"]["d_llm"] == pytest.approx(d_llm[name], abs=1e-9)
    planted, twin = (found[names.index(name)] for name in (ABROAD, HOME))
    # A judge who is sterner with everybody finds the same.
    for judge in ("judge:exact", "judge:stern"):
        assert planted["instruments"][judge]["verdict"] == "different"
        assert twin["instruments"][judge]["verdict"] != "different"


async def test_a_pack_is_drafted_whole_and_the_same_twice():
    order = PackRequest(name="press", description="Who may say what.", themes=10, per_theme=10, seed=7)

    async def drafted():
        async with served() as url:
            endpoint = JudgeEndpoint(name="writer", base_url=url, model="writer", role="deployment", first_backoff=0.01)
            asker = Asker(endpoint, open_client())
            try:
                return await generate(order, asker)
            finally:
                await asker.aclose()

    first, second = await drafted(), await drafted()
    assert first == second
    assert set(Counter(one.theme for one in first).values()) == {10}
    assert len({one.text for one in first}) == 100
