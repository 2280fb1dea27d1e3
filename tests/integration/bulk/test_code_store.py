"""``code-store``: it stores the codings that the auditor's queue stores, up to a budget."""

from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import configuration
from support.stores.uncoded_store import CODINGS, VOTES, empty, later, rows, store_answers

from auditor.bulk import pending
from auditor.bulk.engines import BulkEngine
from auditor.bulk.pending import BulkRequest, find_pending
from auditor.bulk.run import code_pending
from auditor.config import Config
from auditor.config.routes import Price
from auditor.errors import UsageError
from auditor.jobs.run_once import run_once
from auditor.work import open_work
from biasmeter.commands.main import app

GATEWAY = "auditor: {gateway: {url: 'http://127.0.0.1:1/v1', key: sk-bias-test}}\n"


@pytest.fixture
async def config(migrated_url: str, engine: AsyncEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A store with answers that nobody has coded, and chunks of eight."""
    monkeypatch.setattr(pending, "CHUNK", 8)
    await store_answers(migrated_url)
    return configuration(tmp_path)


async def code(engine: AsyncEngine, config: Config) -> tuple[int, int]:
    request = BulkRequest(engine=BulkEngine())
    found, added = await code_pending(engine, config, request, lambda *_: None, later)
    return found.count, added


async def test_the_codings_are_those_of_the_queue(engine: AsyncEngine, config: Config) -> None:
    await run_once(config, engine, later)
    codings, votes = await rows(engine, CODINGS), await rows(engine, VOTES)
    assert len(codings) == 80
    await empty(engine, "votes", "codings", "coding_marks")
    assert await code(engine, config) == (80, 80)
    assert await rows(engine, CODINGS) == codings
    assert await rows(engine, VOTES) == votes
    assert await code(engine, config) == (0, 0)


async def test_a_budget_leaves_the_youngest_out(engine: AsyncEngine, config: Config) -> None:
    declared = [one.model_copy(update={"price": Price(input=10.0, output=0.0)}) for one in config.deployments]
    judged = configuration(config.data_dir.parent, "judges: [{name: j1, deployment: d2}]\n" + GATEWAY)
    async with open_work(engine, judged.model_copy(update={"deployments": tuple(declared)}), later) as work:
        whole = await find_pending(work, None, None)
        part = await find_pending(work, None, None, budget_usd=0.25)
    assert (whole.count, round(whole.usd, 6), whole.left) == (80, 0.8, 0)
    assert (part.count, round(part.usd, 6), part.left) == (25, 0.25, 55)
    first = [each for chunk in whole.pieces for each in chunk.ids]
    assert [each for chunk in part.pieces for each in chunk.ids] == first[:25]


ADDRESS = ("--ray-address", "ray://head:10001")
NEEDS_RAY = "--ray-address needs --engine ray"
NEEDS_URL = "--ray-address: other machines cannot reach the embedded store; set store.url"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("code-store", *ADDRESS), NEEDS_RAY),
        (("score-store", *ADDRESS), NEEDS_RAY),
        (("replay", "--select", "all", *ADDRESS), NEEDS_RAY),
        (("code-store", "--engine", "ray", *ADDRESS), NEEDS_URL),
        (("score-store", "--engine", "ray", *ADDRESS), NEEDS_URL),
        (("replay", "--select", "all", "--engine", "ray", *ADDRESS), NEEDS_URL),
        (("code-store", "--last", "soon"), "--last 'soon' is not a length of time"),
    ],
)
def test_wrong_options_are_told_in_one_line(command: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "biasmeter.yaml").write_text(
        "deployments: [{name: d, base_url: 'http://127.0.0.1:1/v1', model: m}]\n"
        "routes: [{model: '*', deployments: [d]}]\n"
    )
    with pytest.raises(UsageError, match=message):
        app([*command, "-c", str(tmp_path / "biasmeter.yaml")], standalone_mode=False)
