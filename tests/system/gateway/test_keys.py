"""Client keys on a running gateway: made, used, refused, revoked; rights; the store never needed on the way."""

import asyncio
import resource
from collections import Counter
from collections.abc import Iterator

import aiohttp
import asyncpg
import pytest
from support.clients.each_worker import ask_each_worker
from support.servers.product import Product, Running, installation, settings
from support.stores.databases import Databases
from support.waiting import eventually

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, databases: Databases, answering_url: str
) -> Iterator[tuple[Product, Running]]:
    """A running gateway for which one key exists already, so that every request needs one."""
    with (
        databases.fresh() as url,
        installation(tmp_path_factory.mktemp("locked"), settings(answering_url), url) as product,
    ):
        product.create_key()
        with product.running("gateway") as running:
            yield product, running


@pytest.fixture
def locked(served: tuple[Product, Running]) -> Product:
    return served[0]


async def ask(
    client: aiohttp.ClientSession, product: Product, secret: str | None, model: str = "gpt", **headers: str
) -> tuple[int, str | None]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if secret is not None:
        given["authorization"] = f"Bearer {secret}"
    async with client.post(product.url + CHAT, json={"model": model}, headers=given) as answer:
        told = await answer.json()
        return answer.status, told.get("error", {}).get("code")


async def status(product: Product, secret: str | None, model: str = "gpt", **headers: str) -> tuple[int, str | None]:
    async with aiohttp.ClientSession() as client:
        return await ask(client, product, secret, model, **headers)


async def all_answer(product: Product, secret: str, wanted: tuple[int, str | None], patience: float = 5) -> None:
    """Wait until every worker answers a key so; at most the 5 seconds that are promised."""

    async def answered() -> bool:
        if await status(product, secret) != wanted:  # costs less than to look for each worker
            return False
        return set(await ask_each_worker(product, lambda client: ask(client, product, secret))) == {wanted}

    await eventually(answered, patience)


async def known(product: Product, secret: str) -> None:
    await all_answer(product, secret, (200, None))


async def refused(product: Product, secret: str) -> None:
    await all_answer(product, secret, (401, "invalid_api_key"))


@pytest.mark.parametrize("secret", [None, "", "nonsense", "sk-bias-" + "x" * 43, "\xe9"])
async def test_without_a_known_key_nothing_is_answered(locked: Product, secret: str | None) -> None:
    assert await status(locked, secret) == (401, "invalid_api_key")
    async with aiohttp.ClientSession() as client, client.get(locked.url + "/v1/models") as answer:
        assert answer.status == 401
        assert "sk-" not in await answer.text()


async def test_a_key_works_within_five_seconds_and_ends_within_five_of_its_revocation(locked: Product) -> None:
    made_id, secret = locked.create_key()
    await known(locked, secret)
    locked.run("key", "revoke", "-c", str(locked.config), made_id)
    await refused(locked, secret)


async def test_a_lock_on_the_exchanges_delays_no_revocation(locked: Product) -> None:
    """A DROP TABLE behind an open read holds up the shipping of exchanges; keys must not wait for it."""
    other_id, other = locked.create_key()
    made_id, secret = locked.create_key()
    await known(locked, other)
    await known(locked, secret)
    holder = await asyncpg.connect(locked.database_url)
    async with holder.transaction():
        await holder.execute("LOCK TABLE exchanges IN ACCESS EXCLUSIVE MODE")
        for _ in range(20):
            assert (await status(locked, other))[0] == 200

        async def shipping_waits() -> bool:
            waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            return bool(await locked.rows(waiting))

        await eventually(shipping_waits)
        locked.run("key", "revoke", "-c", str(locked.config), made_id)
        await refused(locked, secret)
        assert locked.spooled() > 0
    await holder.close()
    await locked.shipped()
    assert len(await locked.rows("SELECT 1 FROM exchanges WHERE key_id = $1", other_id)) >= 20


async def test_an_expired_key_is_refused(locked: Product) -> None:
    _, secret = locked.create_key("--expires", "4s")
    await known(locked, secret)

    async def refused() -> bool:
        return await status(locked, secret) == (401, "invalid_api_key")

    await eventually(refused, patience=10)


