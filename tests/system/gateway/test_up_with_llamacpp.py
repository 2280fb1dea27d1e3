"""`biasmeter up` in front of llama.cpp's own server serves the unmodified OpenAI SDK, and keeps what passed."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from support.clients.sdk_exercise import exercise_streaming, exercise_unary, sdk_client
from support.servers.llamacpp import LlamaCpp
from support.servers.ports import free_port
from support.servers.product import Product, installation, marked_pids, settings
from support.stores.postgres import remove_store


@pytest.fixture
def up(tmp_path, llamacpp: LlamaCpp) -> Iterator[Product]:
    with installation(tmp_path, settings(llamacpp.url), None) as product:
        product.settings["deployments"][0]["model"] = llamacpp.model
        product.write()
        with product.running("up"):
            yield product


async def stored(product: Product) -> list[dict[str, Any]]:
    """Every stored exchange with all that is kept of it, oldest first."""
    await product.shipped()
    async with aiohttp.ClientSession() as client:
        async with client.get(f"{product.api}/api/exchanges", params={"limit": "1000"}) as answer:
            ids = [line["id"] for line in (await answer.json())["exchanges"]]
        found = []
        for each in reversed(ids):
            async with client.get(f"{product.api}/api/exchanges/{each}") as answer:
                found.append(await answer.json())
    return found


@pytest.mark.slow
async def test_the_sdk_gets_through_the_gateway_what_it_gets_without(up: Product, llamacpp: LlamaCpp) -> None:
    # A client each time: llama.cpp's server hangs up on one that has said nothing for five seconds.
    with sdk_client(llamacpp.url) as direct:
        expected_unary = exercise_unary(direct, llamacpp.model)
    with sdk_client(llamacpp.url) as direct:
        expected_streams = exercise_streaming(direct, llamacpp.model)
    with sdk_client(up.url + "/v1") as through:
        unary = exercise_unary(through, llamacpp.model)
        assert unary.models == ["gpt", llamacpp.model]  # the configured name, and what the deployment lists
        assert replace(unary, models=[llamacpp.model]) == expected_unary
        assert exercise_streaming(through, llamacpp.model) == expected_streams
        assert llamacpp.model in {model.id for model in through.models.list()}
        assert through.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "hi"}]).choices
    kept = await stored(up)
    assert {exchange["endpoint"] for exchange in kept} == {"chat/completions", "completions", "embeddings", "responses"}
    assert all(exchange["complete"] for exchange in kept)
    ended = {exchange["finish_reason"] for exchange in kept if exchange["endpoint"] == "responses"}
    assert ended == {"completed"}
    assert {exchange["stream"] for exchange in kept} == {True, False}
    for exchange in kept:
        assert exchange["inclusion"] == 1.0
        assert exchange["timings"]["total_us"] >= exchange["timings"]["upstream_us"] > 0
        assert exchange["response"]
        if not exchange["stream"]:
            assert exchange["usage"]["prompt_tokens"] > 0


def free_pair() -> int:
    """Return a free port of which the next one is free as well."""
    while True:
        port = free_port()
        with suppress(OSError), socket.socket() as next_one:
            next_one.bind(("127.0.0.1", port + 1))
            return port


def test_a_port_beside_a_configuration_is_refused(tmp_path) -> None:
    with installation(tmp_path, settings("http://127.0.0.1:1"), None) as product:
        done = product.run("up", "-c", str(product.config), "--port", "4000", check=False)
        assert done.returncode == 2
        assert "gateway.listen" in done.stderr


def test_it_says_at_once_what_it_starts_and_where_the_data_lie(tmp_path) -> None:
    # No process can listen there, so it ends, and what it has said came before anything slow.
    told = settings("http://127.0.0.1:1") | {"store": {"url": "postgresql://127.0.0.1:1/none"}}
    with installation(tmp_path, told, None) as product:
        said = product.run("up", "-c", str(product.config), check=False).stderr.splitlines()
    for line, parts in zip(
        said,
        [
            (told["gateway"]["listen"], told["auditor"]["listen"], "Ctrl-C"),
            ("alias (http://127.0.0.1:1/v1)", "relayed"),
            ("data: your PostgreSQL", str(product.data_dir)),
        ],
        strict=False,
    ):
        assert line.startswith("biasmeter: ")
        assert [part for part in parts if part not in line] == []


@pytest.mark.slow
async def test_without_a_configuration_one_deployment_is_relayed(tmp_path, llamacpp: LlamaCpp) -> None:
    with installation(tmp_path, settings(llamacpp.url), None) as product:
        product.config.unlink()
        # A home of its own keeps the data of an unconfigured product here.
        product.environment |= {"OPENAI_BASE_URL": llamacpp.url, "OPENAI_API_KEY": "unused", "HOME": str(tmp_path)}
        done = product.run("up", "--help")
        assert "OPENAI_API_KEY" in done.stdout
        port = free_pair()
        running = product.start_unconfigured("up", "--port", str(port))
        try:
            with sdk_client(f"http://127.0.0.1:{port}/v1") as client:
                assert exercise_unary(client, llamacpp.model).text
        finally:
            assert running.stop() == 0
        data_dir = tmp_path / ".local/share/biasmeter"
        assert data_dir.is_dir()
        remove_store(data_dir)
    assert marked_pids(product.mark) == []


def test_without_a_configuration_and_without_a_key_both_remedies_are_named(tmp_path) -> None:
    with installation(tmp_path, settings("http://127.0.0.1:1"), None) as product:
        done = product.run("up", check=False)
        assert done.returncode == 2
        assert "OPENAI_API_KEY" in done.stderr
        assert "-c" in done.stderr
        assert "Traceback" not in done.stderr
