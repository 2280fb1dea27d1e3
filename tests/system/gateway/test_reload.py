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
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest
import pytest_asyncio
from support.clients.each_worker import ask_each_worker
from support.clients.load import grown, load
from support.servers.ports import free_port
from support.servers.product import Product, Running, installation, marked_pids, settings
from support.stores.databases import Databases
from support.upstreams import upstream_answers
from support.upstreams.scripted_upstream import ScriptedUpstream, scripted_upstream
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

Settings = dict[str, Any]


def route(model: str, deployment: str) -> Settings:
    return {"model": model, "deployments": [deployment], "capture": "full"}


def configuration(upstream_url: str) -> Settings:
    """Without the route that takes every model, so that one that is not routed is seen."""
    return settings(upstream_url) | {"routes": [route("ordinary", "relayed"), route("old", "alias")]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream(upstream_answers.by_model) as up:
        yield up


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, databases: Databases, upstream: ScriptedUpstream
) -> Iterator[tuple[Product, Running]]:
    """A gateway of two workers that runs for the whole module."""
    folder = tmp_path_factory.mktemp("reloaded")
    with (
        databases.fresh() as url,
        installation(folder, configuration(upstream.url), url) as product,
        product.running("gateway") as running,
    ):
        yield product, running


@pytest_asyncio.fixture(loop_scope="module")
async def served(gateway: tuple[Product, Running]) -> AsyncIterator[tuple[Product, Running]]:
    """The gateway of the module; what a test changes in its configuration is undone after it."""
    product, running = gateway
    began_with = copy.deepcopy(product.settings)
    yield product, running
    product.settings = began_with
    await reloaded(product, running, "reloaded: ")  # also where nothing has changed


@pytest.fixture
def unserved(upstream: ScriptedUpstream, tmp_path: Path, migrated_url: str) -> Iterator[Product]:
    """An installation of which nothing runs yet."""
    made = configuration(upstream.url)
    made["gateway"]["workers"] = 1
    with installation(tmp_path, made, migrated_url) as product:
        yield product


@pytest_asyncio.fixture(loop_scope="module")
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


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
    served: tuple[Product, Running], client: aiohttp.ClientSession
) -> None:
    product, running = served
    async with load(product.url) as asked:
        for turn in range(2):
            await grown(asked, 50)
            gone = product.settings["routes"].pop()["model"]
            product.settings["routes"].append(route(f"fresh-{turn}", "alias"))
            line = await reloaded(product, running)
            assert f"routes added: fresh-{turn}; routes removed: {gone}; configuration " in line
            assert await everywhere(client, product, f"fresh-{turn}") == {200}
            assert await everywhere(client, product, gone) == {404}
    assert asked.failures == []


async def test_a_request_in_flight_ends_as_it_began(
    served: tuple[Product, Running], upstream: ScriptedUpstream, client: aiohttp.ClientSession
) -> None:
    product, running = served
    product.settings["deployments"][0]["model"] = "hang-mid-stream"
    await reloaded(product, running)
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
    exchange_id = UUID(streaming.headers["x-biasmeter-exchange-id"])
    (row,) = await product.rows("SELECT * FROM exchanges WHERE id = $1", exchange_id)
    assert (row["route"], row["deployment"], row["outcome"]) == ("old", "alias", "complete")


async def test_a_deployments_new_key_is_used_and_told_to_nobody(
    served: tuple[Product, Running], upstream: ScriptedUpstream, client: aiohttp.ClientSession
) -> None:
    product, running = served
    product.settings["deployments"][0]["api_key"] = "sk-renewed"
    line = await reloaded(product, running)
    assert "reloaded: deployments changed: alias; configuration " in line
    before = upstream.received
    assert await everywhere(client, product, "old") == {200}
    assert {dict(asked.headers)["authorization"] for asked in upstream.requests[before:]} == {"Bearer sk-renewed"}
    assert "sk-renewed" not in running.said()


