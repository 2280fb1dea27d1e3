"""Applications' own traffic, from the OpenAI SDK through the gateway to estimates: two rubrics, apart, and no leak."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from openai import OpenAI
from support.clients.sdk_exercise import sdk_client
from support.servers.judge_server import serve
from support.servers.product import installation, settings
from support.stores.audited_store import TRAFFIC, label_of
from support.upstreams.scripted_upstream import scripted_upstream
from support.upstreams.upstream_answers import json_answer
from support.upstreams.upstream_payloads import completion
from support.upstreams.upstream_wire import Request, Step
from support.waiting import eventually

from auditor.config import load
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import read_estimates

TENANTS, QUIET = 20, "a word that may not leave"


def desk(request: Request) -> list[Step]:
    """What the deployments answer: a verdict with its reason where one was asked for, else plain text."""
    said = request.payload["messages"][-1]["content"]
    text = "True: everybody knows it."
    if "about" in said:
        text = json.dumps({"verdict": "acceptable", "reason": "It is a harmful stereotype."})
    return json_answer(completion(request, text))


def ask_all(client: OpenAI) -> None:
    """Ask as three applications do."""
    for number in range(TENANTS):
        tenant = {"x-biasmeter-tags": f"tenant=t{number}"}
        about = [{"role": "user", "content": f"Old people are slow, says a text about part {number}."}]
        client.chat.completions.create(model="desk", messages=about, extra_headers=tenant)
        quiet = [{"role": "user", "content": f"{QUIET}, about part {number}"}]
        client.chat.completions.create(model="quiet", messages=quiet, extra_headers=tenant)
        talk = {"metadata": {"conversation": f"c{number}"}}
        client.chat.completions.create(model="chat", messages=[{"role": "user", "content": "Well?"}], extra_body=talk)


async def test_both_rubrics_appear_apart_and_what_may_not_be_shown_is_not(tmp_path: Path, migrated_url: str) -> None:
    async with scripted_upstream(desk) as upstream, serve(lambda body: label_of(body, delay=0)) as judge:
        chosen = settings(upstream.url, workers=1) | yaml.safe_load(TRAFFIC)
        chosen["deployments"] = [
            {"name": "d1", "base_url": upstream.url, "model": "m1"},
            {"name": "d2", "base_url": upstream.url, "model": "m2"},
            {"name": "d3", "base_url": judge.url, "model": "judge-model"},
        ]
        chosen["routes"].append({"model": "judging", "deployments": ["d3"]})
        chosen["judges"] = [{"name": "judge", "deployment": "d3"}]
        with installation(tmp_path, chosen, migrated_url) as product, product.running("gateway"):

            def through_the_sdk() -> None:
                with sdk_client(product.url + "/v1") as client:
                    ask_all(client)

            await asyncio.to_thread(through_the_sdk)
            await product.shipped()

            async def all_stored() -> bool:
                found = await product.rows("SELECT count(*) AS n FROM exchanges WHERE origin = 'client'")
                return bool(found[0]["n"] == 3 * TENANTS)

            await eventually(all_stored)
            engine = make_engine(migrated_url)
            # The hour has to be over before it is asked about; nothing else depends on the clock.
            await run_once(load(product.config, {}), engine, lambda: datetime.now(UTC) + timedelta(hours=1))
            async with transaction(engine) as connection:
                rows = await read_estimates(connection, window="30d", origin="client")
            await engine.dispose()
    found = {(row.rubric, row.condition, row.metric, row.layer, row.base): row for row in rows}
    assert {rubric for rubric, *_ in found} == {"proposition", "open"}
    # The desk accepts a claim whose reason rejects it: its layers disagree every time.
    assert found["proposition", "moderation", "ber", "sel", "eligible"].n == TENANTS
    assert found["proposition", "moderation", "ir", None, "eligible"].low > 0.8
    assert found["open", "talk", "ber", "elab", "full"].low > 0.8
    assert not {key for key in found if key[0] == "open" and key[1] != "talk"}
    # The judge stood behind the gateway, and was shown the two routes that allow it.
    shown = json.dumps(judge.bodies)
    assert len(judge.bodies) == 2 * TENANTS
    assert QUIET not in shown
