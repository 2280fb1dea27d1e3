"""Behaviours 1 to 10: what of a request reaches the deployment, and what is refused before."""

import gzip
import json
from typing import Any

import aiohttp
import pytest
from support.clients.sdk_clients import Heard, Sdk
from support.clients.sdk_exercise import MESSAGES, PROMPT, lasting
from support.servers.llamacpp import LlamaCpp
from support.servers.product import Product, settings
from support.upstreams.scripted_upstream import Request, ScriptedUpstream

from auditor.domain.keys import new_secret

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/v1/chat/completions"
NARROW = new_secret()
LIMIT = 1 << 20


@pytest.fixture(scope="module")
def configuration(upstream: ScriptedUpstream, llamacpp: LlamaCpp, thorough: bool) -> dict[str, Any]:
    made = settings(upstream.url, workers=2 if thorough else 1, body_limit=LIMIT, forward_headers=["x-tenant"])
    made["deployments"].append({"name": "llamacpp", "base_url": llamacpp.url})
    made["routes"].append({"model": llamacpp.model, "deployments": ["llamacpp"]})
    return made


@pytest.fixture(scope="module")
def keys() -> dict[str, dict[str, Any]]:
    return {NARROW: {"models": ("gpt", "ordinary")}}


def calls(model: str) -> list[tuple[str, Any]]:
    """Every endpoint, as a stream too where there is one."""
    chat = {"model": model, "messages": MESSAGES, "temperature": 0, "max_tokens": 24}
    text = {"model": model, "prompt": PROMPT, "temperature": 0, "max_tokens": 24}
    response = {"model": model, "input": PROMPT, "temperature": 0, "max_output_tokens": 24}
    counted = {"stream": True, "stream_options": {"include_usage": True}}
    return [
        ("chat.completions.create", chat),
        ("chat.completions.create", chat | {"stream": True}),
        ("chat.completions.create", chat | counted),
        ("completions.create", text),
        ("completions.create", text | {"stream": True}),
        ("completions.create", text | counted),
        ("embeddings.create", {"model": model, "input": ["level", "tilted"]}),  # the SDKs ask for base64 then
        ("embeddings.create", {"model": model, "input": ["level", "tilted"], "encoding_format": "float"}),
        ("responses.create", response),
        ("responses.create", response | {"stream": True}),
    ]


def content(heard: Heard) -> Any:
    assert heard.failure is None
    return lasting(heard.value), lasting(heard.events)


@pytest.mark.parametrize(
    ("unpointed_sdk", "server"),
    [
        ("python", "scripted"),
        ("python", "llamacpp"),
        ("node", "scripted"),
        pytest.param("node", "llamacpp", marks=pytest.mark.slow),
    ],
    indirect=["unpointed_sdk"],
    scope="module",
)
async def test_01_every_endpoint_gives_an_unmodified_sdk_what_the_deployment_gives(
    sdk: Sdk, upstream: ScriptedUpstream, llamacpp: LlamaCpp, server: str
) -> None:
    url, model = (upstream.url, "ordinary") if server == "scripted" else (llamacpp.url, llamacpp.model)
    for call, argument in calls(model):
        through, direct = await sdk.ask(call, argument), await sdk.to(url).ask(call, argument)
        assert content(through) == content(direct), call
        assert bool(through.events) == bool(argument.get("stream"))
    assert model in {entry["id"] for entry in (await sdk.ask("models.list")).value["data"]}
    assert (await sdk.ask("models.retrieve", model)).value["id"] == model


async def arrived(upstream: ScriptedUpstream, sdk: Sdk, **body: Any) -> Request:
    """Ask for a chat completion; give the request as it reached the upstream."""
    heard = await sdk.chat(**body)
    assert heard.failure is None
    return upstream.requests[-1]


async def test_02_unknown_fields_and_the_spelling_of_a_body_reach_the_deployment_unchanged(
    sdk: Sdk, upstream: ScriptedUpstream
) -> None:
    odd = {
        "model": "ordinary",
        "temperature": 0.70,
        "chat_template_kwargs": {"enable_thinking": False},
        "x_big": 12345678901234567890,
        "x_text": "水平 🌍 é",
    }
    through = await arrived(upstream, sdk, **odd)
    direct = await arrived(upstream, sdk.to(upstream.url), **odd)
    assert through.payload["chat_template_kwargs"] == {"enable_thinking": False}
    assert through.body == direct.body


@pytest.mark.parametrize("stream", [False, True])
async def test_03_an_alias_exchanges_the_model_and_nothing_else_and_the_answers_model_stays(
    sdk: Sdk, upstream: ScriptedUpstream, stream: bool
) -> None:
    more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    heard = await sdk.chat("gpt", x_nested={"model": "gpt"}, **more)
    through = upstream.requests[-1].body
    direct = (await arrived(upstream, sdk.to(upstream.url), model="gpt", x_nested={"model": "gpt"}, **more)).body
    # The first is the request's own; the nested one stays.
    assert through == direct.replace(b'"gpt"', b'"ordinary"', 1)
    answers = heard.events if stream else [heard.value]
    assert {answer["model"] for answer in answers} == {"ordinary"}


