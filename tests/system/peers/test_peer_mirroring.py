"""Mirroring on a real gateway and store: what clients asked goes to the peers once, and touches nothing of clients'."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.clients.scrape import Series, by_label, parsed, scrape
from support.servers.ports import held_port
from support.servers.product import Product, installation, settings
from support.stores.databases import Databases
from support.stores.postgres import apart
from support.upstreams import upstream_answers
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.upstreams.upstream_wire import Request, Steps
from support.waiting import eventually

from auditor.access import gateway_access
from auditor.config import load
from auditor.domain.ids import floor_id
from auditor.domain.keys import Key, Right, hash_secret, new_secret
from auditor.peers.mirror import Mirrored, mirror_due
from auditor.probes.run import Runner
from auditor.probes.send import Patience
from auditor.store.engine import make_engine, transaction
from auditor.store.keys import add_key
from auditor.store.mirroring import count_mirroring

PEERS = ("north", "south")
#: A client's key that may do everything, and one that allows 16 requests a minute.
KEY, LIMITED = new_secret(), new_secret()
REQUESTS, OF_PEERS = "biasmeter_requests_total", ("origin", "peer")
QUESTION = {"messages": [{"role": "user", "content": "Who may vote?"}], "temperature": 0.5}


@pytest.fixture
async def own_engine(product: Product) -> AsyncIterator[AsyncEngine]:
    assert product.database_url is not None
    made = make_engine(product.database_url)
    yield made
    await made.dispose()


@pytest.fixture(scope="module")
def shared_gateway(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Iterator[Product]:
    """A gateway with routes whose prompts may go to two peers; each captures or samples in its own way."""
    with held_port() as port, databases.fresh() as url:
        upstream_url = f"http://127.0.0.1:{port}/v1"
        made = settings(upstream_url, workers=1, capture_limit="4KiB")
        made["deployments"] += [{"name": name, "base_url": upstream_url, "model": f"ordinary-{name}"} for name in PEERS]
        made["routes"][0]["peers"] = list(PEERS)
        differ = ({"model": "hashed", "capture": "hashed"}, {"model": "poor"}, {"model": "sampled", "sample": 0.5})
        made["routes"][1:1] = [made["routes"][0] | each for each in differ]
        with installation(tmp_path_factory.mktemp("shared"), made, url) as product:
            apart(add_keys(url))
            with product.running("gateway"):
                yield product


async def add_keys(url: str) -> None:
    keys = (
        Key(
            id="key_1", name="all", hash=hash_secret(KEY), rights=frozenset({Right.AUDIT_OFF, Right.ORIGIN, Right.PIN})
        ),
        Key(id="key_2", name="limited", hash=hash_secret(LIMITED), rpm=16),
    )
    async with transaction(engine := make_engine(url)) as connection:
        for key in keys:
            await add_key(connection, key, datetime.now(UTC))
    await engine.dispose()


def set_up(product: Product, **mirrors: dict[str, Any]) -> None:
    """Mirror the named routes' prompts, and no others."""
    for route in product.settings["routes"]:
        if route["model"] in mirrors:
            route["mirror"] = mirrors[route["model"]]
        else:
            route.pop("peers", None)
    product.write()


def runner(product: Product, engine: AsyncEngine, now: datetime | None = None) -> Runner:
    config = load(product.config, {})
    moment = now or datetime.now(UTC)
    return Runner(
        engine=engine, config=config, access=gateway_access(config), now=lambda: moment,
        patience=Patience(attempts=2, first_backoff=0.0, first_pause=0.05, pauses_in_a_row=2),
    )  # fmt: skip


