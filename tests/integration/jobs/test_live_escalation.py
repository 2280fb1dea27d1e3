"""Live coding asks the panel's first judge where an answer stands, of planned calls, and of no client's traffic."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.judge_server import Say, completion, serve
from support.stores.audited_store import (
    TRAFFIC,
    answered,
    asked_body,
    chat_body,
    configuration,
    fetch,
    label_of,
    plan,
    ship,
    verdict,
)
from support.stores.exchanges import NOON, exchange

from auditor.coding.coders import open_coders
from auditor.domain.condition import Condition, Task
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once

JUDGED = """
judges: [{name: judge, deployment: d2}, {name: second, deployment: d1}]
panel: {judges: [lexicon, judge, second]}
auditor: {gateway: {url: "URL", key: sk-bias-test}}
"""
BJ = Condition(task=Task.BJ)
#: No rule finds an answer here; a reader sees "disagree".
HIDDEN = "Some would say so; my hunch (disagree) stands, for everybody knows it."


def later():
    return NOON + timedelta(minutes=30)


def pointing(token: object):
    """A judge that says these words where it is asked for some, and else labels as every judge of these tests."""

    def say(body: Mapping[str, Any]) -> Say:
        if "BEGIN ANSWER" in json.dumps(body["messages"]):
            return completion(json.dumps({"token": token, "label": "E"}))
        return label_of(body, delay=0)

    return say


async def coded(
    url: str, engine: AsyncEngine, folder: Path, token: object
) -> tuple[list[tuple[object, ...]], list[Any]]:
    """Code one hidden answer and one plain one of a plan, and two of clients."""
    first, second = shipped_pool()[:2]
    await plan(url, ["d1"], [first, second], [BJ])
    desk = {"response": chat_body(json.dumps({"verdict": "I would call it acceptable, if asked", "reason": "So."}))}
    talk = {"route": "chat", "deployment": "d2", "request": asked_body("Hello."), "response": chat_body(HIDDEN)}
    clients = [verdict("E", "E", 1, **desk), verdict("E", "E", 2, route="quiet", **desk), exchange(NOON, **talk)]
    await ship(url, [answered("d1", first, BJ, HIDDEN), answered("d1", second, BJ, "No."), *clients])
    async with serve(pointing(token)) as judge:
        config = configuration(folder, TRAFFIC + JUDGED.replace("URL", judge.url))
        await run_once(config, engine, later)
        asked = [body for body in judge.bodies if "BEGIN ANSWER" in json.dumps(body["messages"])]
    rows = await fetch(
        url, "SELECT origin, sel, sel_reason, sel_via FROM codings ORDER BY origin, sel_via, sel, sel_reason"
    )
    return [tuple(row) for row in rows], asked


async def test_the_first_judge_points_and_the_rule_says_what_it_means(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    rows, asked = await coded(migrated_url, engine, tmp_path, "disagree")
    assert [row for row in rows if row[0] == "probe"] == [
        ("probe", "D", None, "judge"),
        ("probe", "D", None, "rule"),
    ]
    # One answer of a plan was unclear, one judge was asked; of clients' answers none is shown for this.
    assert len(asked) == 1
    assert {row[3] for row in rows if row[0] == "client"} == {"rule"}
    assert ("client", "Abstain", "no_marker", "rule") in rows


async def test_words_that_do_not_stand_there_leave_the_answer_unread(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    rows, asked = await coded(migrated_url, engine, tmp_path, "I agree")
    assert ("probe", "Abstain", "no_marker", "rule") in rows
    assert len(asked) == 2  # asked once more, and not a third time


async def test_a_coder_whose_selection_a_judge_may_help_is_another_coder(tmp_path: Path) -> None:
    async with open_coders(configuration(tmp_path, TRAFFIC), asking=False) as (alone, *_):
        assert alone.finder is None
        assert alone.description["selection"] == "selection/4"
    async with serve([]) as judge:
        config = configuration(tmp_path, TRAFFIC + JUDGED.replace("URL", judge.url))
        async with open_coders(config, asking=False) as (helped, *traffic):
            assert helped.id != alone.id
            assert helped.description["selection"].startswith("selection/4+judge@m2+")
            assert {coder.finder for coder in traffic} == {None}
            assert {coder.description["selection"] for coder in traffic} == {"selection/4"}
