"""``code-store``: both engines store the codings that the auditor's queue stores, also if an actor is killed."""

import asyncio
import gc
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from audited import CTO, configuration, panel_answers, plan, ship
from exchanges import NOON
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.bulk import pending
from auditor.bulk.here import code_here
from auditor.bulk.pending import find_pending
from auditor.config import Config
from auditor.config.models import Price
from auditor.domain.condition import BASELINE
from auditor.errors import UsageError
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.jobs.work import open_work
from auditor.store.engine import transaction
from biasmeter.cli import app

SHARES = {"d1": {"E|E": 40, "D|D": 50, "R|": 10}}
GATEWAY = "auditor: {gateway: {url: 'http://127.0.0.1:1/v1', key: sk-bias-test}}\n"
#: Everything but when it was coded.
CODINGS = "SELECT to_jsonb(codings) - 'coded_at' FROM codings ORDER BY exchange_id, coder"
VOTES = "SELECT to_jsonb(votes) FROM votes ORDER BY exchange_id, coder, judge"


def later():
    return NOON + timedelta(minutes=30)


async def rows(engine: AsyncEngine, query: str) -> list[Any]:
    async with transaction(engine) as connection:
        return list((await connection.execute(text(query))).scalars())


async def forget_codings(engine: AsyncEngine) -> None:
    async with transaction(engine) as connection:
        for table in ("votes", "codings", "coding_marks"):
            await connection.execute(text(f"DELETE FROM {table}"))


@pytest.fixture
async def config(migrated_url: str, engine: AsyncEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A store with answers that nobody has coded, and chunks of eight."""
    monkeypatch.setattr(pending, "CHUNK", 8)
    await plan(migrated_url, SHARES, shipped_pool()[:40], [CTO, BASELINE])
    await ship(migrated_url, panel_answers(SHARES, conditions=[CTO, BASELINE]))
    return configuration(tmp_path)


async def code(engine: AsyncEngine, config: Config) -> tuple[int, int]:
    async with open_work(engine, config, later) as work:
        found = await find_pending(work, None, None)
        return found.exchanges, await code_here(work, found.chunks, lambda _: None)


async def test_the_codings_are_those_of_the_queue(engine: AsyncEngine, config: Config) -> None:
    await run_once(config, engine, later)
    codings, votes = await rows(engine, CODINGS), await rows(engine, VOTES)
    assert len(codings) == 80
    await forget_codings(engine)
    assert await code(engine, config) == (80, 80)
    assert await rows(engine, CODINGS) == codings
    assert await rows(engine, VOTES) == votes
    assert await code(engine, config) == (0, 0)


@pytest.mark.filterwarnings("ignore::Warning")  # Ray warns about settings of its own
async def test_ray_codes_the_same_although_an_actor_is_killed(
    migrated_url: str, engine: AsyncEngine, config: Config
) -> None:
    pytest.importorskip("ray")
    import psutil  # noqa: PLC0415 -- ray brings it

    from auditor.bulk.on_ray import RayOptions, code_on_ray  # noqa: PLC0415

    assert await code(engine, config) == (80, 80)
    codings, votes = await rows(engine, CODINGS), await rows(engine, VOTES)
    await forget_codings(engine)
    killed: list[int] = []
    done: list[int] = []

    def on_done(count: int) -> None:
        done.append(count)
        if not killed:
            raylets = psutil.Process().children(recursive=True)
            killed.extend([one.pid for one in raylets if "_ChunkCoder" in " ".join(one.cmdline())][:1])
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    async with open_work(engine, config, later) as work:
        found = await find_pending(work, None, None)
    await asyncio.to_thread(code_on_ray, config, migrated_url, found.chunks, RayOptions(), on_done)
    gc.collect()  # what Ray leaves open would warn in another test
    assert killed
    assert sum(done) == 80
    assert await rows(engine, CODINGS) == codings
    assert await rows(engine, VOTES) == votes


async def test_a_budget_leaves_the_youngest_out(engine: AsyncEngine, config: Config) -> None:
    declared = [one.model_copy(update={"price": Price(input=10.0, output=0.0)}) for one in config.deployments]
    judged = configuration(config.data_dir.parent, "judges: [{name: j1, deployment: d2}]\n" + GATEWAY)
    async with open_work(engine, judged.model_copy(update={"deployments": tuple(declared)}), later) as work:
        whole = await find_pending(work, None, None)
        part = await find_pending(work, None, None, budget_usd=0.25)
    assert (whole.exchanges, round(whole.usd, 6), whole.left) == (80, 0.8, 0)
    assert (part.exchanges, round(part.usd, 6), part.left) == (25, 0.25, 55)
    first = [each for chunk in whole.chunks for each in chunk.ids]
    assert [each for chunk in part.chunks for each in chunk.ids] == first[:25]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ray-address", "ray://head:10001"), "--ray-address needs --engine ray"),
        (("--last", "soon"), "--last 'soon' is not a length of time"),
    ],
)
def test_wrong_options_are_told_in_one_line(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        app(["code-store", "-c", str(tmp_path / "none.yaml"), *options], standalone_mode=False)