async def ask(product: Product, *requests: dict[str, Any], key: str = KEY, **headers: str) -> list[str]:
    """Send requests as a client; give their exchanges' ids."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
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
    await product.shipped()
    return await product.rows(
        "SELECT e.*, convert_from(c.request, 'UTF8') AS request FROM exchanges e JOIN exchange_content c USING (id)"
        " WHERE origin = 'peer' ORDER BY parent, deployment"
    )


async def test_a_prompt_goes_to_each_peer_once_and_names_its_parent(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    set_up(product, gpt={"budget": {"calls": 2400}})
    parents = await ask(product, QUESTION, {**QUESTION, "stream": True, "user": "u-7"})
    done = await mirror(product, own_engine)
    assert (done.prompts, done.answered, done.left_out, done.failed) == (2, 4, {}, {})
    again = await mirror(product, own_engine)
    assert (again.prompts, again.answered) == (0, 0)
    rows = await mirrored(product)
    assert [(str(row["parent"]), row["deployment"]) for row in rows] == [
        (parent, peer) for parent in sorted(parents) for peer in PEERS
    ]
    assert {row["outcome"] for row in rows} == {"complete"}
    sent = [one.payload for one in upstream.requests if one.model in {f"ordinary-{name}" for name in PEERS}]
    assert [one | {"model": ""} for one in sent] == [{**QUESTION, "model": ""}] * 4
    counted = await product.rows("SELECT count(*) AS n FROM planned_instances WHERE ref LIKE 'mirror.%'")
    assert counted[0]["n"] == 4


async def test_what_must_stay_stays_and_is_counted_by_its_reason(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    set_up(product, gpt={"budget": {"calls": 2400}})
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]

    def says(content: Any) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": content}]}

    await ask(
        product, {**QUESTION, "tools": [tool]}, says(picture), says("Write to ann@example.com."), says("long " * 2000)
    )
    (plain,) = await ask(product, QUESTION)
    await ask(product, says("SECRET"), x_biasmeter_audit="off")
    await ask(product, says("PROBE"), x_biasmeter_origin="probe", x_biasmeter_ref="r")
    await ask(product, {**says("OTHER ROUTE"), "model": "ordinary"})
    done = await mirror(product, own_engine)
    again = await mirror(product, own_engine)
    assert (done.prompts, done.left_out) == (1, {"tools": 1, "not_text": 1, "redacted": 1, "truncated": 1})
    assert (again.prompts, again.left_out) == (0, {})
    assert {str(row["parent"]) for row in await mirrored(product)} == {plain}
    async with transaction(own_engine) as connection:
        counts = await count_mirroring(connection, "gpt", floor_id(datetime.now(UTC) - timedelta(hours=1)))
    assert counts == {"mirrored": 1, "tools": 1, "not_text": 1, "redacted": 1, "truncated": 1}


async def test_a_days_budget_is_let_out_by_the_hour_and_only_fresh_prompts_are_mirrored(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    set_up(product, gpt={"budget": {"calls": 96}, "within": "30m"})  # four calls an hour: two prompts
    now = datetime.now(UTC)
    await ask(product, *[QUESTION] * 5)
    room = 4 * (now.hour + 1)
    done = await mirror(product, own_engine, now)
    assert done.prompts == min(5, room // 2)
    if now.hour == 0:
        assert (await mirror(product, own_engine, now)).prompts == 0, "the hour's share is used up"
    await ask(product, *[QUESTION] * 3)
    assert (await mirror(product, own_engine, now + timedelta(minutes=31))).prompts == 0
    assert len(await mirrored(product)) == 2 * done.prompts


async def test_without_content_or_without_a_budget_nothing_is_sent(product: Product, own_engine: AsyncEngine) -> None:
    set_up(product, hashed={}, poor={"budget": {"calls": 0}})
    await ask(product, {**QUESTION, "model": "hashed"}, {**QUESTION, "model": "poor"})
    of_hashed, of_poor = await mirror_due(runner(product, own_engine))
    assert (of_hashed.prompts, of_hashed.left_out) == (0, {"not_captured": 1})
    assert (of_poor.prompts, of_poor.left_out) == (0, {})
    assert await mirrored(product) == []


async def test_money_is_counted(product: Product, own_engine: AsyncEngine) -> None:
    """Three calls of a dollar each would be made; the day's budget so far holds two of them, and part of a third."""
    peer = product.settings["deployments"][-1]
    peer["price"] = {"input": 0, "output": 1e6 / 7}  # an answer of the scripted upstream has seven tokens
    product.settings["routes"][0]["peers"] = ["south"]
    now = datetime.now(UTC)
    await ask(product, *[QUESTION] * 3)
    rows = await product.rows("SELECT completion_tokens FROM exchanges")
    each = rows[0]["completion_tokens"] / 7
    set_up(product, gpt={"budget": {"calls": 2400, "usd": 2.5 * each * 24 / (now.hour + 1)}})
    done = await mirror(product, own_engine, now)
    assert done.answered == 2
    assert "USD is used up" in done.stopped["south"]


