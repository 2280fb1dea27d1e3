"""A gateway on a loopback address before its first key: open to programs of this machine, and closed on purpose."""

import json

import aiohttp
from support.clients.terminals import on_terminal
from support.servers.product import Product
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


async def test_web_pages_get_nothing_and_spend_nothing(product: Product) -> None:
    own = product.url
    with product.running("gateway"):
        for method, path in (("POST", CHAT), ("GET", "/v1/models"), ("GET", "/metrics")):
            assert await status(product, path, method, host="rebound.example") == (403, "foreign_host")
            assert await status(product, path, method, origin="https://page.example") == (403, "foreign_origin")
            assert await status(product, path, method) == (200, None)
            assert await status(product, path, method, origin=own) == (200, None)
        assert await status(product, "/healthz", host="balancer.example") == (200, None)
        assert len(await product.rows("SELECT 1")) == 1
        await product.shipped()
        assert len(await product.rows("SELECT 1 FROM exchanges")) == 2


async def test_a_key_opens_the_gateway_also_to_pages(product: Product) -> None:
    _, secret = product.create_key()
    headers = {"authorization": f"Bearer {secret}", "host": "gateway.example", "origin": "https://page.example"}
    with product.running("gateway"):
        assert await status(product, CHAT, "POST", **headers) == (200, None)


async def test_only_a_key_for_applications_closes_the_gateway_and_only_on_purpose(product: Product) -> None:
    create = (*CREATE, "-c", str(product.config))
    with product.running("gateway"):
        assert product.run(*create, "--allow", "audit").stderr.count("\n") == 1
        refused = product.run(*create, check=False)
        assert refused.returncode == 2
        assert "refuses requests without a key" in refused.stderr
        assert "--yes" in refused.stderr
        shown = on_terminal(product, *create, type_in=lambda said: b"n\n" if said.endswith("[y/N]: ") else None)
        assert shown.status == 1
        keys = json.loads(product.run("key", "list", "-c", str(product.config), "--json").stdout)
        assert [key["rights"] for key in keys] == [["audit"]]
        assert await status(product, CHAT, "POST") == (200, None)
        agreed = product.run(*create, "--yes")
        assert "refuses requests without a key" in agreed.stderr

        async def closed() -> bool:
            return (await status(product, CHAT, "POST"))[0] == 401

        await eventually(closed, 60)
        assert "refuses" not in product.run(*create).stderr  # it is closed already


def test_no_gateway_is_closed_where_none_is_open(product: Product) -> None:
    for changed in ({"auth": "open"}, {"listen": "0.0.0.0:4000"}):
        product.settings["gateway"] |= changed
        product.write()
        assert product.run(*CREATE, "-c", str(product.config)).returncode == 0
