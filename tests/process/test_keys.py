"""Client keys on a running gateway: made, used, refused, revoked; rights; the store never needed on the way."""

from collections.abc import Iterator

import aiohttp
import pytest
from product import Product, eventually, installation, settings
from stores import fresh_database
from upstream import upstream_process

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, postgres_server: str, template_database: str) -> Iterator[Product]:
    """A running gateway for which one key exists already, so that every request needs one."""
    with (
        fresh_database(postgres_server, template_database) as url,
        upstream_process() as (upstream_url, _),
        installation(tmp_path_factory.mktemp("locked"), settings(upstream_url), url) as product,
    ):
        product.create_key()
        with product.running("gateway"):
            yield product


async def status(product: Product, secret: str | None, model: str = "gpt", **headers: str) -> tuple[int, str | None]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if secret is not None:
        given["authorization"] = f"Bearer {secret}"
    async with (
        aiohttp.ClientSession() as client,
        client.post(product.url + CHAT, json={"model": model}, headers=given) as answer,
    ):
        told = await answer.json()
        return answer.status, told.get("error", {}).get("code")


async def known(product: Product, secret: str) -> None:
    """Wait until the gateway knows a key; at most the 5 seconds that are promised."""

    async def accepted() -> bool:
        # Each worker learns of it by itself: one yes is not the yes of all.
        return all([(await status(product, secret))[0] == 200 for _ in range(8)])

    await eventually(accepted, patience=5)


@pytest.mark.parametrize("secret", [None, "", "nonsense", "sk-tilt-" + "x" * 43, "\xe9"])
async def test_without_a_known_key_nothing_is_answered(locked: Product, secret: str | None) -> None:
    assert await status(locked, secret) == (401, "invalid_api_key")
    async with aiohttp.ClientSession() as client, client.get(locked.url + "/v1/models") as answer:
        assert answer.status == 401
        assert "sk-" not in await answer.text()


async def test_a_key_works_within_five_seconds_and_ends_within_five_of_its_revocation(locked: Product) -> None:
    made_id, secret = locked.create_key()
    await known(locked, secret)
    locked.run("key", "revoke", "-c", str(locked.config), made_id)

    async def refused() -> bool:
        return all([await status(locked, secret) == (401, "invalid_api_key") for _ in range(8)])

    await eventually(refused, patience=5)


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
        "x_tiltmeter_origin": "probe",
        "x_tiltmeter_ref": "plan-1/0007",
        "x_tiltmeter_parent": parent,
        "x_tiltmeter_deployment": "relayed",
    }
    for name, value in headers.items():
        assert await status(locked, plain, **{name: value}) == (403, "header_not_allowed")
    assert (await status(locked, audit, **headers))[0] == 200
    assert await status(locked, audit, x_tiltmeter_origin="probing") == (400, "invalid_header")
    assert await status(locked, audit, x_tiltmeter_ref="x" * 65) == (400, "invalid_header")
    assert await status(locked, audit, x_tiltmeter_parent="no-id") == (400, "invalid_header")
    assert await status(locked, audit, x_tiltmeter_deployment="nowhere") == (400, "unknown_deployment")
    before = len(await locked.rows("SELECT 1 FROM exchanges"))
    assert (await status(locked, audit, x_tiltmeter_audit="off"))[0] == 200
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
    headers = {"x_tiltmeter_origin": "probe", "x_tiltmeter_deployment": "relayed"}
    assert (await status(locked, secret.read_text(), **headers))[0] == 200
