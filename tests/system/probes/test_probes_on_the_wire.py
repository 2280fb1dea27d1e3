"""A deployment cannot tell a probe from an application: what reaches it is the same, to the order of the fields."""

import asyncio
from datetime import UTC, datetime

from openai import OpenAI
from support.servers.product import Product
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.upstreams.upstream_wire import Request

from auditor.access import gateway_access
from auditor.config import load
from auditor.instrument.designs import Design
from auditor.instrument.pool import shipped_pool
from auditor.probes.plan import PlanSpec, make_plan
from auditor.probes.run import RunLimits, Runner
from auditor.store.engine import make_engine


def headers(request: Request) -> list[tuple[str, str]]:
    """Fields as they arrived; the request id is another one each time."""
    return [(name.lower(), "an id" if name.lower() == "x-request-id" else value) for name, value in request.headers]


async def test_a_probe_reaches_the_deployment_as_an_application_s_request_does(
    beside_gateway: Product, upstream: ScriptedUpstream
) -> None:
    product = beside_gateway
    assert product.database_url is not None
    planned = make_plan(PlanSpec(design=Design.SENTINEL, statements=shipped_pool()))
    messages = [{"role": one.role, "content": one.content} for one in planned.items[0].messages]

    def ask_as_an_application() -> None:
        client = OpenAI(base_url=f"{product.url}/v1", api_key="sk-anything", max_retries=0)
        client.chat.completions.create(model="gpt", messages=messages)  # type: ignore[arg-type]
        client.close()

    engine = make_engine(product.database_url)
    config = load(product.config, {})
    runner = Runner(
        engine=engine, config=config, access=gateway_access(config), now=lambda: datetime(2031, 5, 6, tzinfo=UTC)
    )
    (ended,) = await runner.run(planned, [config.deployments[0]], limits=RunLimits(calls=1))
    await asyncio.to_thread(ask_as_an_application)
    await product.shipped()
    origins = [row["origin"] for row in await product.rows("SELECT origin FROM exchanges ORDER BY id")]
    await engine.dispose()
    assert (ended.sent, origins) == (1, ["probe", "client"])
    probe, application = upstream.requests
    assert (probe.method, probe.path, probe.body) == (application.method, application.path, application.body)
    assert headers(probe) == headers(application)
    assert not any("biasmeter-" in name for name, _ in headers(probe))
    ids = [request.header("x-request-id") or "" for request in (probe, application)]
    assert [one.startswith("req_") for one in ids] == [True, True]