async def test_04_the_clients_key_and_undeclared_headers_do_not_cross(sdk: Sdk, upstream: ScriptedUpstream) -> None:
    asked = await arrived(
        upstream, sdk.with_headers(x_secret="canary-4", x_tenant="north", cookie="a=canary-4"), model="ordinary"
    )
    assert asked.header("authorization") == "Bearer sk-upstream"
    assert asked.header("x-tenant") == "north"
    told = json.dumps(asked.headers)
    assert "canary-4" not in told
    assert sdk.key not in told


async def test_05_the_sdks_own_headers_stay_and_a_trace_is_continued(sdk: Sdk, upstream: ScriptedUpstream) -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    direct = await arrived(upstream, sdk.to(upstream.url), model="ordinary")
    assert any(name.lower().startswith("x-stainless-") for name, _ in direct.headers)
    asked = await arrived(upstream, sdk.with_headers(traceparent=f"00-{trace}-{parent}-01"), model="ordinary")
    assert not any(name.lower().startswith("x-stainless-") for name, _ in asked.headers)
    _, same, new, flags = (asked.header("traceparent") or "").split("-")
    assert (same, flags) == (trace, "01")
    assert new != parent


async def test_06_the_request_id_is_the_clients_or_a_new_one_also_on_errors(sdk: Sdk) -> None:
    named = sdk.with_headers(x_request_id="mine-6")
    assert (await named.chat("ordinary")).request_id == "mine-6"
    assert (await named.chat("ordinary", stream=True)).request_id == "mine-6"
    first, second = await sdk.chat("ordinary"), await sdk.chat("ordinary")
    assert (first.request_id or "").startswith("req_")
    assert first.request_id != second.request_id
    for asked, expected in ((named, "mine-6"), (sdk, "req_")):
        failure = (await asked.ask("models.retrieve", "nowhere")).failure
        assert failure is not None
        assert (failure.request_id or "").startswith(expected)


async def test_07_a_body_over_the_limit_is_413_and_never_reaches_a_deployment(
    sdk: Sdk, upstream: ScriptedUpstream
) -> None:
    before = upstream.received
    failure = (await sdk.chat("ordinary", user="x" * LIMIT)).failure
    assert failure is not None
    assert (failure.status, failure.body["code"]) == (413, "request_too_large")
    assert failure.body["type"] == "invalid_request_error"
    assert upstream.received == before
    assert (await sdk.chat("ordinary", user="x" * (LIMIT - 1000))).failure is None


async def told(gateway: Product, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession(headers=headers) as client,
        client.post(gateway.url + CHAT, data=body) as answer,
    ):
        return answer.status, (await answer.json())["error"]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "nonsense"])
async def test_08_a_compressed_body_is_415_by_name(
    gateway: Product, raw_headers: dict[str, str], encoding: str
) -> None:
    body = gzip.compress(b'{"model": "ordinary"}')
    status, error = await told(gateway, body, raw_headers | {"content-encoding": encoding})
    assert (status, error["code"], error["param"]) == (415, "unsupported_encoding", "content-encoding")


@pytest.mark.parametrize(
    ("body", "param"), [(b"{", None), (b"[]", None), (b'["model"]', None), (b"", None), (b'{"messages":[]}', "model")]
)
async def test_09_a_body_that_is_no_request_is_400_and_says_what_is_missing(
    gateway: Product, raw_headers: dict[str, str], body: bytes, param: str | None
) -> None:
    status, error = await told(gateway, body, raw_headers)
    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", param)


async def test_09_an_sdk_that_names_no_model_raises_bad_request(sdk: Sdk) -> None:
    failure = (await sdk.ask("/chat/completions", {"messages": []})).failure
    assert failure is not None
    assert (failure.kind, failure.body["param"]) == ("BadRequestError", "model")


async def test_10_the_models_are_those_that_the_key_may_use(sdk: Sdk, llamacpp: LlamaCpp) -> None:
    everything = {entry["id"] for entry in (await sdk.ask("models.list")).value["data"]}
    assert {"gpt", "ordinary", llamacpp.model} < everything
    narrow = sdk.with_key(NARROW)
    assert [entry["id"] for entry in (await narrow.ask("models.list")).value["data"]] == ["gpt", "ordinary"]
    assert (await narrow.ask("models.retrieve", "gpt")).value == (await sdk.ask("models.retrieve", "gpt")).value
    for asked, model in ((narrow, llamacpp.model), (sdk, "nowhere")):
        failure = (await asked.ask("models.retrieve", model)).failure
        assert failure is not None
        assert (failure.kind, failure.status) == ("NotFoundError", 404)
