"""Starting and refusing to start: one line that names the place, exit status 2, no traceback, nothing left running."""

import json
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.servers.product import Product, Running, installation, marked_pids, settings
from support.stores.databases import Databases
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.waiting import eventually

from auditor.domain.schema import SCHEMA_VERSION


@pytest.fixture
def product(product: Product) -> Product:
    """An installation whose gateway has one worker."""
    product.settings["gateway"]["workers"] = 1
    product.write()
    return product


@dataclass(frozen=True, slots=True)
class Served:
    """A gateway that runs for the whole module, on an address that others reach, and its one key."""

    product: Product
    running: Running
    key: str

    async def ask(self) -> int:
        headers = {"authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.post(self.product.url + "/v1/chat/completions", json={"model": "gpt"}) as answer,
        ):
            return answer.status


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, databases: Databases, answering_url: str) -> Iterator[Served]:
    with (
        databases.fresh() as url,
        installation(tmp_path_factory.mktemp("served"), settings(answering_url, workers=1), url) as product,
    ):
        product.settings["gateway"]["listen"] = product.settings["gateway"]["listen"].replace("127.0.0.1", "0.0.0.0")
        product.write()
        _, key = product.create_key()
        with product.running("gateway") as running:
            yield Served(product, running, key)


def refused(product: Product, *arguments: str) -> str:
    """Run a command that must refuse; give what it said. Only `up` says before what it is about to start."""
    done = product.run(*arguments, "-c", str(product.config), check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert marked_pids(product.mark) == []
    assert done.stderr.count("biasmeter: ") == 1 or arguments == ("up",)
    return done.stderr


def test_a_port_that_is_taken_is_named(product: Product) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        product.settings["gateway"]["listen"] = product.settings["auditor"]["listen"] = address
        product.write()
        assert f"gateway.listen: {address}: Address already in use" in refused(product, "gateway")
        assert f"auditor.listen: {address}" in refused(product, "auditor")


def test_a_store_without_a_schema_is_refused_with_the_command_to_run(product: Product, postgres_server: str) -> None:
    product.settings["store"]["url"] = postgres_server
    product.write()
    for command in ("gateway", "auditor"):
        said = refused(product, command)
        assert "has no schema yet" in said
        assert "biasmeter migrate" in said


async def test_a_store_of_another_version_is_refused_with_the_command_to_run(product: Product) -> None:
    await product.rows("UPDATE alembic_version SET version_num = '9999'")
    for command in ("gateway", "auditor"):
        said = refused(product, command)
        assert "has schema 9999" in said
        assert "biasmeter migrate" in said


async def test_an_address_that_others_reach_needs_a_key(product: Product, served: Served) -> None:
    port = product.settings["gateway"]["listen"].rpartition(":")[2]
    product.settings["gateway"]["listen"] = f"0.0.0.0:{port}"
    product.write()
    said = refused(product, "gateway")
    assert f"0.0.0.0:{port} can be reached from other machines" in said
    assert "biasmeter key create" in said
    assert served.product.settings["gateway"]["listen"].startswith("0.0.0.0:")
    assert await served.ask() == 200


def test_the_auditor_needs_a_key_that_may_read_where_others_reach_it(product: Product) -> None:
    port = product.settings["auditor"]["listen"].rpartition(":")[2]
    product.settings["auditor"]["listen"] = f"0.0.0.0:{port}"
    product.write()
    product.create_key("--allow", "pin,origin")
    assert "--role admin" in refused(product, "auditor")


async def test_the_auditors_api_beyond_this_machine_asks_for_a_key_with_the_right(product: Product) -> None:
    port = product.settings["auditor"]["listen"].rpartition(":")[2]
    product.settings["auditor"]["listen"] = f"0.0.0.0:{port}"
    product.write()
    _, reader = product.create_key("--allow", "audit")
    _, caller = product.create_key()
    with product.running("auditor", until="listening on"):
        async with aiohttp.ClientSession() as client:
            for headers, status in (
                ({}, 401),
                ({"authorization": "Bearer nonsense"}, 401),
                ({"authorization": f"Bearer {caller}"}, 403),
                ({"authorization": f"Bearer {reader}"}, 200),
            ):
                async with client.get(f"http://127.0.0.1:{port}/api/exchanges", headers=headers) as answer:
                    assert answer.status == status


def test_a_second_gateway_on_the_same_folder_is_refused(served: Served) -> None:
    done = served.product.run("gateway", "-c", str(served.product.config), check=False)
    assert done.returncode == 2
    assert f"another gateway (process {served.running.process.pid}) uses" in done.stderr


def test_a_configuration_that_is_wrong_names_file_and_line(product: Product) -> None:
    product.config.write_text("gateway:\n  listen: 127.0.0.1:1\n  wokers: 2\n")
    for command in ("gateway", "auditor", "migrate", "up"):
        assert "biasmeter.yaml:3: gateway.wokers" in refused(product, command)


@pytest.mark.parametrize("command", ["gateway", "auditor", "migrate", "up", "check"])
def test_a_configuration_that_is_not_there_is_named(product: Product, command: str) -> None:
    product.config.unlink()
    done = product.run(command, "-c", str(product.config), check=False)
    assert done.returncode == 2
    assert "biasmeter.yaml" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
async def test_sigterm_turns_readiness_off_drains_and_ends_with_0(product: Product) -> None:
    running = product.start("gateway")
    async with aiohttp.ClientSession() as client:
        async with client.get(product.url + "/readyz") as answer:
            assert answer.status == 200
        payload = {"model": "slow-tokens:0.3", "stream": True, "messages": []}
        async with client.post(product.url + "/v1/chat/completions", json=payload) as streaming:
            await streaming.content.readany()
            running.process.terminate()

            async def draining() -> bool:
                async with client.get(product.url + "/readyz") as answer:
                    return answer.status == 503 and (await answer.json())["status"] == "draining"

            await eventually(draining, patience=0.5)
            async with client.get(product.url + "/healthz") as answer:
                assert answer.status == 200
            assert (await streaming.read()).endswith(b"data: [DONE]\n\n")
    assert running.process.wait(10) == 0
    # The shipper has emptied the spool on its way out.
    assert product.spooled() == 0
    assert len(await product.rows("SELECT 1 FROM exchanges WHERE outcome = 'complete'")) == 1
    assert marked_pids(product.mark) == []


async def test_a_gateway_whose_store_is_gone_starts_with_what_it_knows(product: Product, served: Served) -> None:
    known = served.product.data_dir / "gateway" / "keys.json"
    await eventually(known.exists)
    shutil.copytree(known.parent, product.data_dir / "gateway", ignore=shutil.ignore_patterns("spool", "*.sock"))
    product.settings["store"]["url"] = "postgresql://nobody@127.0.0.1:1/nothing"
    product.write()
    with product.running("gateway") as running:
        assert "the store cannot be reached" in running.said()
        async with aiohttp.ClientSession() as client:
            for secret, status in ((served.key, 200), ("sk-unknown", 503)):
                headers = {"authorization": f"Bearer {secret}"}
                url = product.url + "/v1/chat/completions"

                async def answered(url=url, headers=headers, status=status) -> bool:
                    async with client.post(url, json={"model": "gpt"}, headers=headers) as answer:
                        if status == 503 and answer.status == 503:
                            assert int(answer.headers["retry-after"]) > 0
                        return answer.status == status

                # The snapshot is fresh for 10 seconds after the store last confirmed it.
                await eventually(answered, patience=15)
        assert product.spooled() > 0


def test_key_commands_round_trip(product: Product, tmp_path: Path) -> None:
    made_id, secret = product.create_key("--models", "gpt", "--rpm", "10", "--expires", "30d", "--allow", "pin,origin")
    listed = json.loads(product.run("key", "list", "-c", str(product.config), "--json").stdout)
    (line,) = listed
    assert (line["id"], line["models"], line["rpm"], line["rights"]) == (made_id, ["gpt"], 10, ["origin", "pin"])
    assert line["revoked"] is False
    assert secret not in json.dumps(listed)
    assert made_id in product.run("key", "list", "-c", str(product.config)).stdout
    product.run("key", "revoke", "-c", str(product.config), made_id)
    (line,) = json.loads(product.run("key", "list", "-c", str(product.config), "--json").stdout)
    assert line["revoked"] is True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--allow", "everything"], "the rights are: pin, origin, audit-off, audit"),
        (["--expires", "soon"], "'soon' is not a duration"),
        (["--expires", "-1d"], "--expires"),
        (["--rpm", "0"], "rpm"),
        (["--name", ""], "--name"),
    ],
)
def test_key_options_that_are_wrong_are_named(product: Product, options: list[str], said: str) -> None:
    done = product.run("key", "create", "-c", str(product.config), "--name", "n", *options, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_revoking_a_key_that_is_not_there_is_an_error(product: Product) -> None:
    assert (
        "there is no key 'key_x'"
        in product.run("key", "revoke", "-c", str(product.config), "key_x", check=False).stderr
    )


async def test_a_schema_that_changes_while_the_gateway_runs_stops_nobody(served: Served) -> None:
    product, running = served.product, served.running
    await product.shipped()
    before = len(await product.rows("SELECT 1 FROM exchanges"))
    await product.rows("UPDATE alembic_version SET version_num = '9999'")
    # Not the server's own vacuum, which is not ours to end.
    await product.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    await eventually(lambda: "has schema 9999" in running.said())
    assert await served.ask() == 200
    await product.rows("UPDATE alembic_version SET version_num = $1", SCHEMA_VERSION)
    await product.shipped()
    assert len(await product.rows("SELECT 1 FROM exchanges")) == before + 1
    assert "Traceback" not in running.said()


async def test_only_workers_get_the_keys_of_deployments(
    product: Product, upstream: ScriptedUpstream, thorough: bool
) -> None:
    """Of the children of `up`, the auditor too: it loads all its libraries twice, once for the schema."""
    command, number = ("up", 3) if thorough else ("gateway", 2)
    product.settings["deployments"][0] |= {"api_key": "${UPSTREAM_KEY}", "headers": {"x-token": "${UPSTREAM_TOKEN}"}}
    product.settings["routes"][0]["audit"] = "desk"
    product.settings["audits"] = [{"name": "desk", "proposition": {"text": "Cats are kind."}}]
    product.write()
    key, token = "sk-canary-5e1f0c7a", "token-canary-83d1"
    product.environment |= {"UPSTREAM_KEY": key, "UPSTREAM_TOKEN": token}
    with product.running(command) as running:
        asked = {"model": "gpt", "messages": [{"role": "user", "content": "Hello"}]}
        async with (
            aiohttp.ClientSession() as client,
            client.post(product.url + "/v1/chat/completions", json=asked) as answer,
        ):
            assert answer.status == 200
        sent = {name.lower(): value for name, value in upstream.requests[-1].headers}
        assert (sent["authorization"], sent["x-token"]) == (f"Bearer {key}", token)
        children = [pid for pid in marked_pids(product.mark) if pid != running.process.pid]
        assert len(children) == number
        for pid in children:
            held = Path(f"/proc/{pid}/environ").read_bytes()
            assert key.encode() not in held
            assert token.encode() not in held
        await product.shipped()
        replay = {"select": "origin=client", "formats": "again"}
        if command == "up":
            assert "error" not in await _ended_replay(product, replay)
        # As the auditor starts it, and whoever works on a host without the keys.
        del product.environment["UPSTREAM_KEY"], product.environment["UPSTREAM_TOKEN"]
        options = ("--select", replay["select"], "--formats", replay["formats"], "--json")
        done = product.run("replay", "-c", str(product.config), *options, check=False)
        assert json.loads(done.stdout)["calls"] == 1, done.stderr
        assert key not in running.said()
        assert token not in running.said()


async def _ended_replay(product: Product, choice: dict[str, str]) -> dict[str, Any]:
    """Estimate a replay in the console, and return what it says in the end."""
    runs: list[dict[str, Any]] = []
    async with aiohttp.ClientSession(product.api) as client:

        async def has_ended() -> bool:
            async with client.get("/api/replays") as answer:
                runs[:] = (await answer.json())["runs"]
            return bool(runs) and runs[0]["state"] == "ended"

        async with client.post("/api/replays", json=choice) as answer:
            assert answer.status == 202, await answer.text()
        await eventually(has_ended)
    result: dict[str, Any] = runs[0]["result"]
    return result


@pytest.mark.slow
async def test_a_shipper_that_is_restarted_on_another_schema_stops_nobody(product: Product) -> None:
    with product.running("gateway") as running:
        await product.rows("UPDATE alembic_version SET version_num = '9999'")
        (killed,) = running.pids("-m gateway.processes.ship")
        os.kill(killed, signal.SIGKILL)
        await eventually(lambda: "cannot start (the store has schema 9999" in running.said())
        async with (
            aiohttp.ClientSession() as client,
            client.post(product.url + "/v1/chat/completions", json={"model": "gpt"}) as answer,
        ):
            assert answer.status == 200
        await product.rows("UPDATE alembic_version SET version_num = $1", SCHEMA_VERSION)
        await product.shipped()
        assert len(await product.rows("SELECT 1 FROM exchanges")) == 1
        assert running.pids("-m gateway.processes.ship") != [killed]
        assert "Traceback" not in running.said()


@pytest.mark.slow
async def test_a_product_on_a_store_of_another_version_does_not_start(product: Product) -> None:
    await product.rows("UPDATE alembic_version SET version_num = '9999'")
    said = refused(product, "up")
    assert "has schema 9999" in said


@pytest.mark.slow
async def test_jobs_wait_in_one_line_while_the_schema_is_another(product: Product) -> None:
    with product.running("auditor", until=r"listening on") as running:
        await product.rows("UPDATE alembic_version SET version_num = '9999'")
        await product.rows("ALTER TABLE arrivals RENAME TO arrivals_of_the_next_release")
        await product.rows("ALTER TABLE estimates RENAME TO estimates_of_the_next_release")
        # A session ends up to 20 s after its first failure (`_PATIENCE`), and the next one begins a tick later.
        await eventually(lambda: "jobs wait: the store has schema 9999" in running.said(), 120)
        await eventually(lambda: "series wait: " in running.said(), 120)
        await product.rows("ALTER TABLE arrivals_of_the_next_release RENAME TO arrivals")
        await product.rows("ALTER TABLE estimates_of_the_next_release RENAME TO estimates")
        await product.rows("UPDATE alembic_version SET version_num = $1", SCHEMA_VERSION)
        before = running.said()
        (ended,) = await product.rows("SELECT coalesce(max(id), 0) AS last FROM biasmeter_jobs_log")
        searched = "SELECT 1 FROM biasmeter_jobs_log WHERE id > $1 AND entrypoint = 'find' AND status = 'successful'"
        await product.found(searched, ended["last"])
        await product.rows(
            "INSERT INTO biasmeter_jobs (priority, execute_after, status, entrypoint)"
            " SELECT 1, now() + interval '1 day', 'queued', 'count' FROM generate_series(1, 3)"
        )
        await eventually(lambda: series_show_three_waiting_jobs(product))
        assert running.said() == before


async def series_show_three_waiting_jobs(product: Product) -> bool:
    async with aiohttp.ClientSession() as client, client.get(product.api + "/metrics") as answer:
        return 'biasmeter_jobs{queue="count",state="queued"} 3.0' in await answer.text()


@pytest.mark.slow
def test_a_database_that_is_not_there_is_told_in_one_line_and_waited_for(product: Product) -> None:
    product.settings["store"]["url"] += "_gone"
    product.settings["gateway"]["auth"] = "open"
    product.write()
    with product.running("gateway") as running:
        assert "does not exist" in running.said()
        assert "Traceback" not in running.said()
