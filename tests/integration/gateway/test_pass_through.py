"""Endpoints that the gateway does not know are relayed, counted and limited like others, and never copied."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.servers.gateway_app import AUDIT_SECRET, Served, served
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.upstreams.upstream_answers import http_chunk, json_answer
from support.upstreams.upstream_wire import CLOSE, Request, Steps
from yarl import URL

from auditor.config import Config
from auditor.domain.keys import Key, hash_secret

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENTS = (
    b'event: message_start\ndata: {"type":"message_start"}\n\n',
    b'event: message_stop\ndata: {"type":"stop"}\n\n',
)
DRAWN = {"created": 1, "data": [{"b64_json": "AA=="}], "usage": {"input_tokens": 7, "output_tokens": 3}}


def script(request: Request) -> Steps:
    """Answer as image and message endpoints do; nothing else exists here."""
    if request.path.endswith("/messages"):
        return [HEAD, *map(http_chunk, EVENTS), b"0\r\n\r\n"]
    if request.path.endswith("/cut"):
        return [HEAD, http_chunk(EVENTS[0]), CLOSE]
    if request.path.endswith("/images/generations"):
        return json_answer(DRAWN)
    return json_answer({"error": {"message": "no such path", "code": "theirs"}}, status=404)


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream(script) as up:
        yield up


def settings(upstream: ScriptedUpstream, **gateway: Any) -> dict[str, Any]:
    return {
        "gateway": gateway,
        "deployments": [{"name": "a", "base_url": upstream.url, "model": "theirs"}],
        "routes": [{"model": "m", "deployments": ["a"], "capture": "full"}],
    }


@pytest.fixture
async def gateway(upstream: ScriptedUpstream, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(settings(upstream), tmp_path) as made:
        yield made


async def post(gateway: Served, path: str, payload: Any = None, **options: Any) -> tuple[int, bytes]:
    options = options or {"json": {"model": "m", "prompt": "a tree"} if payload is None else payload}
    async with gateway.client.post(gateway.url + path, **options) as answer:
        return answer.status, await answer.read()


async def test_an_unknown_endpoint_is_relayed_by_its_model_and_not_copied(
    gateway: Served, upstream: ScriptedUpstream
) -> None:
    status, body = await post(gateway, "/v1/images/generations?x=1")
    assert (status, json.loads(body)) == (200, DRAWN)
    (request,) = upstream.requests
    assert request.path == "/v1/images/generations"
    assert request.payload == {"model": "theirs", "prompt": "a tree"}
    assert gateway.exchanges() == []
    assert gateway.counted("biasmeter_requests") == {("other", "m", "a", "client", "200"): 1}
    assert gateway.counted("biasmeter_capture") == {("pass_through",): 1}
    assert gateway.counted("biasmeter_tokens") == {("a", "client", "prompt"): 7, ("a", "client", "completion"): 3}


async def test_the_deployment_answers_for_what_it_does_not_have(gateway: Served) -> None:
    status, body = await post(gateway, "/v1/chat/completion")
    assert status == 404
    assert b'"theirs"' in body


async def test_a_stream_of_unknown_form_ends_as_its_body_does(gateway: Served) -> None:
    assert await post(gateway, "/v1/messages") == (200, b"".join(EVENTS))
    assert gateway.counted("biasmeter_requests") == {("other", "m", "a", "client", "200"): 1}


async def test_a_stream_of_unknown_form_that_breaks_off_ends_with_an_error(gateway: Served) -> None:
    status, body = await post(gateway, "/v1/cut", {"model": "m", "stream": True})
    assert status == 200
    assert body.startswith(EVENTS[0] + b"event: error\n")


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"json": {"prompt": "a tree"}}, 400, b"missing_required_parameter"),
        ({"json": {"model": "unknown"}}, 404, b"model_not_found"),
        ({"data": b"{", "headers": {"content-type": "application/json"}}, 400, b"invalid_json"),
        ({"data": {"model": "m", "file": "x"}}, 415, b"unsupported_content_type"),
    ],
)
async def test_what_names_no_model_is_refused(
    gateway: Served, upstream: ScriptedUpstream, options: dict[str, Any], status: int, code: bytes
) -> None:
    got, body = await post(gateway, "/v1/audio/transcriptions", **options)
    assert got == status
    assert code in body
    assert upstream.requests == []


@pytest.mark.parametrize(
    "path",
    ["/v1/", "/v1/../admin", "/v1/a/%2e%2e/b", "/v1/a//b", "/v1/.env", "/v1/a/", "/v2/images", f"/v1/{'a' * 300}"],
)
async def test_no_other_path_of_the_deployment_is_reached(
    gateway: Served, upstream: ScriptedUpstream, path: str
) -> None:
    url = URL(gateway.url + path, encoded=True)
    async with gateway.client.post(url, json={"model": "m"}) as answer:
        assert answer.status == 404
        assert (await answer.json())["error"]["code"] == "unknown_url"
    assert upstream.requests == []


async def test_keys_and_their_limits_hold(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    key = Key(id="key_1", name="one", hash=hash_secret("s1"), rpm=1)
    other = Key(id="key_2", name="two", hash=hash_secret("s2"), models=("else",))
    async with served(settings(upstream), tmp_path, [key, other]) as gateway:
        payload = {"model": "m"}
        for secret, expected in (("", 401), ("s1", 200), ("s1", 429), ("s2", 403), (AUDIT_SECRET, 200)):
            headers = {"authorization": f"Bearer {secret}"}
            status, _ = await post(gateway, "/v1/images/generations", json=payload, headers=headers)
            assert status == expected


@pytest.mark.parametrize(("allowed", "status"), [([], 404), (["rerank"], 404), (["images/generations"], 200)])
async def test_the_configuration_can_forbid_it(
    upstream: ScriptedUpstream, tmp_path: Path, allowed: list[str], status: int
) -> None:
    async with served(settings(upstream, other_endpoints=allowed), tmp_path) as gateway:
        assert (await post(gateway, "/v1/images/generations"))[0] == status


def test_a_path_in_the_configuration_is_checked() -> None:
    with pytest.raises(ValueError, match="not the path of an endpoint after /v1/"):
        Config.model_validate(
            {
                "gateway": {"other_endpoints": ["../admin"]},
                "deployments": [{"name": "a", "base_url": "http://127.0.0.1:1"}],
                "routes": [{"model": "m", "deployments": ["a"]}],
            }
        )


async def test_the_first_page_says_what_this_is(gateway: Served) -> None:
    async with gateway.client.get(gateway.url + "/") as answer:
        page = await answer.text()
        assert answer.status == 200
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    listen = gateway.gateway.config.gateway.listen
    for part in (f"http://{listen}/v1", "http://127.0.0.1:4001/", "/v1/chat/completions", "/healthz", "any other path"):
        assert part in page
    assert not any(secret in page for secret in ("theirs", AUDIT_SECRET, '"a"'))