async def test_a_key_for_some_models_gets_no_other(locked: Product) -> None:
    _, secret = locked.create_key("--models", "gpt")
    await known(locked, secret)
    assert await status(locked, secret, "ordinary") == (403, "model_not_allowed")
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {secret}"}) as client:
        async with client.get(locked.url + "/v1/models") as answer:
            assert [model["id"] for model in (await answer.json())["data"]] == ["gpt"]
        async with client.get(locked.url + "/v1/models/gpt") as answer:
            assert (answer.status, (await answer.json())["id"]) == (200, "gpt")
        async with client.get(locked.url + "/v1/models/ordinary") as answer:
            assert answer.status == 404


async def test_rights_are_honoured_and_their_absence_is_named(locked: Product) -> None:
    _, plain = locked.create_key()
    _, audit = locked.create_key("--allow", "pin,origin,audit-off")
    await known(locked, plain)
    await known(locked, audit)
    parent = "01890000-0000-7000-8000-000000000000"
    headers = {
        "x_biasmeter_origin": "probe",
        "x_biasmeter_ref": "plan-1/0007",
        "x_biasmeter_parent": parent,
        "x_biasmeter_deployment": "relayed",
    }
    for name, value in headers.items():
        assert await status(locked, plain, **{name: value}) == (403, "header_not_allowed")
    assert (await status(locked, audit, **headers))[0] == 200
    assert await status(locked, audit, x_biasmeter_origin="probing") == (400, "invalid_header")
    assert await status(locked, audit, x_biasmeter_ref="x" * 65) == (400, "invalid_header")
    assert await status(locked, audit, x_biasmeter_parent="no-id") == (400, "invalid_header")
    assert await status(locked, audit, x_biasmeter_deployment="nowhere") == (400, "unknown_deployment")
    before = len(await locked.rows("SELECT 1 FROM exchanges"))
    assert (await status(locked, audit, x_biasmeter_audit="off"))[0] == 200
    await locked.shipped()
    (row,) = await locked.rows("SELECT * FROM exchanges WHERE origin = 'probe'")
    assert (row["ref"], str(row["parent"]), row["deployment"]) == ("plan-1/0007", parent, "relayed")
    (planned,) = await locked.rows("SELECT * FROM planned_instances")
    assert (planned["ref"], planned["exchange_id"]) == ("plan-1/0007", row["id"])
    assert len(await locked.rows("SELECT 1 FROM exchanges")) >= before


async def test_only_the_hash_of_a_key_is_anywhere(locked: Product) -> None:
    _, secret = locked.create_key()
    await known(locked, secret)
    await locked.shipped()
    async with aiohttp.ClientSession() as client, client.get(locked.url + "/metrics") as answer:
        assert secret not in await answer.text()
    held = [path for path in locked.folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert held == []
    for table in ("client_keys", "exchanges", "exchange_content"):
        rows = await locked.rows(f"SELECT t::text AS line FROM {table} t")
        assert not any(secret in row["line"] for row in rows)


async def test_the_auditor_on_this_host_has_every_right_through_a_file_only_the_owner_reads(locked: Product) -> None:
    secret = locked.data_dir / "gateway" / "audit.secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    headers = {"x_biasmeter_origin": "probe", "x_biasmeter_deployment": "relayed"}
    assert (await status(locked, secret.read_text(), **headers))[0] == 200


def without_files(running: Running) -> Counter[str]:
    """How often each worker has told that it could open no file."""
    lines = running.said().splitlines()
    return Counter(line.partition(": ")[0] for line in lines if "Too many open files" in line)


async def test_keys_are_followed_after_a_moment_without_file_descriptors(served: tuple[Product, Running]) -> None:
    product, running = served
    revoked_id, revoked = product.create_key()
    await known(product, revoked)
    workers = running.pids("gateway.processes.worker")
    limits = resource.prlimit(workers[0], resource.RLIMIT_NOFILE)
    for worker in workers:
        # Below what is open already: each further open() fails with EMFILE.
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (3, limits[1]))
    _, made = product.create_key()
    product.run("key", "revoke", "-c", str(product.config), revoked_id)
    await eventually(lambda: len(without_files(running)) == len(workers))
    # Two more rounds of maintenance, which nothing tells of: that would need a file, and a line is one too many.
    await asyncio.sleep(1.2)
    for worker in workers:
        resource.prlimit(worker, resource.RLIMIT_NOFILE, limits)
    await all_answer(product, revoked, (401, "invalid_api_key"), patience=10)
    await all_answer(product, made, (200, None), patience=10)
    assert max(without_files(running).values()) <= 3, running.said()
    assert running.pids("gateway.processes.worker") == workers
