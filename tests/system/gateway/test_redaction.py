"""Canaries sent through the whole product: the client gets them back, and nothing that is kept or told has them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
from support.servers.product import Product
from support.upstreams import upstream_answers
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.upstreams.upstream_answers import json_answer, sse
from support.upstreams.upstream_payloads import error
from support.upstreams.upstream_wire import Request, Steps

from gateway.exchange.sse import payloads

#: Without spaces, as they must be in a header.
CANARIES = {
    "sk-proj-Zq3vT8xLmN4pR7wK2yB9": "[key]",
    "mira.canary@example.com": "[email]",
    "+4915123456789": "[phone]",
    "4111111111111111": "[card]",
}
PATHS = ("chat/completions", "completions", "embeddings", "responses")


def echo(request: Request) -> Steps:
    """Answer with what was said; a stream in pieces of three characters. Models of certain names fail instead."""
    said = said_by(request)
    if request.model.startswith("failing"):
        return json_answer(error(f"I will not answer to {said}"), 400)
    if request.model.startswith("breaking"):
        return sse([upstream_answers.event(error(f"overloaded by {said}")), upstream_answers.DONE])
    pieces = [said[at : at + 3] for at in range(0, len(said), 3)]
    if request.stream:
        return sse(upstream_answers.events_of(request, pieces))
    if request.path.endswith("/embeddings"):
        return upstream_answers.unary(request)
    answer = upstream_answers.payloads
    responses = request.path.endswith("/responses")
    return json_answer(answer.response(request, said) if responses else answer.completion(request, said))


def said_by(request: Request) -> str:
    payload = request.payload
    said = payload.get("input") or payload.get("prompt") or payload["messages"][-1]["content"]
    assert isinstance(said, str)
    return said


def request_with(canary: str, path: str, model: str, *, stream: bool) -> dict[str, Any]:
    said = f"Please remember {canary}, will you?"
    call = {"id": "call_0", "type": "function", "function": {"name": "send", "arguments": json.dumps({"to": canary})}}
    text: dict[str, Any] = {
        "chat/completions": {
            "messages": [
                {"role": "system", "content": f"You serve {canary}."},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_0", "content": f'{{"found": "{canary}"}}'},
                {"role": "user", "content": said},
            ]
        },
        "completions": {"prompt": said},
    }.get(path, {"input": said})
    return {"model": model, "stream": stream, "user": canary, "metadata": {canary: canary}} | text


@dataclass(slots=True)
class Client:
    """A client with a key of its own, which is a canary too; `answers` are the bodies it got."""

    product: Product
    key: str
    answers: list[bytes]

    async def ask(self, path: str, payload: Any, **headers: str) -> tuple[int, bytes]:
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        every = {"authorization": f"Bearer {self.key}", "content-type": "application/json"} | headers
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.product.url}/v1/{path}", data=body, headers=every) as answer,
        ):
            self.answers.append(await answer.read())
            return answer.status, self.answers[-1]

    async def send(self, canary: str) -> None:
        """Send one canary in every place that a client has, to every endpoint."""
        headers = {
            "x-request-id": canary,
            "x-biasmeter-tags": f"team={canary}",
            "x-biasmeter-ref": canary,
            "user-agent": canary,
        }
        for path in PATHS:
            for stream in (False, True) if path != "embeddings" else (False,):
                status, body = await self.ask(path, request_with(canary, path, canary, stream=stream), **headers)
                assert status == 200
                assert path == "embeddings" or f"remember {canary}," in spoken(body), "the client gets all of it"
        for model in (f"failing {canary}", f"breaking {canary}"):
            await self.ask(PATHS[0], request_with(canary, PATHS[0], model, stream=True), **headers)


def spoken(body: bytes) -> str:
    """Put an answer's text together, of a stream or of one piece."""
    if not body.startswith((b"data:", b"event:")):
        return body.decode()
    events = [json.loads(payload) for payload in payloads(body) if payload != b"[DONE]"]
    told = [event.get("delta", "") for event in events]
    for event in events:
        told += [
            choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in event.get("choices", ())
        ]
    return "".join(told)


