"""Malformed requests, keys and headers: an error in OpenAI's shape that names the place; nothing lost, no traceback."""

import json
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.servers.product import Product
from support.waiting import eventually
from yarl import URL

CHAT = "/v1/chat/completions"


async def ask(
    product: Product, path: str = CHAT, method: str = "POST", **options: Any
) -> tuple[int, Any, dict[str, str]]:
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, product.url + path, **options) as answer,
    ):
        told = json.loads(await answer.read())
        return answer.status, told["error"], {name.lower(): value for name, value in answer.headers.items()}


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        (b"", 400, "invalid_json", None),
        (b"{", 400, "invalid_json", None),
        (b"not json", 400, "invalid_json", None),
        (b'{"model": "gpt"', 400, "invalid_json", None),
        (b'\xff\xfe{"model": "gpt"}', 400, "invalid_json", None),
        (b"[]", 400, "invalid_json", None),
        (b'"gpt"', 400, "invalid_json", None),
        (b"null", 400, "invalid_json", None),
        (b"{}", 400, "missing_required_parameter", "model"),
        (b'{"messages": []}', 400, "missing_required_parameter", "model"),
        (b'{"model": 1}', 400, "invalid_type", "model"),
        (b'{"model": null}', 400, "invalid_type", "model"),
        (b'{"model": ""}', 400, "invalid_value", "model"),
        (b'{"model": "gpt", "stream": "yes"}', 400, "invalid_type", "stream"),
        (b'{"model": "gpt", "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", 400, "invalid_json", None),
    ],
)
async def test_bodies(serving: Product, body: bytes, status: int, code: str, param: str | None) -> None:
    got, error, headers = await ask(serving, data=body)
    assert (got, error["code"], error["param"], error["type"]) == (status, code, param, "invalid_request_error")
    assert headers["x-should-retry"] == "false"
    assert len(error["message"]) < 300


def answer_to(url: str, head: str, body: bytes) -> bytes:
    """Send the beginning of a request, and give the status line of the answer."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: {host}\r\n{head}\r\n\r\n".encode() + body)
        return connection.recv(4096).partition(b"\r\n")[0]


def test_a_body_that_says_it_is_over_the_limit_is_refused_unread(serving: Product) -> None:
    assert answer_to(serving.url, f"content-length: {64 << 20}", b"") == b"HTTP/1.1 413 Request Entity Too Large"


def test_a_body_that_grows_over_the_limit_is_refused_there(serving: Product) -> None:
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    body = chunk * ((33 << 20) // 65536)  # its end never comes
    assert answer_to(serving.url, "transfer-encoding: chunked", body) == b"HTTP/1.1 413 Request Entity Too Large"


async def test_compressed_bodies_are_refused_by_name(serving: Product) -> None:
    status, error, _ = await ask(serving, data=b"{}", headers={"content-encoding": "gzip"})
    assert (status, error["code"], error["param"]) == (415, "unsupported_encoding", "content-encoding")


@pytest.mark.parametrize(
    ("path", "method", "status", "code"),
    [
        ("/v1/chat/completion", "GET", 404, "unknown_url"),
        ("/v1/chat/completion", "POST", 415, "unsupported_content_type"),
        ("/v2/chat/completions", "POST", 404, "unknown_url"),
        (CHAT, "GET", 405, "method_not_allowed"),
        ("/v1/models/gpt/../../x", "GET", 404, None),
    ],
)
async def test_paths(serving: Product, path: str, method: str, status: int, code: str | None) -> None:
    got, error, _ = await ask(serving, path, method)
    assert got == status
    assert code is None or error["code"] == code


@pytest.mark.parametrize(
    "header",
    ["x-biasmeter-deployment", "x-biasmeter-origin", "x-biasmeter-ref", "x-biasmeter-parent", "x-biasmeter-audit"],
)
async def test_headers_without_the_right_are_refused_by_name(serving: Product, header: str) -> None:
    status, error, _ = await ask(serving, json={"model": "gpt"}, headers={header: "probe"})
    assert (status, error["code"], error["param"]) == (403, "header_not_allowed", header)


async def test_malformed_tags_are_refused_by_name(serving: Product) -> None:
    status, error, _ = await ask(serving, json={"model": "gpt"}, headers={"x-biasmeter-tags": "tenant"})
    assert (status, error["code"], error["param"]) == (400, "invalid_header", "x-biasmeter-tags")


async def test_the_request_id_comes_back_also_on_errors(serving: Product) -> None:
    _, _, headers = await ask(serving, data=b"{", headers={"x-request-id": "mine-1"})
    assert headers["x-request-id"] == "mine-1"
    _, _, headers = await ask(serving, data=b"{")
    assert headers["x-request-id"].startswith("req_")


def left_behind(path: Path, data: bytes) -> Path:
    """Put a segment there as a writer does, whole under its name at once."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.with_suffix(".new").write_bytes(data)
    return path.with_suffix(".new").rename(path)


