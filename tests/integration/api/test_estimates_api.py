"""``/api/estimates``, ``/api/deployments`` and the page at ``/``: the stored rows, and why there are none."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import CTO, answered, configuration, panel_answers, plan, ship
from support.stores.databases import Databases, seeded_database
from support.stores.exchanges import NOON, exchange
from support.stores.postgres import apart, copied_database
from typing_extensions import override

from auditor.api.app import ApiServices, build_app
from auditor.api.auth import ApiAuth
from auditor.config import Config
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import read_estimates
from auditor.store.queue import queue_sizes

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 40, "D|": 8, "R|": 2}, "d2": {"D|D": 60, "D|E": 40}}


def later():
    return NOON + timedelta(minutes=30)


@asynccontextmanager
async def api(url: str, config: Config) -> AsyncIterator[aiohttp.ClientSession]:
    engine = make_engine(url)
    served = ApiServices(
        engine=engine,
        auth=ApiAuth(engine, loopback=True),
        config=lambda: config,
        clock=later,
        registry=CollectorRegistry(),
    )
    runner = web.AppRunner(build_app(served))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            yield client
    finally:
        await runner.cleanup()


async def audit(url: str, engine: AsyncEngine, config: Config) -> None:
    await plan(url, SHARES, shipped_pool()[:100], [CTO])
    await ship(url, panel_answers(SHARES))
    await run_once(config, engine, later)


@pytest.fixture(scope="module")
def audited_database(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with the answers of two deployments, coded, to be copied."""
    config = configuration(tmp_path_factory.mktemp("audited"))

    async def seed(url: str) -> None:
        engine = make_engine(url)
        await audit(url, engine, config)
        await engine.dispose()

    with seeded_database(databases, lambda url: apart(seed(url))) as name:
        yield name


@pytest.fixture
def audited_url(postgres_server: str, audited_database: str) -> Iterator[str]:
    with copied_database(postgres_server, audited_database) as url:
        yield url


async def test_estimates_are_the_stored_rows(audited_url: str, tmp_path: Path) -> None:
    config, engine = configuration(tmp_path), make_engine(audited_url)
    async with api(audited_url, config) as client:
        async with client.get("/api/estimates") as answer:
            told = await answer.json()
        async with client.get("/api/estimates", params={"deployment": "d1", "metric": "ir", "window": "30d"}) as answer:
            some = await answer.json()
    async with transaction(engine) as connection:
        rows = await read_estimates(connection)
    await engine.dispose()
    assert told["as_of"] == "2026-03-01T12:30:00+00:00"
    assert [(row["metric"], row.get("value")) for row in told["estimates"]] == [(row.metric, row.value) for row in rows]
    assert all(
        ("missing" in row) != ("value" in row) or row["metric"] == "cancellation_trap" for row in told["estimates"]
    )
    categories = {f"category={statement.category}" for statement in shipped_pool()[:100]}
    assert {row["condition"] for row in some["estimates"]} == {
        "all", "task=CTO", "CTO/self/none/neutral", *categories
    }  # fmt: skip
    whole = next(row for row in some["estimates"] if row["condition"] == "all")
    assert whole == {
        "origin": "probe", "rubric": "statement", "condition": "all", "window": "30d", "metric": "ir",
        "deployment": "d1", "base": "eligible", "value": 20 / 92, "low": whole["low"], "high": whole["high"],
        "n_statements": 92, "n_eligible": 92, "coverage": 0.92, "method": "design_effect_wilson", "n": 92,
        "flags": ["few_clusters"], "since": "2026-01-30T12:00:00+00:00", "as_of": "2026-03-01T12:30:00+00:00",
        "coder": whole["coder"], "seed": 0,
    }  # fmt: skip


async def test_an_unknown_filter_is_refused(migrated_url: str, tmp_path: Path) -> None:
    async with (
        api(migrated_url, configuration(tmp_path)) as client,
        client.get("/api/estimates", params={"deploymnt": "d1"}) as answer,
    ):
        assert answer.status == 400
        assert (await answer.json())["error"]["param"] == "deploymnt"


