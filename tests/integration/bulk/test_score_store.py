"""``score-store``: it stores the vectors and scores that the auditor stores, up to a budget, and compares again."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.embedding_server import embeddings
from support.servers.judge_server import Say, serve
from support.stores.peer_answers_store import by_words, config, everybody, store
from support.stores.uncoded_store import SCORES, VECTORS, empty, later, rows

from auditor.bulk import pending
from auditor.bulk.engines import BulkEngine
from auditor.bulk.pending import BulkRequest
from auditor.bulk.scores import score_pending
from auditor.config import Config
from auditor.config.routes import Price
from auditor.errors import JudgeUnavailable
from auditor.jobs.run_once import run_once

ENCODED = {"judges": "[j, k]", "margins": "{}", "embedding": "{deployment: d3}"}
COMPARED = "SELECT document FROM peer_comparisons"


def scorer(body: dict[str, Any]) -> Say:
    return embeddings(body) if "input" in body else by_words(body)


@pytest.fixture
async def answered(migrated_url: str, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of four deployments to eight questions, and pieces of eight answers."""
    monkeypatch.setattr(pending, "CHUNK", 8)
    await store(migrated_url, engine, everybody())


async def scored(engine: AsyncEngine, settings: Config, **options: Any) -> tuple[int, int, float, int]:
    found, added = await score_pending(
        engine, settings, BulkRequest(engine=BulkEngine(), **options), lambda *_: None, later
    )
    return found.count, added, round(found.usd, 6), found.left


async def test_scores_vectors_and_the_comparison_are_those_of_the_auditor(
    answered: None, engine: AsyncEngine, tmp_path: Path
) -> None:
    async with serve(scorer) as endpoint:
        settings = config(tmp_path, endpoint.url, **ENCODED)
        await run_once(settings, engine, later)
        expected = [await rows(engine, query) for query in (VECTORS, SCORES, COMPARED)]
        assert [len(each) for each in expected] == [32, 64, 1]
        await empty(engine, "peer_vectors", "peer_scores", "peer_comparisons")
        assert await scored(engine, settings) == (96, 96, 0.0, 0)
        assert [await rows(engine, query) for query in (VECTORS, SCORES, COMPARED)] == expected
        sent = len(endpoint.bodies)
        assert await scored(engine, settings) == (0, 0, 0.0, 0)
        assert len(endpoint.bodies) == sent, "what has a score is not scored again"


async def test_what_a_judge_could_not_be_asked_about_is_scored_by_the_next_run(
    answered: None, engine: AsyncEngine, tmp_path: Path
) -> None:
    served = 0

    def failing(body: dict[str, Any]) -> Say:
        nonlocal served
        served += 1
        return by_words(body) if served <= 8 else Say(status=401, body={"error": {"message": "no"}})

    async with serve(failing) as endpoint:
        with pytest.raises(JudgeUnavailable):
            await scored(engine, config(tmp_path, endpoint.url))
    assert len(await rows(engine, SCORES)) == 8
    async with serve(by_words) as endpoint:
        assert await scored(engine, config(tmp_path, endpoint.url)) == (24, 24, 0.0, 0)
        assert len(endpoint.bodies) == 24


async def test_a_budget_leaves_scores_out(answered: None, engine: AsyncEngine, tmp_path: Path) -> None:
    settings = config(tmp_path, "http://127.0.0.1:1/v1", **ENCODED)
    prices = {"d1": Price(input=10.0, output=0.0), "d3": Price(input=1.0, output=0.0)}
    declared = [one.model_copy(update={"price": prices.get(one.name)}) for one in settings.deployments]
    settings = settings.model_copy(update={"deployments": tuple(declared)})
    # 32 vectors at 0.001 USD, 32 scores of j at 0.01 USD, and 32 of k without a price.
    assert await scored(engine, settings, dry_run=True) == (96, 0, 0.352, 0)
    assert await scored(engine, settings, dry_run=True, budget_usd=0.1) == (32 + 6 + 32, 0, 0.092, 26)