async def test_a_broken_spool_tail_is_set_aside_and_costs_no_other_row(serving: Product) -> None:
    spool = serving.data_dir / "gateway" / "spool"
    salt = b"\xf5\x54\x58\xfa" * 2
    torn = left_behind(spool / "0000000000000-torn-000001.segment", b"BIASSPL2" + salt + bytes(8) + salt + b"\x00" * 40)
    other = left_behind(spool / "0000000000000-other-000001.segment", b"something else entirely")
    async with aiohttp.ClientSession() as client, client.post(serving.url + CHAT, json={"model": "gpt"}) as answer:
        exchange_id = answer.headers["x-biasmeter-exchange-id"]
    await eventually(lambda: not torn.exists() and not other.exists())
    await serving.shipped()
    assert len(await serving.rows("SELECT 1 FROM exchanges WHERE id = $1::text::uuid", exchange_id)) == 1
    kept = {path.name: path.read_bytes() for path in (spool / "quarantine").iterdir()}
    assert kept["0000000000000-torn-000001-24.bin"] == salt + b"\x00" * 40
    assert kept[other.name] == b"something else entirely"
    log = next(serving.folder.glob("gateway-*.log")).read_text()
    assert "0000000000000-torn-000001.segment, byte 24:" in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("query", "param"), [("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"), ("after=x", "after")]
)
async def test_the_read_api_names_what_is_wrong(serving: Product, query: str, param: str) -> None:
    async with aiohttp.ClientSession() as client, client.get(f"{serving.api}/api/exchanges?{query}") as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["param"] == param


@pytest.mark.parametrize("exchange_id", ["x", "00000000-0000-0000-0000-000000000000"])
async def test_an_exchange_that_is_not_there_is_a_404(serving: Product, exchange_id: str) -> None:
    async with aiohttp.ClientSession() as client, client.get(f"{serving.api}/api/exchanges/{exchange_id}") as answer:
        assert answer.status == 404
        assert (await answer.json())["error"]["code"] == "exchange_not_found"


async def test_the_read_api_is_not_for_a_page_under_another_name(serving: Product) -> None:
    headers = {"host": "rebound.example"}
    async with aiohttp.ClientSession() as client, client.get(f"{serving.api}/api/exchanges", headers=headers) as answer:
        assert answer.status == 403


@pytest.mark.parametrize(
    "address",
    [
        "/api/exchanges?after=%00",
        "/api/exchanges/%00",
        "/api/estimates?deployment=a%00b",
        "/api/findings?deployment=%00",
        "/api/references?deployment=%00",
        "/%00",
    ],
)
async def test_a_nul_in_an_address_is_refused(serving: Product, address: str) -> None:
    url = URL(serving.api + address, encoded=True)
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["code"] == "invalid_value"


async def test_an_exchange_is_shown_whole(serving: Product) -> None:
    async with aiohttp.ClientSession() as client:
        asked = {"model": "gpt", "messages": [{"role": "user", "content": "level?"}]}
        async with client.post(serving.url + CHAT, json=asked, headers={"x-request-id": "r-1"}) as answer:
            told = await answer.text()
            exchange_id = answer.headers["x-biasmeter-exchange-id"]
        await serving.shipped()
        async with client.get(f"{serving.api}/api/exchanges/{exchange_id}") as answer:
            shown = await answer.json()
        async with client.get(f"{serving.api}/api/exchanges", params={"limit": "1"}) as answer:
            page = await answer.json()
    assert json.loads(shown["request"]) == asked
    assert shown["response"] == told
    assert shown["usage"] == {"prompt_tokens": 11, "completion_tokens": 6}
    assert (shown["request_id"], shown["inclusion"], shown["capture"], shown["complete"]) == ("r-1", 1.0, "full", True)
    assert set(shown["timings"]) == {"total_us", "upstream_us", "first_byte_us"}
    (line,) = page["exchanges"]
    assert line == {name: shown[name] for name in ("id", "at", "origin", "route", "deployment", "status", "complete")}
    assert page["next"] == exchange_id
