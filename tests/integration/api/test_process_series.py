"""``/metrics`` of the auditor: the estimates, the process, and the versions."""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
from aiohttp import web
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import CTO, TRAFFIC, configuration, fetch, panel_answers, plan, ship, verdict
from support.stores.exchanges import NOON

import biasmeter
from auditor.api.app import ApiServices, build_app
from auditor.api.auth import ApiAuth
from auditor.export.families import EstimateExposition
from auditor.export.process_series import CODINGS, metrics_page, process_registry
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 50}}


def sample_keys(families: Iterable[Metric]) -> set[tuple[Any, ...]]:
    return {(one.name, *sorted(one.labels.items())) for family in families for one in family.samples}


def later():
    return NOON + timedelta(minutes=30)


async def test_the_estimates_and_the_process_have_series(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config = configuration(tmp_path)
    await plan(migrated_url, SHARES, shipped_pool()[:100], [CTO])
    await ship(migrated_url, panel_answers(SHARES))
    await run_once(config, engine, later)
    exposition = EstimateExposition(later)
    await exposition.refresh(engine)
    own = make_engine(migrated_url)  # closed with the application
    served = ApiServices(
        engine=own,
        auth=ApiAuth(own, loopback=True),
        config=lambda: config,
        clock=later,
        registry=process_registry(),
        exposed=lambda: exposition.text,
    )
    runner = web.AppRunner(build_app(served))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/metrics"
        accept = {"accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}
        async with aiohttp.ClientSession() as client:
            async with client.get(url) as answer:
                plain, kind = await answer.text(), answer.headers["content-type"]
            async with client.get(url, headers=accept) as answer:
                openmetrics, other = await answer.text(), answer.headers["content-type"]
    finally:
        await runner.cleanup()
    assert kind.startswith("text/plain; version=0.0.4")
    samples = sample_keys(parse_text(plain))
    names = {key[0] for key in samples}
    assert {"biasmeter_ber", "process_resident_memory_bytes", "process_cpu_seconds_total"} <= names
    (about,) = (dict(key[1:]) for key in samples if key[0] == "biasmeter_build_info")
    assert about["version"] == biasmeter.__version__
    assert other.startswith("application/openmetrics-text; version=1.0.0")
    assert sample_keys(parse_openmetrics(openmetrics)) == sample_keys(parse_text(plain))


async def test_codings_have_exemplars_with_the_trace_of_the_client(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    traced = verdict("E", "D", 0, tags={"tenant": "t", "trace_id": trace})
    untraced = verdict("D", "D", 1, tags={"tenant": "t", "trace_id": "longer than an exemplar may be" * 9})
    CODINGS.clear()
    await ship(migrated_url, [traced, untraced])
    await run_once(configuration(tmp_path, TRAFFIC), engine, lambda: NOON.replace(hour=14))
    page, kind = metrics_page(process_registry(), b"", "application/openmetrics-text")
    assert kind.startswith("application/openmetrics-text")
    codings = next(one for one in parse_openmetrics(page.decode()) if one.name == "biasmeter_codings")
    found = {one.labels["endorsed"]: one for one in codings.samples}
    assert {name: one.value for name, one in found.items()} == {"yes": 1, "no": 1}
    stored = {row["id"] for row in await fetch(migrated_url, "SELECT id FROM exchanges")}
    traces = {name: dict(one.exemplar.labels) for name, one in found.items()}
    assert traces["yes"]["trace_id"] == trace
    assert traces["no"]["trace_id"] == traces["no"]["exchange_id"].replace("-", "")
    assert {UUID(one["exchange_id"]) for one in traces.values()} == stored
    # The text format has no exemplars.
    assert b"trace_id" not in metrics_page(process_registry(), b"", "text/plain")[0]
