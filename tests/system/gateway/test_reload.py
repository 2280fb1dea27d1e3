"""SIGHUP: the configuration is read again, and holds in every process or in none; requests notice nothing."""

import asyncio
import copy
import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from support.clients.load import grown, load
from support.servers.ports import free_port
from support.servers.product import Product, Running, marked_pids
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.waiting import eventually

Settings = dict[str, Any]


@pytest.fixture
def product(product: Product) -> Product:
    """Without the route that takes every model, so that one that is not routed is seen."""
    product.settings["routes"] = [route("ordinary", "relayed"), route("old", "alias")]
    product.write()
    return product


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def route(model: str, deployment: str) -> Settings:
    return {"model": model, "deployments": [deployment], "capture": "full"}


async def ask(client: aiohttp.ClientSession, product: Product, model: str) -> int:
    # A connection of its own may reach any worker.
    headers = {"connection": "close"}
    async with client.post(
        product.url + "/v1/chat/completions", json={"model": model, "messages": []}, headers=headers
    ) as answer:
        await answer.read()
        return answer.status


async def everywhere(client: aiohttp.ClientSession, product: Product, model: str) -> set[int]:
    """What a model's requests get, enough of them to reach every worker."""
    return set(await asyncio.gather(*(ask(client, product, model) for _ in range(24))))


async def told(running: Running, words: str) -> str:
    """Wait for a line of the log, and give it."""
    await eventually(lambda: words in running.said())
    return next(line for line in running.said().splitlines() if words in line)


async def hung_up(running: Running, words: str) -> str:
    """Send SIGHUP, and give the line of the log that says what came of it."""
    known = len(running.said())
    running.process.send_signal(signal.SIGHUP)
    await eventually(lambda: words in running.said()[known:])
    return next(line for line in running.said()[known:].splitlines() if words in line)


async def reloaded(product: Product, running: Running, words: str = ": reloaded: ") -> str:
    """Write the settings and have them taken; give the line of the log."""
    product.write()
    return await hung_up(running, words)


async def test_routes_come_and_go_under_load_and_no_request_fails(
    product: Product, upstream: ScriptedUpstream, client: aiohttp.ClientSession
) -> None:
    with product.running("gateway") as running:
        async with load(product.url) as asked:
            for turn in range(5):
                await grown(asked, 50)
                gone = product.settings["routes"].pop()["model"]
                product.settings["routes"].append(route(f"fresh-{turn}", "alias"))
                line = await reloaded(product, running)
                assert f"routes added: fresh-{turn}; routes removed: {gone}; configuration " in line
                assert await everywhere(client, product, f"fresh-{turn}") == {200}
                assert await everywhere(client, product, gone) == {404}
        assert asked.failures == []


async def test_a_request_in_flight_ends_as_it_began(
    product: Product, upstream: ScriptedUpstream, client: aiohttp.ClientSession
) -> None:
    product.settings["deployments"][0]["model"] = "hang-mid-stream"
    product.write()
    with product.running("gateway") as running:
        payload = {"model": "old", "stream": True, "messages": []}
        async with client.post(product.url + "/v1/chat/completions", json=payload) as streaming:
            await upstream.until(lambda up: up.hanging == 1)
            product.settings["routes"].pop()
            product.settings["deployments"].pop(0)
            await reloaded(product, running)
            assert await everywhere(client, product, "old") == {404}
            upstream.release()
            assert (await streaming.read()).endswith(b"data: [DONE]\n\n")
        await product.shipped()
        (row,) = await product.rows("SELECT * FROM exchanges")
    assert (row["route"], row["deployment"], row["outcome"]) == ("old", "alias", "complete")


async def test_a_deployments_new_key_is_used_and_told_to_nobody(
    product: Product, upstream: ScriptedUpstream, client: aiohttp.ClientSession
) -> None:
    with product.running("gateway") as running:
        product.settings["deployments"][0]["api_key"] = "sk-renewed"
        line = await reloaded(product, running)
        assert "reloaded: deployments changed: alias; configuration " in line
        assert await everywhere(client, product, "old") == {200}
        assert {dict(request.headers)["authorization"] for request in upstream.requests} == {"Bearer sk-renewed"}
        assert "sk-renewed" not in running.said()


