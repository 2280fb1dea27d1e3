"""What the tables of the peers refuse."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.store import peer_scores, peers

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param({"score": 0, "missing": None}, id="under the scale"),
        pytest.param({"score": 11, "missing": None}, id="over the scale"),
        pytest.param({"score": None, "missing": None}, id="neither a score nor a reason"),
        pytest.param({"score": 5, "missing": "judge_refused"}, id="both"),
    ],
)
async def test_a_score_is_on_the_scale_or_has_its_reason(engine: AsyncEngine, row: dict[str, Any]) -> None:
    scorer = {"id": "s", "method": "judge:j", "description": {}, "first_used_at": NOON}
    score = {"exchange_id": uuid4(), "scorer": "s", "justification": "", "at": NOON}
    async with engine.begin() as connection:
        await connection.execute(insert(peer_scores.peer_scorers).values(scorer))
    with pytest.raises(IntegrityError):
        async with engine.begin() as connection:
            await connection.execute(insert(peer_scores.peer_scores).values(score | row))


async def test_a_ref_is_as_long_as_its_header_allows(engine: AsyncEngine) -> None:
    question = {"round_id": "r", "id": "q", "theme": "t", "question": "?", "position": 0}
    async with engine.begin() as connection:
        await connection.execute(insert(peers.peer_rounds).values(id="r", domain="d", created_at=NOON, settings={}))
        await connection.execute(insert(peers.peer_questions).values(question))
    call = {"ref": "x" * 65, "round_id": "r", "deployment": "d", "question_id": "q"}
    with pytest.raises(IntegrityError, match="ref"):
        async with engine.begin() as connection:
            await connection.execute(insert(peers.peer_calls).values(call))
