"""What is served where, and how a whole answer looks on the wire."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.servers.gateway_app import Served, served
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream

from auditor.domain.keys import Key, Right, hash_secret
from gateway.http.answer import write_fields

BODY = b'{"model": "m", "messages": []}'


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as up:
        yield up


@pytest.fixture
async def gateway(upstream: ScriptedUpstream, tmp_path: Path) -> AsyncIterator[Served]:
    settings = {
        "deployments": [{"name": "a", "base_url": upstream.url}],
        "routes": [{"model": "org/m", "deployments": ["a"]}, {"model": "m", "deployments": ["a"]}],
    }
    async with served(settings, tmp_path) as made:
        yield made


async def wire(gateway: Served, request: bytes) -> tuple[bytes, bytes]:
    """Send bytes; give the head and the rest of what comes until the connection ends."""
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    rest = await reader.read()
    writer.close()
    return head, rest


def post(*lines: str, version: str = "1.1", body: bytes = BODY) -> bytes:
    head = [f"POST /v1/chat/completions HTTP/{version}", "host: 127.0.0.1", f"content-length: {len(body)}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize("path", ["/v1", "/v1/chat", "/v1/chat/completions/", "/v1/models/", "/v2/models"])
async def test_what_is_nowhere_is_not_found(gateway: Served, path: str) -> None:
    async with gateway.client.get(gateway.url + path) as answer:
        assert answer.status == 404
        assert (await answer.json())["error"]["code"] == "unknown_url"
        assert answer.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/v1/chat/completions", "POST"), ("POST", "/v1/models", "GET,HEAD"), ("PUT", "/v1/models/m", "GET,HEAD")],
)
async def test_a_method_that_is_not_allowed_is_told_which_are(
    gateway: Served, method: str, path: str, allowed: str
) -> None:
    async with gateway.client.request(method, gateway.url + path) as answer:
        assert (answer.status, answer.headers["allow"]) == (405, allowed)
        assert (await answer.json())["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/v1/models?limit=1", "/v1/model%73", "/v1/models/org/m", "/v1/models/org%2Fm"])
async def test_a_path_is_known_however_it_is_written(gateway: Served, path: str) -> None:
    host, port = gateway.url.removeprefix("http://").split(":")
    request = f"GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n\r\n"
    head, _ = await wire(gateway, request.encode())
    assert head.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("path", ["chat/completions", "completions", "embeddings", "responses", "rerank", "models"])
async def test_a_key_for_the_console_reaches_no_deployment(
    upstream: ScriptedUpstream, tmp_path: Path, path: str
) -> None:
    person = Key(id="key_1", name="ann", hash=hash_secret("sk-ann"), rights=frozenset({Right.ADMIN}))
    settings = {
        "deployments": [{"name": "a", "base_url": upstream.url}],
        "routes": [{"model": "*", "deployments": ["a"]}],
    }
    async with served(settings, tmp_path, keys=[person]) as gateway:
        method, body = ("GET", None) if path == "models" else ("POST", BODY)
        headers = {"authorization": "Bearer sk-ann", "content-type": "application/json"}
        for _ in range(3):  # the head is remembered at the second time, if it is
            async with gateway.client.request(method, f"{gateway.url}/v1/{path}", data=body, headers=headers) as answer:
                assert answer.status == 403
                assert (await answer.json())["error"]["code"] == "key_not_for_clients"
    assert upstream.requests == []


async def test_a_head_is_a_get_without_the_body(gateway: Served) -> None:
    async with gateway.client.head(gateway.url + "/healthz") as answer:
        assert answer.status == 200
        assert await answer.read() == b""


async def test_a_client_that_waits_to_be_asked_for_the_body_is_asked(gateway: Served) -> None:
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(post("expect: 100-continue", "connection: close").removesuffix(BODY))
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(BODY)
    assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")
    writer.close()


async def test_a_client_that_sends_the_body_unasked_is_not_asked_for_it(gateway: Served) -> None:
    head, _ = await wire(gateway, post("expect: 100-continue", "connection: close"))
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")


async def test_nothing_else_can_be_expected(gateway: Served) -> None:
    head, _ = await wire(gateway, post("expect: wonders", "connection: close"))
    assert head.startswith(b"HTTP/1.1 417 ")


@pytest.mark.parametrize(
    ("version", "asked", "said"),
    [
        ("1.1", "connection: close", b"connection: close"),
        ("1.0", "accept: */*", None),
        ("1.0", "connection: keep-alive", b"connection: keep-alive"),
        ("1.1", "accept: */*", None),
    ],
)
async def test_the_connection_of_an_answer_ends_when_the_client_wants_it(
    gateway: Served, version: str, asked: str, said: bytes | None
) -> None:
    stays = (version, said) == ("1.1", None) or said == b"connection: keep-alive"
    last = post("connection: close", version=version) if stays else b""
    head, rest = await wire(gateway, post(asked, version=version) + last)
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 200 OK"
    assert [line for line in lines if line.startswith(b"connection:")] == ([said] if said else [])
    (length,) = [int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")]
    assert json.loads(rest[:length])["object"] == "chat.completion"
    assert rest[length : length + 5] == (b"HTTP/" if stays else b"")


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\nx: y", "a\rb", "a\0b"])
def test_no_header_field_ends_its_line(value: str) -> None:
    with pytest.raises(ValueError, match="line break or a NUL"):
        write_fields({"openai-version": value})