async def test_estimates_can_be_asked_for_but_not_by_a_page(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    async with api(migrated_url, configuration(tmp_path)) as client:
        async with client.post("/api/estimates", headers={"origin": "http://elsewhere"}) as answer:
            assert answer.status == 403
        for expected in (True, False):
            async with client.post("/api/estimates") as answer:
                assert (answer.status, await answer.json()) == (202, {"asked": expected})
    async with transaction(engine) as connection:
        assert await queue_sizes(connection) == {("estimate", "queued"): 1}


async def test_deployments_say_what_is_there_and_what_is_missing(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path)
    async with api(migrated_url, config) as client:
        async with client.get("/api/deployments") as answer:
            before = await answer.json()
        await audit(migrated_url, engine, config)
        async with client.get("/api/deployments") as answer:
            after = await answer.json()
    first = before["deployments"][0]
    assert (before["as_of"], first["name"], first["planned"], first["origins"]) == (None, "d1", 0, {})
    assert first["reasons"] == ["No answer was stored in the last 30d."]
    assert first["next"].startswith("biasmeter audit plan --design sentinel --deployment d1")
    first = after["deployments"][0]
    assert (first["planned"], first["answered"], first["reasons"], first["next"]) == (100, 100, [], None)
    probes = first["origins"]["probe"]
    assert (probes["stored"], probes["coded"], probes["uncoded"], probes["waiting"]) == (100, 100, 0, 0)
    shown = {(row["metric"], row.get("layer")): row["value"] for row in first["estimates"]}
    assert shown[("ir", None)] == 20 / 92
    assert shown[("coverage", None)] == 0.92


async def test_traffic_that_no_audit_reads_is_told(migrated_url: str, tmp_path: Path) -> None:
    await ship(migrated_url, [exchange(deployment="d1"), exchange(deployment="gone")])
    async with api(migrated_url, configuration(tmp_path)) as client, client.get("/api/deployments") as answer:
        told = {each["name"]: each for each in (await answer.json())["deployments"]}
    assert "1 client exchanges are stored. No route of this deployment names an audit profile." in told["d1"]["reasons"]
    assert told["gone"]["configured"] is False


class Page(HTMLParser):
    """Looks for anything that a page would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.text = ""

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"script", "link", "img", "iframe", "object"} or any(name == "src" for name, _ in attrs):
            self.fetched.append(tag)

    @override
    def handle_data(self, data: str) -> None:
        self.text += data


async def test_the_page_says_it_all_and_fetches_nothing(audited_url: str, tmp_path: Path) -> None:
    config = configuration(tmp_path)
    statement = shipped_pool()[0]
    # Stored names reach the page: of deployments that have been renamed since, for one.
    await ship(audited_url, [answered("<script>alert(1)</script>", statement, CTO, "A. No.", name="other")])
    async with api(audited_url, config) as client, client.get("/") as answer:
        text = await answer.text()
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    page = Page()
    page.feed(text)
    assert page.fetched == ["link", "script"]  # the auditor's own: see the browser's tests
    assert "<script>alert(1)</script>" in page.text
    assert "21.7 %" in page.text
    assert "100 of 100" in page.text
    assert "The only judge is the lexicon" in page.text


async def test_an_empty_store_has_a_page_that_helps(migrated_url: str, tmp_path: Path) -> None:
    async with api(migrated_url, configuration(tmp_path)) as client, client.get("/") as answer:
        text = await answer.text()
    assert "There are no estimates yet." in text
    assert "biasmeter audit plan --design sentinel --deployment d1" in text


async def test_the_page_is_not_for_foreign_names(migrated_url: str, tmp_path: Path) -> None:
    async with (
        api(migrated_url, configuration(tmp_path)) as client,
        client.get("/", headers={"host": "elsewhere.example"}) as answer,
    ):
        assert answer.status == 403