async def test_a_new_body_limit_holds_for_bodies_of_unknown_length_too(
    served: tuple[Product, Running], client: aiohttp.ClientSession
) -> None:
    product, running = served

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"model": "old", "messages": [], "padding": "'
        yield b"x" * 10_000 + b'"}'

    async def asked() -> int:
        async with client.post(
            product.url + "/v1/chat/completions", data=pieces(), headers={"connection": "close"}
        ) as answer:
            return answer.status

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


async def test_a_file_that_is_wrong_changes_nothing(served: tuple[Product, Running]) -> None:
    product, running = served
    spoilt: list[tuple[Callable[[Product], None], str]] = [
        (break_yaml, "biasmeter.yaml:"),
        (add_unknown_key, "gateway.wokers"),
        (name_missing_variable, "NOT_SET_ANYWHERE"),
        (name_unknown_deployment, "nowhere"),
        (remove_file, "no such file"),
    ]
    whole = copy.deepcopy(product.settings)
    for spoil, said in spoilt:
        product.settings = copy.deepcopy(whole)
        spoil(product)
        line = await hung_up(running, "nothing was reloaded: ")
        assert said in line
        assert "biasmeter.yaml" in line
    # A worker that is started again serves the same as the others.
    os.kill(running.pids("gateway.processes.worker")[0], signal.SIGKILL)
    await eventually(lambda: each_worker_answers(product, "old"))
    assert "Traceback" not in running.said()


async def test_what_only_a_restart_changes_is_refused_with_all_the_rest(
    served: tuple[Product, Running], client: aiohttp.ClientSession
) -> None:
    product, running = served
    changes: list[tuple[Settings, str]] = [
        ({"data_dir": "elsewhere"}, "data_dir"),
        ({"store": {"url": "postgresql://nobody@127.0.0.1:1/nothing"}}, "store.url"),
        ({"gateway": {"listen": f"127.0.0.1:{free_port()}", "workers": 3}}, "gateway.listen, gateway.workers"),
        ({"auditor": {"listen": f"127.0.0.1:{free_port()}"}}, "auditor.listen"),
    ]
    running_on = copy.deepcopy(product.settings)
    running_on["routes"].append(route("fresh", "alias"))
    for change, keys in changes:
        product.settings = running_on | change
        product.write()
        line = await hung_up(running, "nothing was reloaded: ")
        assert line.endswith(f"nothing was reloaded: {keys}: changing this needs a restart")
    product.settings = running_on
    assert await everywhere(client, product, "fresh") == {404}
    assert await everywhere(client, product, "old") == {200}


async def test_the_number_of_workers_given_on_the_command_line_stays(
    unserved: Product, client: aiohttp.ClientSession
) -> None:
    unserved.settings["gateway"]["workers"] = 2
    unserved.write()
    running = unserved.start("gateway", "--workers", "1")
    unserved.settings["routes"].append(route("fresh", "alias"))
    await reloaded(unserved, running)
    assert await everywhere(client, unserved, "fresh") == {200}
    assert len(running.pids("gateway.processes.worker")) == 1
    assert running.stop() == 0


async def test_a_worker_that_is_started_again_serves_the_new_configuration(
    served: tuple[Product, Running], client: aiohttp.ClientSession
) -> None:
    product, running = served
    product.settings["routes"].append(route("fresh", "alias"))
    os.kill(
        running.pids("gateway.processes.worker")[0], signal.SIGKILL
    )  # to be started again while the reload is under way
    await reloaded(product, running)
    assert await everywhere(client, product, "fresh") == {200}
    for pid in running.pids("gateway.processes.worker"):
        os.kill(pid, signal.SIGKILL)
    await eventually(lambda: each_worker_answers(product, "fresh"))


async def each_worker_answers(product: Product, model: str) -> bool:
    try:
        return set(await ask_each_worker(product, lambda client: ask(client, product, model))) == {200}
    except aiohttp.ClientError:  # a worker has died with the connection
        return False


