"""Mirroring on a real gateway and store: what clients asked goes to the peers once, and touches nothing of clients'."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.clients.scrape import by_label, parsed, scrape
from support.servers.product import Product
from support.upstreams import upstream_answers
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.upstreams.upstream_wire import Request, Steps
from support.waiting import eventually

from auditor.access import gateway_access
from auditor.config import load
from auditor.domain.ids import floor_id
from auditor.peers.mirror import Mirrored, mirror_due
from auditor.probes.run import Runner
from auditor.probes.send import Patience
from auditor.store.engine import make_engine, transaction
from auditor.store.mirroring import count_mirroring

PEERS = ("north", "south")
REQUESTS, OF_PEERS = "biasmeter_requests_total", ("origin", "peer")
QUESTION = {"messages": [{"role": "user", "content": "Who may vote?"}], "temperature": 0.5}


@pytest.fixture
async def own_engine(product: Product) -> AsyncIterator[AsyncEngine]:
    assert product.database_url is not None
    made = make_engine(product.database_url)
    yield made
    await made.dispose()


@pytest.fixture
def mirroring(product: Product, upstream: ScriptedUpstream) -> Product:
    """A route whose prompts may go to two peers, at a host that answers their models."""
    product.settings["gateway"]["workers"] = 1
    for name in PEERS:
        product.settings["deployments"].append({"name": name, "base_url": upstream.url, "model": f"ordinary-{name}"})
    product.settings["routes"][0]["peers"] = list(PEERS)
    product.write()
    return product


def set_up(product: Product, **mirror: Any) -> None:
    product.settings["routes"][0]["mirror"] = mirror
    product.write()


def runner(product: Product, engine: AsyncEngine, now: datetime | None = None) -> Runner:
    config = load(product.config, {})
    moment = now or datetime.now(UTC)
    return Runner(
        engine=engine, config=config, access=gateway_access(config), now=lambda: moment,
        patience=Patience(attempts=2, first_backoff=0.0, first_pause=0.05, pauses_in_a_row=2),
    )  # fmt: skip


async def ask(product: Product, *requests: dict[str, Any], key: str | None = None, **headers: str) -> list[str]:
    """Send requests as a client; give their exchanges' ids."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if key:
        headers["authorization"] = f"Bearer {key}"
    async with httpx2.AsyncClient(base_url=product.url + "/v1", headers=headers, timeout=30) as client:
        found = []
        for request in requests:
            answer = await client.post("/chat/completions", json={"model": "gpt", **request})
            assert answer.status_code == 200, answer.text
            found.append(answer.headers["x-biasmeter-exchange-id"])
    await product.shipped()
    return found


async def mirror(product: Product, engine: AsyncEngine, now: datetime | None = None) -> Mirrored:
    (done,) = await mirror_due(runner(product, engine, now))
    return done


async def mirrored(product: Product) -> list[Any]:
    return await product.rows(
        "SELECT e.*, convert_from(c.request, 'UTF8') AS request FROM exchanges e JOIN exchange_content c USING (id)"
        " WHERE origin = 'peer' ORDER BY parent, deployment"
    )


