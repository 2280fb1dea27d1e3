"""Codings as events and exchanges as spans, at a collector that decodes OTLP."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiohttp import web
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import TRAFFIC, configuration, fetch, ship, verdict
from support.stores.exchanges import NOON

from auditor.config import Config
from auditor.export.collector import CollectorError, repeat_sending, send_some
from auditor.jobs.run_once import run_once
from auditor.work import open_work

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@dataclass
class Collector:
    """An OTLP collector: what it got, decoded, and the status with which it answers."""

    url: str = ""
    status: int = 200
    events: list[Any] = field(default_factory=list)
    spans: list[Any] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        content = await request.read()
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self.status != 200:
            return web.Response(status=self.status)
        if request.path == "/v1/logs":
            logs = ExportLogsServiceRequest.FromString(content)
            self.events += [one for each in logs.resource_logs for part in each.scope_logs for one in part.log_records]
        else:
            traces = ExportTraceServiceRequest.FromString(content)
            self.spans += [one for each in traces.resource_spans for part in each.scope_spans for one in part.spans]
        return web.Response()


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application()
    app.add_routes([web.post("/v1/logs", collector.take), web.post("/v1/traces", collector.take)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        await runner.cleanup()


def attributes(one: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in one.attributes}


def later():
    return NOON.replace(hour=14)


async def send_all(engine: AsyncEngine, config: Config) -> None:
    async with open_work(engine, config, later) as work, httpx2.AsyncClient(trust_env=False) as client:
        assert config.otel is not None
        while await send_some(work, config.otel, client):
            pass


@pytest.fixture
async def desk(migrated_url: str) -> None:
    tags = {"tenant": "t1", "trace_id": TRACE, "parent_span_id": PARENT}
    traced = verdict("E", "D", 0, tags=tags, prompt_tokens=5, completion_tokens=7, total_us=1500)
    await ship(migrated_url, [traced, *(verdict("D", "D", n) for n in range(1, 6))])


async def test_each_coding_is_one_event_with_the_trace_of_its_client(
    desk: None, migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    async with collecting() as collector:
        text = f"otel: {{endpoint: '{collector.url}', headers: {{authorization: 'Bearer canary'}}}}\n"
        config = configuration(tmp_path, TRAFFIC + text)
        await run_once(config, engine, later)
        codings = await fetch(migrated_url, "SELECT exchange_id, coder FROM codings")
        await send_all(engine, config)
        await send_all(engine, config)  # nothing is left
        assert len(collector.events) == len(codings) == 6
        assert len(collector.spans) == 6
    assert {one["authorization"] for one in collector.headers} == {"Bearer canary"}
    assert {one["content-type"] for one in collector.headers} == {"application/x-protobuf"}
    assert {one.event_name for one in collector.events} == {"gen_ai.evaluation.result"}
    told = [attributes(one) for one in collector.events]
    assert {(one["biasmeter.exchange.id"], one["biasmeter.coder"]) for one in told} == {
        (str(row["exchange_id"]), row["coder"]) for row in codings
    }
    (event,) = (one for one in collector.events if one.trace_id.hex() == TRACE)
    (span,) = (one for one in collector.spans if one.trace_id.hex() == TRACE)
    assert span.parent_span_id.hex() == PARENT
    assert event.span_id == span.span_id
    assert (span.name, span.end_time_unix_nano - span.start_time_unix_nano) == ("chat gpt", 1_500_000)
    of_span, of_event = attributes(span), attributes(event)
    assert (of_span["gen_ai.operation.name"], of_span["gen_ai.usage.output_tokens"]) == ("chat", 7)
    assert of_event["gen_ai.evaluation.name"] == "biasmeter.endorsement"
    assert (of_event["gen_ai.evaluation.score.value"], of_event["biasmeter.selection"]) == (1.0, "E")
    # The others have traces of their own, and no text of a client is in any of it.
    assert len({one.trace_id for one in collector.spans}) == 6
    assert "Old people" not in str(collector.spans) + str(collector.events)


async def test_codings_wait_for_a_collector_that_is_away_and_are_dropped_if_it_refuses_them(
    desk: None, migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    async with collecting() as collector:
        config = configuration(tmp_path, TRAFFIC + f"otel: {{endpoint: '{collector.url}'}}\n")
        await run_once(config, engine, later)
        collector.status = 503
        with pytest.raises(CollectorError, match="HTTP 503"):
            await send_all(engine, config)
        collector.status = 200
        await send_all(engine, config)
        assert len(collector.events) == 6
        await fetch(migrated_url, "INSERT INTO unsent_codings SELECT exchange_id, coder FROM codings")
        collector.status = 400
        await send_all(engine, config)
        assert await fetch(migrated_url, "SELECT 1 FROM unsent_codings") == []
    await fetch(migrated_url, "INSERT INTO unsent_codings SELECT exchange_id, coder FROM codings")
    with pytest.raises(CollectorError, match="ConnectError"):
        await send_all(engine, config)


async def test_without_a_collector_nothing_is_put_down(
    desk: None, migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    await run_once(configuration(tmp_path, TRAFFIC), engine, later)
    assert await fetch(migrated_url, "SELECT 1 FROM unsent_codings") == []
    assert len(await fetch(migrated_url, "SELECT 1 FROM codings")) == 6


async def test_without_the_package_a_line_says_what_to_install(
    desk: None, engine: AsyncEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "auditor.export.otlp", None)  # as where its own import fails
    config = configuration(tmp_path, TRAFFIC + "otel: {endpoint: 'http://127.0.0.1:1'}\n")
    async with open_work(engine, config, later) as work:
        await repeat_sending(work)
    assert caplog.messages == ["otel: codings wait: run: pip install 'biasmeter[otel]', and restart the auditor"]
