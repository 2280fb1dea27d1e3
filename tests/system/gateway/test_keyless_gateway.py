"""A gateway on a loopback address before its first key: open to programs of this machine, and closed on purpose."""

import json
from collections.abc import Iterator

import aiohttp
import pytest
from support.clients.terminals import on_terminal
from support.servers.product import Product, installation, settings
from support.stores.databases import Databases
from support.waiting import eventually

CHAT = "/v1/chat/completions"
CREATE = ("key", "create", "--name", "app")


async def status(product: Product, path: str, method: str = "GET", **headers: str) -> tuple[int, str | None]:
    """Ask as a web page does: with JSON that is sent as text."""
    data = json.dumps({"model": "gpt", "messages": []}) if method == "POST" else None
    headers |= {"content-type": "text/plain"}
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, product.url + path, data=data, headers=headers) as answer,
    ):
        text = await answer.text()
        return answer.status, json.loads(text)["error"]["code"] if answer.status >= 400 else None


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory, databases: Databases, answering_url: str) -> Iterator[Product]:
    """A gateway that runs for the whole module; the last tests that use it close it with a first key."""
    with (
        databases.fresh() as database_url,
        installation(tmp_path_factory.mktemp("keyless"), settings(answering_url, workers=1), database_url) as product,
        product.running("gateway"),
    ):
        yield product


async def test_web_pages_get_nothing_and_spend_nothing(keyless: Product) -> None:
    own = keyless.url
    for method, path in (("POST", CHAT), ("GET", "/v1/models"), ("GET", "/metrics")):
        assert await status(keyless, path, method, host="rebound.example") == (403, "foreign_host")
        assert await status(keyless, path, method, origin="https://page.example") == (403, "foreign_origin")
        assert await status(keyless, path, method) == (200, None)
        assert await status(keyless, path, method, origin=own) == (200, None)
    assert await status(keyless, "/healthz", host="balancer.example") == (200, None)
    await keyless.shipped()
    assert len(await keyless.rows("SELECT 1 FROM exchanges")) == 2


async def test_only_a_key_for_applications_closes_the_gateway_and_only_on_purpose(keyless: Product) -> None:
    create = (*CREATE, "-c", str(keyless.config))
    assert keyless.run(*create, "--allow", "audit").stderr.count("\n") == 1
    refused = keyless.run(*create, check=False)
    assert refused.returncode == 2
    assert "refuses requests without a key" in refused.stderr
    assert "--yes" in refused.stderr
    shown = on_terminal(keyless, *create, type_in=lambda said: b"n\n" if said.endswith("[y/N]: ") else None)
    assert shown.status == 1
    keys = json.loads(keyless.run("key", "list", "-c", str(keyless.config), "--json").stdout)
    assert [key["rights"] for key in keys] == [["audit"]]
    assert await status(keyless, CHAT, "POST") == (200, None)
    agreed = keyless.run(*create, "--yes")
    assert "refuses requests without a key" in agreed.stderr
    assert "The gateway on this host knows it" in agreed.stderr
    for _ in range(20):  # on connections of their own, so at any worker
        assert await status(keyless, CHAT, "POST") == (401, "invalid_api_key")
    assert "refuses" not in keyless.run(*create).stderr  # it is closed already


async def test_a_key_opens_the_gateway_also_to_pages(keyless: Product) -> None:
    _, secret = keyless.create_key()
    headers = {"authorization": f"Bearer {secret}", "host": "gateway.example", "origin": "https://page.example"}

    async def opened() -> bool:
        return await status(keyless, CHAT, "POST", **headers) == (200, None)

    await eventually(opened)


def test_no_gateway_is_closed_where_none_is_open(product: Product) -> None:
    for changed in ({"auth": "open"}, {"listen": "0.0.0.0:4000"}):
        product.settings["gateway"] |= changed
        product.write()
        assert product.run(*CREATE, "-c", str(product.config)).returncode == 0