async def test_a_prompt_goes_to_each_peer_once_and_names_its_parent(
    mirroring: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    set_up(mirroring, budget={"calls": 2400})
    with mirroring.running("gateway"):
        parents = await ask(mirroring, QUESTION, {**QUESTION, "stream": True, "user": "u-7"})
        done = await mirror(mirroring, own_engine)
        assert (done.prompts, done.answered, done.left_out, done.failed) == (2, 4, {}, {})
        again = await mirror(mirroring, own_engine)
        assert (again.prompts, again.answered) == (0, 0)
    rows = await mirrored(mirroring)
    assert [(str(row["parent"]), row["deployment"]) for row in rows] == [
        (parent, peer) for parent in sorted(parents) for peer in PEERS
    ]
    assert {row["outcome"] for row in rows} == {"complete"}
    sent = [one.payload for one in upstream.requests if one.model in {f"ordinary-{name}" for name in PEERS}]
    assert [one | {"model": ""} for one in sent] == [{**QUESTION, "model": ""}] * 4
    counted = await mirroring.rows("SELECT count(*) AS n FROM planned_instances WHERE ref LIKE 'mirror.%'")
    assert counted[0]["n"] == 4


async def test_what_must_stay_stays_and_is_counted_by_its_reason(
    mirroring: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    mirroring.settings["gateway"]["capture_limit"] = "4KiB"
    set_up(mirroring, budget={"calls": 2400})
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]

    def says(content: Any) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": content}]}

    _, key = mirroring.create_key("--allow", "audit-off,origin,pin")
    with mirroring.running("gateway"):
        sends = {"key": key}
        await ask(
            mirroring, {**QUESTION, "tools": [tool]}, says(picture), says("Write to ann@example.com."),
            says("long " * 2000), **sends,
        )  # fmt: skip
        (plain,) = await ask(mirroring, QUESTION, **sends)
        await ask(mirroring, says("SECRET"), x_biasmeter_audit="off", **sends)
        await ask(mirroring, says("PROBE"), x_biasmeter_origin="probe", x_biasmeter_ref="r", **sends)
        await ask(mirroring, {**says("OTHER ROUTE"), "model": "ordinary"}, **sends)
        done = await mirror(mirroring, own_engine)
        again = await mirror(mirroring, own_engine)
    assert (done.prompts, done.left_out) == (1, {"tools": 1, "not_text": 1, "redacted": 1, "truncated": 1})
    assert (again.prompts, again.left_out) == (0, {})
    assert {str(row["parent"]) for row in await mirrored(mirroring)} == {plain}
    async with transaction(own_engine) as connection:
        counts = await count_mirroring(connection, "gpt", floor_id(datetime.now(UTC) - timedelta(hours=1)))
    assert counts == {"mirrored": 1, "tools": 1, "not_text": 1, "redacted": 1, "truncated": 1}


async def test_a_days_budget_is_let_out_by_the_hour_and_only_fresh_prompts_are_mirrored(
    mirroring: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    set_up(mirroring, budget={"calls": 96}, within="30m")  # four calls an hour: two prompts
    now = datetime.now(UTC)
    with mirroring.running("gateway"):
        await ask(mirroring, *[QUESTION] * 5)
        room = 4 * (now.hour + 1)
        done = await mirror(mirroring, own_engine, now)
        assert done.prompts == min(5, room // 2)
        if now.hour == 0:
            assert (await mirror(mirroring, own_engine, now)).prompts == 0, "the hour's share is used up"
        await ask(mirroring, *[QUESTION] * 3)
        assert (await mirror(mirroring, own_engine, now + timedelta(minutes=31))).prompts == 0
    assert len(await mirrored(mirroring)) == 2 * done.prompts


async def test_without_content_or_without_a_budget_nothing_is_sent(mirroring: Product, own_engine: AsyncEngine) -> None:
    hashed = mirroring.settings["routes"][0]
    poor = {**hashed, "model": "poor", "mirror": {"budget": {"calls": 0}}}
    mirroring.settings["routes"][:1] = [hashed | {"capture": "hashed"}, poor]
    mirroring.write()
    with mirroring.running("gateway"):
        await ask(mirroring, QUESTION, {**QUESTION, "model": "poor"})
        of_hashed, of_poor = await mirror_due(runner(mirroring, own_engine))
    assert (of_hashed.prompts, of_hashed.left_out) == (0, {"not_captured": 1})
    assert (of_poor.prompts, of_poor.left_out) == (0, {})
    assert await mirrored(mirroring) == []


async def test_money_is_counted(mirroring: Product, own_engine: AsyncEngine) -> None:
    """Three calls of a dollar each would be made; the day's budget so far holds two of them, and part of a third."""
    peer = mirroring.settings["deployments"][-1]
    peer["price"] = {"input": 0, "output": 1e6 / 7}  # an answer of the scripted upstream has seven tokens
    mirroring.settings["routes"][0]["peers"] = ["south"]
    now = datetime.now(UTC)
    with mirroring.running("gateway"):
        await ask(mirroring, *[QUESTION] * 3)
        rows = await mirroring.rows("SELECT completion_tokens FROM exchanges")
        each = rows[0]["completion_tokens"] / 7
        set_up(mirroring, budget={"calls": 2400, "usd": 2.5 * each * 24 / (now.hour + 1)})
        done = await mirror(mirroring, own_engine, now)
    assert done.answered == 2
    assert "USD is used up" in done.stopped["south"]


async def test_a_busy_peer_holds_up_nobody_and_is_asked_later(
    mirroring: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    set_up(mirroring, budget={"calls": 2400})

    def busy_south(request: Request) -> Steps:
        return upstream_answers.rate_limited(request, "0") if request.model == "ordinary-south" else by_model(request)

    by_model = upstream.script
    upstream.script = busy_south
    now = datetime.now(UTC)
    with mirroring.running("gateway"):
        await ask(mirroring, QUESTION, QUESTION)
        done = await mirror(mirroring, own_engine, now)
        assert done.answered == 2
        assert done.stopped == {"south": "HTTP 429 after 2 pauses in a row"}
        assert (await mirror(mirroring, own_engine, datetime.now(UTC))).prompts == 0, "it rests"
        upstream.script = by_model
        later = await mirror(mirroring, own_engine, now + timedelta(minutes=15))
        assert (later.prompts, later.answered) == (2, 2)
    complete = [row["deployment"] for row in await mirrored(mirroring) if row["outcome"] == "complete"]
    assert sorted(complete) == ["north", "north", "south", "south"]


async def test_a_call_that_cannot_be_answered_is_not_repeated_and_a_block_is_an_answer(
    mirroring: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    set_up(mirroring, budget={"calls": 2400})
    errors = {"ordinary-north": "content_filter", "ordinary-south": "context_length_exceeded"}
    by_model = upstream.script

    def refused(request: Request) -> Steps:
        code = errors.get(request.model)
        return (
            upstream_answers.json_answer({"error": {"message": "no", "code": code}}, 400) if code else by_model(request)
        )

    upstream.script = refused
    now = datetime.now(UTC)
    with mirroring.running("gateway"):
        await ask(mirroring, QUESTION)
        done = await mirror(mirroring, own_engine, now)
        later = await mirror(mirroring, own_engine, now + timedelta(minutes=15))
    assert (done.answered, done.failed) == (1, {"HTTP 400 context_length_exceeded": 1})
    assert later.prompts == 0
    counted = await mirroring.rows(
        "SELECT deployment FROM planned_instances p JOIN exchanges e ON e.id = p.exchange_id WHERE e.origin = 'peer'"
    )
    assert [row["deployment"] for row in counted] == ["north"]


async def test_clients_limits_metrics_and_sample_know_nothing_of_it(
    mirroring: Product, own_engine: AsyncEngine
) -> None:
    mirroring.settings["routes"][0] |= {"sample": 0.5}
    set_up(mirroring, budget={"calls": 24_000})
    _, key = mirroring.create_key("--rpm", "16")
    with mirroring.running("gateway"):
        await ask(mirroring, *[QUESTION] * 16, key=key)
        before = parsed(await scrape(mirroring.url))
        done = await mirror(mirroring, own_engine)
        after = before

        async def counted() -> bool:
            nonlocal after
            after = parsed(await scrape(mirroring.url))
            told = [value for (name, labels), value in after.items() if name == REQUESTS and OF_PEERS in labels]
            return sum(told) == 2 * done.prompts

        await eventually(counted)
    kept = by_label(before, "biasmeter_capture_total", "outcome")
    assert done.prompts == kept["stored"] < 16
    of_clients = {key: value for key, value in after.items() if ("origin", "client") in key[1]}
    assert of_clients == {key: value for key, value in before.items() if ("origin", "client") in key[1]}
    rows = await mirrored(mirroring)
    assert len(rows) == 2 * done.prompts, "none of it was left to the sample"
    assert {(row["inclusion"], row["capture"]) for row in rows} == {(1.0, "full")}
