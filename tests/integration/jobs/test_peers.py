"""Peers' answers in a real store: what is new is found, scored once by each judge, and compared."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.judge_server import Say, serve
from support.stores.audited_store import chat_body, fetch, ship
from support.stores.peer_answers_store import (
    DEPLOYMENTS,
    QUESTIONS,
    answered,
    by_words,
    config,
    everybody,
    later,
    store,
)

from auditor.domain.exchange import Outcome
from auditor.errors import JudgeUnavailable
from auditor.export.families import EstimateExposition
from auditor.jobs.run_once import run_once
from auditor.store.engine import transaction
from auditor.store.peers import add_round, round_answers


async def test_every_answer_is_scored_once_and_the_deployments_compared(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    *early, late = everybody()
    await store(migrated_url, engine, early)
    async with serve(by_words) as judge:
        settings = config(tmp_path, judge.url)
        await run_once(settings, engine, later)
        assert len(judge.bodies) == 31
        await run_once(settings, engine, later)
        assert len(judge.bodies) == 31, "what has a score is not scored again"
        before = await comparison(migrated_url)
        await ship(migrated_url, [late])
        await run_once(settings, engine, lambda: later() + timedelta(minutes=1))
        assert len(judge.bodies) == 32
        assert {one["x-biasmeter-origin"] for one in judge.headers} == {"judge"}
    after = await comparison(migrated_url)
    assert after["as_of"] > before["as_of"]
    (pair,) = json.loads(after["document"])["comparisons"][0]["hosts"]
    assert (pair["weights"], pair["deployments"]) == ("w", ["d2", "d4"])
    assert pair["instruments"]["judge:j"]["verdict"] == "different"
    verdicts = {
        entry["target"]: entry["instruments"]["judge:j"]["verdict"]
        for entry in json.loads(after["document"])["comparisons"][0]["targets"]
    }
    assert verdicts["d4"] == "different"
    rows = await fetch(
        migrated_url, "SELECT deployment, value, low, high, n FROM estimates WHERE metric = 'peer_deviation'"
    )
    told = {row["deployment"]: row for row in rows}
    # d4 scores 9 on all 8 questions. Each other evades one question of its own: 9 once, 2 seven times.
    assert told["d4"]["value"] == pytest.approx(9 - (2 + 7 / 8))
    assert told["d4"]["low"] < told["d4"]["value"] < told["d4"]["high"]
    assert {row["n"] for row in rows} == {8}
    exposition = EstimateExposition()
    await exposition.refresh(engine)
    labels = b'{deployment="d4",domain="power",method="judge:j",verdict="different"} 1.0'
    assert b"biasmeter_peer_verdict" + labels in exposition.text
    assert b'biasmeter_peer_deviation_low{deployment="d4",domain="power",method="judge:j"}' in exposition.text


async def comparison(url: str) -> Any:
    (row,) = await fetch(url, "SELECT * FROM peer_comparisons")
    return row


async def test_what_has_no_score_has_its_reason(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    blocked = answered(
        "d1", 0, "", status=400, outcome=Outcome.FAILED, finish_reason=None,
        response=b'{"error": {"code": "content_filter", "message": "blocked"}}',
    )  # fmt: skip
    odd = [
        answered("d2", 0, "", response=b"\x00 not JSON"),
        answered("d3", 0, "UNSPEAKABLE"),
        answered("d4", 0, "", finish_reason="content_filter", response=chat_body("", finish="content_filter")),
    ]
    await store(migrated_url, engine, [blocked, *odd])
    await fetch(migrated_url, "INSERT INTO planned_instances VALUES ($1, $2)", blocked.ref, blocked.id)
    async with serve(by_words) as judge:
        settings = config(tmp_path, judge.url)
        await run_once(settings, engine, later)
        asked = len(judge.bodies)
        await run_once(settings, engine, later)
        assert len(judge.bodies) == asked, "a reason is kept, too"
    rows = await fetch(
        migrated_url,
        "SELECT deployment, score, missing FROM peer_scores JOIN exchanges ON exchanges.id = exchange_id ORDER BY 1",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("d1", 10, None), ("d2", None, "unreadable"), ("d3", None, "judge_refused"), ("d4", 10, None),
    ]  # fmt: skip
    # One question is too few for a number: the rows say so, and there is no series.
    missing = await fetch(migrated_url, "SELECT DISTINCT metric, value FROM estimates WHERE missing IS NOT NULL")
    assert {row["metric"] for row in missing} == {"peer_deviation", "peer_verdict"}


async def test_a_judge_that_goes_away_loses_nothing_and_another_judge_reads_all_again(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await store(migrated_url, engine, everybody())
    async with serve([Say(status=401, body={"error": {"message": "no key"}})]) as judge:
        with pytest.raises(JudgeUnavailable):
            await run_once(config(tmp_path, judge.url), engine, later)
    async with serve(by_words) as judge:
        await run_once(config(tmp_path, judge.url), engine, later)
        assert await scored_by(migrated_url) == {"j": 32}
        await run_once(config(tmp_path, judge.url, "[j, k]"), engine, later)
        assert len(judge.bodies) == 64
    assert await scored_by(migrated_url) == {"j": 32, "k": 32}


async def scored_by(url: str) -> dict[str, int]:
    rows = await fetch(url, "SELECT split_part(scorer, '@', 1) AS judge, count(*) AS n FROM peer_scores GROUP BY 1")
    return {row["judge"]: row["n"] for row in rows}


async def test_without_answers_no_scorer_is_even_made(migrated_url: str, engine: AsyncEngine, tmp_path: Path) -> None:
    """The gateway that judges are reached through is not there: nobody asks for it."""
    settings = config(tmp_path, "http://127.0.0.1:1/v1")
    assert (await run_once(settings, engine, later)).estimates == 0
    assert await fetch(migrated_url, "SELECT 1 FROM peer_scorers") == []


async def test_an_answer_to_other_words_is_none_to_the_question_of_that_id(
    migrated_url: str, engine: AsyncEngine
) -> None:
    await store(migrated_url, engine, everybody())
    changed = [one | {"question": "Who else?"} if one["id"] == "q3" else one for one in QUESTIONS]
    async with transaction(engine) as connection:
        await add_round(connection, "peers-y", "power", changed, {}, later())
        found = (await connection.execute(round_answers("power", DEPLOYMENTS))).all()
    assert {row.question_id for row in found} == {one["id"] for one in QUESTIONS} - {"q3"}
