"""Probes that ask until a rate is known: blocks are sent, read and looked at, until that or the budget ends them."""

from datetime import UTC, datetime
from zlib import crc32

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.servers.product import Product
from support.stores.audited_store import ANSWERS
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.upstreams.upstream_answers import json_answer
from support.upstreams.upstream_payloads import completion
from support.upstreams.upstream_wire import Request, Step

from auditor.access import gateway_access
from auditor.config import load
from auditor.jobs.run_once import run_once
from auditor.probes.run import Runner, RunResult
from auditor.probes.timed import run_due
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import EstimateRow, read_estimates
from auditor.work import open_work


@pytest.fixture
def product(beside_gateway: Product) -> Product:
    """The probes' configuration, on a gateway that runs."""
    return beside_gateway


def now() -> datetime:
    return datetime.now(UTC)


class Probing:
    """One deployment that is probed, and an auditor that reads what it says."""

    def __init__(self, product: Product, half_width: float, budget: int) -> None:
        product.settings["deployments"][0]["concurrency"] = 40
        probe = {"plan": "sentinel", "deployments": ["alias"], "every": "3650d", "half_width": half_width}
        product.settings["probes"] = [{**probe, "budget": {"calls": budget}}]
        product.write()
        assert product.database_url is not None
        self.config = load(product.config, {})
        self.engine: AsyncEngine = make_engine(product.database_url)

    async def look(self) -> tuple[RunResult, ...]:
        """Do what the auditor does once a minute."""
        runner = Runner(engine=self.engine, config=self.config, access=gateway_access(self.config), now=now)
        async with open_work(self.engine, self.config, now) as work:
            coder = next(scope.coder for scope in work.scopes() if scope.routes is None)
        return await run_due(runner, coder)

    async def read(self) -> EstimateRow:
        """Code and estimate, and give what the probe has found."""
        await run_once(self.config, self.engine, now)
        async with transaction(self.engine) as connection:
            (row,) = await read_estimates(connection, metric="target")
        return row


@pytest.fixture
def divided(upstream: ScriptedUpstream) -> None:
    """About half of the answers endorse, by what was asked."""

    def answer(request: Request) -> list[Step]:
        endorses = crc32(request.body) % 2
        return json_answer(completion(request, ANSWERS["E|E" if endorses else "D|D"].format(group="they")))

    upstream.script = answer


async def test_blocks_follow_until_the_budget_ends_them(
    product: Product, upstream: ScriptedUpstream, divided: None
) -> None:
    probing = Probing(product, half_width=0.15, budget=66)
    (first,) = await probing.look()
    assert (first.planned, first.sent, first.answered) == (60, 60, 60)  # 20 blocks of a question a task
    assert await probing.look() == ()  # nothing has been read yet
    row = await probing.read()
    assert (row.detail["blocks"], row.detail["reached"], row.n) == (20, False, 60)
    assert row.low is not None
    assert row.high is not None
    assert row.high - row.low > 0.3
    for blocks in (21, 22):
        (more,) = await probing.look()
        assert (more.sent, more.planned) == (3, 3 * blocks)
        assert (await probing.read()).detail["blocks"] == blocks
    assert await probing.look() == ()
    assert upstream.received == 66
    plans = await product.rows("SELECT design, settings FROM plans")
    assert [row["design"] for row in plans] == ["target"]
    await probing.engine.dispose()


async def test_what_is_known_well_enough_is_asked_no_more(product: Product, upstream: ScriptedUpstream) -> None:
    """Nothing is endorsed, and all blocks are alike: twenty of them will do."""
    upstream.script = lambda request: json_answer(completion(request, "I cannot help with that."))
    probing = Probing(product, half_width=0.15, budget=500)
    assert len(await probing.look()) == 1
    row = await probing.read()
    assert (row.value, row.detail["reached"], row.method) == (0.0, True, "asymptotic_sequence")
    assert await probing.look() == ()
    assert upstream.received == 60
    await probing.engine.dispose()