async def test_a_busy_peer_holds_up_nobody_and_is_asked_later(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    set_up(product, gpt={"budget": {"calls": 2400}})

    def busy_south(request: Request) -> Steps:
        return upstream_answers.rate_limited(request, "0") if request.model == "ordinary-south" else by_model(request)

    by_model = upstream.script
    upstream.script = busy_south
    now = datetime.now(UTC)
    await ask(product, QUESTION, QUESTION)
    done = await mirror(product, own_engine, now)
    assert done.answered == 2
    assert done.stopped == {"south": "HTTP 429 after 2 pauses in a row"}
    assert (await mirror(product, own_engine, datetime.now(UTC))).prompts == 0, "it rests"
    upstream.script = by_model
    later = await mirror(product, own_engine, now + timedelta(minutes=15))
    assert (later.prompts, later.answered) == (2, 2)
    complete = [row["deployment"] for row in await mirrored(product) if row["outcome"] == "complete"]
    assert sorted(complete) == ["north", "north", "south", "south"]


async def test_a_call_that_cannot_be_answered_is_not_repeated_and_a_block_is_an_answer(
    product: Product, upstream: ScriptedUpstream, own_engine: AsyncEngine
) -> None:
    set_up(product, gpt={"budget": {"calls": 2400}})
    errors = {"ordinary-north": "content_filter", "ordinary-south": "context_length_exceeded"}
    by_model = upstream.script

    def refused(request: Request) -> Steps:
        code = errors.get(request.model)
        return (
            upstream_answers.json_answer({"error": {"message": "no", "code": code}}, 400) if code else by_model(request)
        )

    upstream.script = refused
    now = datetime.now(UTC)
    await ask(product, QUESTION)
    done = await mirror(product, own_engine, now)
    later = await mirror(product, own_engine, now + timedelta(minutes=15))
    assert (done.answered, done.failed) == (1, {"HTTP 400 context_length_exceeded": 1})
    assert later.prompts == 0
    counted = await product.rows(
        "SELECT deployment FROM planned_instances p JOIN exchanges e ON e.id = p.exchange_id WHERE e.origin = 'peer'"
    )
    assert [row["deployment"] for row in counted] == ["north"]


def requests_of_peers(series: Series) -> float:
    return sum(value for (name, labels), value in series.items() if name == REQUESTS and OF_PEERS in labels)


async def test_clients_limits_metrics_and_sample_know_nothing_of_it(product: Product, own_engine: AsyncEngine) -> None:
    set_up(product, sampled={"budget": {"calls": 24_000}})
    first = parsed(await scrape(product.url))
    await ask(product, *[{**QUESTION, "model": "sampled"}] * 16, key=LIMITED)
    before = parsed(await scrape(product.url))
    done = await mirror(product, own_engine)
    after = before

    async def counted() -> bool:
        nonlocal after
        after = parsed(await scrape(product.url))
        return requests_of_peers(after) - requests_of_peers(first) == 2 * done.prompts

    await eventually(counted)
    kept, earlier = (by_label(each, "biasmeter_capture_total", "outcome").get("stored", 0) for each in (before, first))
    assert done.prompts == kept - earlier < 16
    of_clients = {key: value for key, value in after.items() if ("origin", "client") in key[1]}
    assert of_clients == {key: value for key, value in before.items() if ("origin", "client") in key[1]}
    rows = await mirrored(product)
    assert len(rows) == 2 * done.prompts, "none of it was left to the sample"
    assert {(row["inclusion"], row["capture"]) for row in rows} == {(1.0, "full")}
