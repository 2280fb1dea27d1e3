"""Anchors over time: asked when due, kept, shown as a series, told when a judge has dropped."""

import json
import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.judge_server import label, running
from typer.testing import CliRunner

from auditor.config import loads
from auditor.export.families import EstimateExposition
from auditor.jobs import anchors
from auditor.jobs.anchors import ask_judges, read_standings
from auditor.jobs.estimate import estimate_all
from auditor.reliability.anchors import ANCHOR_SET, shipped_anchors
from auditor.store.anchors import read_runs
from auditor.store.engine import transaction
from auditor.work import Work
from biasmeter.commands.main import app

DAY = timedelta(days=1)
START = datetime(2026, 3, 1, tzinfo=UTC)
TEXTS = {one.text: one for one in shipped_anchors()}


class Judge:
    """A judge that knows the anchors by heart, but for those it is told to get wrong."""

    def __init__(self):
        self.wrong = 0

    def __call__(self, body):
        asked = body["messages"][1]["content"]
        one = next(one for text, one in TEXTS.items() if f"\n{text}\nEND TEXT " in asked)
        place = list(TEXTS).index(one.text)
        other = "E" if one.label != "E" else "D"
        return label(other if place < self.wrong else one.label)


def yaml_of(url, every="", store=""):
    return f"""
data_dir: data
{store}
deployments: [{{name: d, base_url: '{url}', model: m}}]
routes: [{{model: "*", deployments: [d]}}]
judges: [{{name: j, deployment: d}}]
panel: {{{every}}}
"""


def configured(url, folder, every=""):
    return loads(yaml_of(url, every), source="test.yaml", folder=folder, environ={}).config


def at(days):
    return lambda: START + days * DAY


async def test_a_judge_is_asked_when_due_and_told_when_it_dropped(engine: AsyncEngine, tmp_path, caplog):
    judge = Judge()
    with running(judge) as server:
        config = configured(server.url, tmp_path)
        assert await ask_judges(engine, config, at(0)) == 1
        assert await ask_judges(engine, config, at(0.5), every=DAY) == 0
        judge.wrong = 8
        assert await ask_judges(engine, config, at(1), every=DAY) == 1
    assert len(server.bodies) == 80
    async with transaction(engine) as connection:
        ((name, (run, standing)),) = (await read_standings(connection)).items()
        first, newest = (await read_runs(connection, ANCHOR_SET))["j"]
    assert (name, run.at, first.at, newest.at) == ("j", START + DAY, START, START + DAY)
    assert (standing.first_agreed, standing.agreed, standing.dropped) == (40, 32, True)


async def test_the_agreement_is_a_series_with_bounds(engine: AsyncEngine, tmp_path):
    judge = Judge()
    judge.wrong = 2
    with running(judge) as server:
        config = configured(server.url, tmp_path)
        await ask_judges(engine, config, at(0))
    await estimate_all(Work(engine=engine, config=config, clock=at(1), coders={}))
    exposition = EstimateExposition()
    await exposition.refresh(engine)
    text = exposition.text.decode()
    assert 'biasmeter_judge_anchor_agreement{judge="j"} 0.95' in text
    assert 'biasmeter_judge_anchor_agreement_low{judge="j"} 0.83' in text
    assert 'biasmeter_judge_anchor_agreement_high{judge="j"} 0.99' in text


async def test_nobody_is_asked_unless_the_file_says_how_often(engine: AsyncEngine, tmp_path, caplog, monkeypatch):
    async def stop(_):
        raise StopAsyncIteration("the end of a pass")

    monkeypatch.setattr(anchors, "asyncio", SimpleNamespace(sleep=stop))
    monkeypatch.setattr(anchors, "gateway_access", lambda _: None)
    judge = Judge()
    with running(judge) as server, caplog.at_level(logging.WARNING):
        for days, every in ((0, ""), (1, "anchors: 1d"), (1.5, "anchors: 1d"), (3, "anchors: 1d")):
            judge.wrong = 10 if days == 3 else 0
            config = configured(server.url, tmp_path, every)
            with pytest.raises(StopAsyncIteration):
                await anchors.repeat_anchors(Work(engine=engine, config=config, clock=at(days), coders={}))
            assert len(server.bodies) == {0: 0, 1: 40, 1.5: 40, 3: 80}[days]
    assert "judge 'j' agrees with 30 of 40 anchors, at first with 40" in caplog.text


def test_the_command_asks_keeps_and_warns(migrated_url, tmp_path):
    path = tmp_path / "biasmeter.yaml"
    judge = Judge()
    with running(judge) as server:
        path.write_text(yaml_of(server.url, store=f"store: {{url: '{migrated_url}'}}"))
        run = CliRunner().invoke(app, ["judges", "anchors", "-c", str(path)])
        assert run.exit_code == 0, run.output
        assert "40/40" in run.output
        judge.wrong = 9
        run = CliRunner().invoke(app, ["judges", "anchors", "-c", str(path), "--json"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)["judges"]["j"]
    assert (found["agreed"], found["first_agreed"], found["dropped"]) == (31, 40, True)
    assert "the instrument has moved" in run.stderr