async def test_a_new_body_limit_holds_for_bodies_of_unknown_length_too(
    product: Product, client: aiohttp.ClientSession
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"model": "old", "messages": [], "padding": "'
        yield b"x" * 10_000 + b'"}'

    async def asked() -> int:
        async with client.post(
            product.url + "/v1/chat/completions", data=pieces(), headers={"connection": "close"}
        ) as answer:
            return answer.status

    with product.running("gateway") as running:
        for limit, status in (("5kB", 413), ("50kB", 200)):
            product.settings["gateway"]["body_limit"] = limit
            line = await reloaded(product, running)
            assert "changed: gateway.body_limit;" in line
            assert {await asked() for _ in range(6)} == {status}


def break_yaml(product: Product) -> None:
    product.config.write_text(product.config.read_text() + "routes: [\n")


def add_unknown_key(product: Product) -> None:
    product.settings["gateway"]["wokers"] = 2
    product.write()


def name_missing_variable(product: Product) -> None:
    product.settings["deployments"][0]["api_key"] = "${NOT_SET_ANYWHERE}"
    product.write()


def name_unknown_deployment(product: Product) -> None:
    product.settings["routes"].append(route("fresh", "nowhere"))
    product.write()


def remove_file(product: Product) -> None:
    product.config.unlink()


async def test_a_file_that_is_wrong_changes_nothing(product: Product, client: aiohttp.ClientSession) -> None:
    spoilt: list[tuple[Callable[[Product], None], str]] = [
        (break_yaml, "biasmeter.yaml:"),
        (add_unknown_key, "gateway.wokers"),
        (name_missing_variable, "NOT_SET_ANYWHERE"),
        (name_unknown_deployment, "nowhere"),
        (remove_file, "no such file"),
    ]
    whole = copy.deepcopy(product.settings)
    with product.running("gateway") as running:
        for spoil, said in spoilt:
            product.settings = copy.deepcopy(whole)
            spoil(product)
            line = await hung_up(running, "nothing was reloaded: ")
            assert said in line
            assert "biasmeter.yaml" in line
        # A worker that is started again serves the same as the others.
        for pid in running.pids("gateway.worker"):
            os.kill(pid, signal.SIGKILL)
        await eventually(lambda: answered(client, product))
        assert await everywhere(client, product, "old") == {200}
        assert "Traceback" not in running.said()


async def test_what_only_a_restart_changes_is_refused_with_all_the_rest(
    product: Product, client: aiohttp.ClientSession
) -> None:
    changes: list[tuple[Settings, str]] = [
        ({"data_dir": "elsewhere"}, "data_dir"),
        ({"store": {"url": "postgresql://nobody@127.0.0.1:1/nothing"}}, "store.url"),
        ({"gateway": {"listen": f"127.0.0.1:{free_port()}", "workers": 3}}, "gateway.listen, gateway.workers"),
        ({"auditor": {"listen": f"127.0.0.1:{free_port()}"}}, "auditor.listen"),
    ]
    running_on = copy.deepcopy(product.settings)
    running_on["routes"].append(route("fresh", "alias"))
    with product.running("gateway") as running:
        for change, keys in changes:
            product.settings = running_on | change
            product.write()
            line = await hung_up(running, "nothing was reloaded: ")
            assert line.endswith(f"nothing was reloaded: {keys}: changing this needs a restart")
        product.settings = running_on
        assert await everywhere(client, product, "fresh") == {404}
        assert await everywhere(client, product, "old") == {200}


async def test_the_number_of_workers_given_on_the_command_line_stays(
    product: Product, client: aiohttp.ClientSession
) -> None:
    running = product.start("gateway", "--workers", "1")
    product.settings["routes"].append(route("fresh", "alias"))
    await reloaded(product, running)
    assert await everywhere(client, product, "fresh") == {200}
    assert len(running.pids("gateway.worker")) == 1
    assert running.stop() == 0


async def test_a_worker_that_is_started_again_serves_the_new_configuration(
    product: Product, client: aiohttp.ClientSession
) -> None:
    with product.running("gateway") as running:
        for name, killed_early in (("first", 1), ("second", 2)):
            product.settings["routes"].append(route(name, "alias"))
            for pid in running.pids("gateway.worker")[:killed_early]:
                os.kill(pid, signal.SIGKILL)  # to be started again while the reload is under way
            await reloaded(product, running)
            assert await everywhere(client, product, name) == {200}
            for pid in running.pids("gateway.worker"):
                os.kill(pid, signal.SIGKILL)
            await eventually(lambda: answered(client, product))
            assert await everywhere(client, product, name) == {200}


async def answered(client: aiohttp.ClientSession, product: Product) -> bool:
    try:
        return await everywhere(client, product, "ordinary") == {200}
    except aiohttp.ClientError:  # a worker has died with the connection
        return False


async def test_a_storm_of_signals_ends_with_the_last_file(product: Product, client: aiohttp.ClientSession) -> None:
    with product.running("gateway") as running:
        async with load(product.url) as asked:
            for turn in range(20):
                product.settings["routes"][-1] = route(f"fresh-{turn}", "alias")
                replace(product)
                running.process.send_signal(signal.SIGHUP)
            await told(running, "routes added: fresh-19;")
            assert await everywhere(client, product, "fresh-19") == {200}
            assert await everywhere(client, product, "old") == {404}
        assert asked.failures == []
        assert len(running.pids("gateway.worker")) == 2
        assert "nothing was reloaded: biasmeter" not in running.said()
        assert "ended with status" not in running.said()


def replace(product: Product) -> None:
    """Write the configuration as those do who reload it: a reader finds the old file or the new one."""
    final = product.config
    written = final.with_suffix(".new")
    product.config.rename(written)
    product.write()
    product.config.rename(written)
    written.rename(final)


async def test_hangups_for_the_children_are_not_theirs(product: Product, client: aiohttp.ClientSession) -> None:
    with product.running("gateway") as running:
        before = running.pids("gateway.")
        for pid in before:
            os.kill(pid, signal.SIGHUP)
        product.settings["routes"].append(route("fresh", "alias"))
        await reloaded(product, running)
        assert running.pids("gateway.") == before


async def test_the_auditor_beside_takes_the_new_configuration_too(
    product: Product, client: aiohttp.ClientSession
) -> None:
    with product.running("up") as running:
        before = running.pids("auditor")
        product.settings["deployments"].append({"name": "third", "base_url": "http://127.0.0.1:1/v1"})
        await reloaded(product, running, "auditor: reloaded: deployments added: third; configuration")
        assert "third" in await deployments(client, product)
        assert running.pids("auditor") == before
        product.settings["audits"] = [{"name": "desk", "proposition": {"request": "$["}}]
        line = await reloaded(product, running, "nothing was reloaded")
        assert "audits: desk" in line


async def test_the_auditor_alone_reloads_as_the_gateway_does(product: Product, client: aiohttp.ClientSession) -> None:
    with product.running("auditor", until="listening on") as running:
        product.settings["deployments"].append({"name": "third", "base_url": "http://127.0.0.1:1/v1"})
        await reloaded(product, running)
        assert "third" in await deployments(client, product)
        product.settings["auditor"]["gateway"] = {"url": "http://127.0.0.1:1/v1", "key": "sk-x"}
        line = await reloaded(product, running, "nothing was reloaded: ")
        assert "auditor.gateway: changing this needs a restart" in line
        break_yaml(product)
        assert "biasmeter.yaml:" in await hung_up(running, "nothing was reloaded: ")
        assert "third" in await deployments(client, product)


async def deployments(client: aiohttp.ClientSession, product: Product) -> list[str]:
    async with client.get(product.api + "/api/deployments") as answer:
        return [one["name"] for one in (await answer.json())["deployments"]]


@asynccontextmanager
async def in_terminal(product: Product, *arguments: str) -> AsyncIterator[tuple[Running, Callable[[], None]]]:
    """Run a command in the foreground of a terminal; gives what closes the terminal, too."""
    ours, theirs = pty.openpty()
    log = product.folder / "terminal.log"
    with log.open("wb") as file:
        process = subprocess.Popen(  # noqa: ASYNC220 -- nothing else waits
            [sys.executable, "-m", "biasmeter", *arguments, "-c", str(product.config)],
            stdin=theirs,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=product._environ(),
            cwd=product.folder,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 -- the terminal is its session's
        )
    os.close(theirs)
    running = Running(process, log, product.mark)
    try:
        await told(running, "listening on http")
        yield running, lambda: os.close(ours)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("command", ["gateway", "up", "auditor"])
async def test_a_terminal_that_closes_ends_what_runs_in_it(product: Product, command: str) -> None:
    async with in_terminal(product, command) as (running, close):
        product.settings["routes"].append(route("fresh", "alias"))
        await reloaded(product, running)
        close()
        assert await asyncio.to_thread(running.process.wait, 30) == 0
        assert marked_pids(product.mark) == []