async def test_a_storm_of_signals_ends_with_the_last_file(
    served: tuple[Product, Running], client: aiohttp.ClientSession
) -> None:
    product, running = served
    known = len(running.said())
    async with load(product.url) as asked:
        for turn in range(20):
            product.settings["routes"][-1] = route(f"storm-{turn}", "alias")
            replace(product)
            running.process.send_signal(signal.SIGHUP)
        await told(running, "routes added: storm-19;")
        assert await everywhere(client, product, "storm-19") == {200}
        assert await everywhere(client, product, "old") == {404}
    assert asked.failures == []
    assert len(running.pids("gateway.processes.worker")) == 2
    assert "nothing was reloaded: biasmeter" not in running.said()[known:]
    assert "ended with status" not in running.said()[known:]


def replace(product: Product) -> None:
    """Write the configuration as those do who reload it: a reader finds the old file or the new one."""
    final = product.config
    written = final.with_suffix(".new")
    product.config.rename(written)
    product.write()
    product.config.rename(written)
    written.rename(final)


async def test_hangups_for_the_children_are_not_theirs(served: tuple[Product, Running]) -> None:
    product, running = served
    before = running.pids("gateway.")
    for pid in before:
        os.kill(pid, signal.SIGHUP)
    product.settings["routes"].append(route("fresh", "alias"))
    await reloaded(product, running)
    assert running.pids("gateway.") == before


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


async def ended_with_its_terminal(running: Running, close: Callable[[], None]) -> None:
    """Close a terminal, and wait for all that ran in it to end well."""
    close()
    assert await asyncio.to_thread(running.process.wait, 30) == 0
    assert marked_pids(running.mark) == []


async def test_a_terminal_that_closes_ends_the_gateway_that_has_reloaded_in_it(unserved: Product) -> None:
    async with in_terminal(unserved, "gateway") as (running, close):
        unserved.settings["routes"].append(route("fresh", "alias"))
        await reloaded(unserved, running)
        await ended_with_its_terminal(running, close)


@pytest.mark.slow
async def test_the_auditor_beside_takes_the_new_configuration_too_and_ends_with_its_terminal(
    unserved: Product, client: aiohttp.ClientSession
) -> None:
    async with in_terminal(unserved, "up") as (running, close):
        before = running.pids("auditor")
        unserved.settings["deployments"].append({"name": "third", "base_url": "http://127.0.0.1:1/v1"})
        await reloaded(unserved, running, "auditor: reloaded: deployments added: third; configuration")
        assert "third" in await deployments(client, unserved)
        assert running.pids("auditor") == before
        unserved.settings["audits"] = [{"name": "desk", "proposition": {"request": "$["}}]
        line = await reloaded(unserved, running, "nothing was reloaded")
        assert "audits: desk" in line
        await ended_with_its_terminal(running, close)


async def reloads_as_the_gateway_does(auditor: Product, running: Running, client: aiohttp.ClientSession) -> None:
    auditor.settings["deployments"].append({"name": "third", "base_url": "http://127.0.0.1:1/v1"})
    await reloaded(auditor, running)
    assert "third" in await deployments(client, auditor)
    auditor.settings["auditor"]["gateway"] = {"url": "http://127.0.0.1:1/v1", "key": "sk-x"}
    line = await reloaded(auditor, running, "nothing was reloaded: ")
    assert "auditor.gateway: changing this needs a restart" in line
    break_yaml(auditor)
    assert "biasmeter.yaml:" in await hung_up(running, "nothing was reloaded: ")
    assert "third" in await deployments(client, auditor)


async def test_the_auditor_alone_reloads_as_the_gateway_does(unserved: Product, client: aiohttp.ClientSession) -> None:
    with unserved.running("auditor", until="listening on http") as running:
        await reloads_as_the_gateway_does(unserved, running, client)


@pytest.mark.slow
async def test_the_auditor_alone_reloads_as_the_gateway_does_and_ends_with_its_terminal(
    unserved: Product, client: aiohttp.ClientSession
) -> None:
    async with in_terminal(unserved, "auditor") as (running, close):
        await reloads_as_the_gateway_does(unserved, running, client)
        await ended_with_its_terminal(running, close)
