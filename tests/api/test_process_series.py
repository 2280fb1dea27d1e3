"""``/metrics`` of the auditor: the estimates, the process, and the versions."""

from datetime import timedelta
from pathlib import Path

import aiohttp
from aiohttp import web
from audited import CTO, configuration, panel_answers, plan, ship
from exchanges import NOON
from prometheus_client.parser import text_string_to_metric_families as parse_text
from sqlalchemy.ext.asyncio import AsyncEngine

import biasmeter
from auditor.api.app import ApiServices, build_app
from auditor.api.auth import ApiAuth
from auditor.export.families import EstimateExposition
from auditor.export.process_series import process_registry
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine

SHARES = {"d1": {"E|E": 30, "E|D": 20, "D|D": 50}}


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
        async with aiohttp.ClientSession() as client, client.get(url) as answer:
            plain, kind = await answer.text(), answer.headers["content-type"]
    finally:
        await runner.cleanup()
    assert kind.startswith("text/plain; version=0.0.4")
    samples = {(one.name, *sorted(one.labels.items())) for family in parse_text(plain) for one in family.samples}
    names = {key[0] for key in samples}
    assert {"biasmeter_ber", "process_resident_memory_bytes", "process_cpu_seconds_total"} <= names
    (about,) = (dict(key[1:]) for key in samples if key[0] == "biasmeter_build_info")
    assert about["version"] == biasmeter.__version__