def readings(value: Any) -> Iterator[str]:
    """Give a stored value as it could be read: as it is, without separators, and as the text of a stream."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    yield text
    yield text.replace(" ", "").replace("\\", "")
    if isinstance(value, bytes) and value.startswith((b"data:", b"event:")):
        yield spoken(value)


def assert_clean(value: Any, where: str, *canaries: str) -> None:
    for reading in readings(value):
        for canary in (*CANARIES, *canaries):
            assert canary not in reading, f"{canary} in {where}"


async def columns(product: Product) -> list[tuple[str, list[Any]]]:
    """Read every column of every table."""
    tables = await product.rows(
        "SELECT format('%I.%I', table_schema, table_name) AS place"
        " FROM information_schema.tables WHERE table_schema NOT IN ('information_schema', 'pg_catalog')"
    )
    found = []
    connection = await asyncpg.connect(product.database_url)
    try:
        for (place,) in tables:
            query = await connection.prepare(f"SELECT * FROM {place}")
            rows = await query.fetch()
            for number, column in enumerate(query.get_attributes()):
                found.append((f"{place}.{column.name}", [row[number] for row in rows]))
    finally:
        await connection.close()
    return found


async def told_by_http(product: Product) -> dict[str, bytes]:
    """Fetch all that the gateway and the auditor tell anybody about exchanges."""
    urls = [product.url + "/metrics", product.api + "/metrics", product.api + "/api/exchanges?limit=1000"]
    urls += [f"{product.api}/api/exchanges/{number}" for number in await product.stored_ids()]
    told = {}
    async with aiohttp.ClientSession() as session:
        for url in urls:
            async with session.get(url) as answer:
                assert answer.status == 200, url
                told[url] = await answer.read()
    return told


async def test_no_canary_is_kept_or_told(product: Product, upstream: ScriptedUpstream) -> None:
    upstream.script = echo
    product.settings["gateway"] |= {"tags": ["team"], "workers": 1}
    product.write()
    _, secret = product.create_key("--allow", "pin,origin,audit-off")
    _, other_secret = product.create_key("--models", "gpt")
    client, other = Client(product, secret, []), Client(product, other_secret, [])
    with product.running("gateway") as gateway, product.running("auditor", until="listening on") as auditor:
        for canary in (*CANARIES, secret):
            await client.send(canary)
            for wrong in ({"model": "unknown"}, b"{", {"model": 1}):
                await other.ask(PATHS[0], wrong)
        await Client(product, "sk-bias-unknown", other.answers).ask(PATHS[0], {"model": "gpt"})
        await product.shipped()
        told = await told_by_http(product)
    for place, values in await columns(product):
        for value in values:
            assert_clean(value, place, secret)
    for where, body in told.items():
        assert_clean(body, where, secret)
    for body in other.answers:
        assert_clean(body, "an answer to another client", secret)
    assert_clean(gateway.said() + auditor.said(), "the logs", secret)
    for path in files(product.data_dir):
        assert_clean(path.read_bytes(), str(path), secret)
    rows = await product.rows("SELECT redacted, model, tags::text FROM exchanges WHERE status = 200 ORDER BY id")
    sent = [CANARIES.get(canary, "[key]") for canary in (*CANARIES, secret) for _ in range(8)]
    assert [(row["redacted"], row["model"].split()[-1], json.loads(row["tags"])) for row in rows] == [
        (True, what, {"team": what}) for what in sent
    ]


async def test_no_canary_waits_in_the_spool(product: Product, upstream: ScriptedUpstream) -> None:
    """With the store away, all that was captured is on the disk, and nowhere else."""
    upstream.script = echo
    product.settings["store"]["url"] = "postgresql://nobody@127.0.0.1:1/nothing"
    product.settings["gateway"] |= {"auth": "open", "tags": ["team"], "workers": 1}
    product.write()
    client = Client(product, "none", [])
    with product.running("gateway") as gateway:
        for canary in CANARIES:
            for path in PATHS:
                payload = request_with(canary, path, canary, stream=path != "embeddings")
                await client.ask(path, payload, **{"x-request-id": canary, "x-biasmeter-tags": f"team={canary}"})
        assert product.spooled() > 0
        spooled = b"".join(path.read_bytes() for path in files(product.data_dir))
    assert all(what.encode() in spooled for what in CANARIES.values())
    assert_clean(spooled, "the spool")
    assert_clean(gateway.said(), "the log")


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
