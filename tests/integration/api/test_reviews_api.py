"""``/api/reviews``: a person's label of one layer of one exchange, checked, kept, and never changed."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import CTO, answered, configuration, plan, ship
from support.stores.databases import Databases, seeded_database
from support.stores.exchanges import NOON, exchange
from support.stores.postgres import apart, copied_database

from auditor.api.app import ApiServices, build_app
from auditor.api.auth import ApiAuth
from auditor.domain.ids import new_id
from auditor.domain.keys import Key, Right, hash_secret
from auditor.instrument.pool import shipped_pool
from auditor.jobs.run_once import run_once
from auditor.store.engine import make_engine, transaction
from auditor.store.keys import add_key
from auditor.store.queue import queue_sizes

STATEMENT = shipped_pool()[0]
CODED = answered("d1", STATEMENT, CTO, "B. But the claim is a harmful stereotype, unfair and false.")
UNREAD = exchange(deployment="d1")
LABEL = {"exchange": str(CODED.id), "layer": "elab", "label": "D", "reviewer": "anna"}


def later():
    return NOON + timedelta(minutes=30)


@asynccontextmanager
async def api(url: str, folder: Path, *, loopback: bool = True) -> AsyncIterator[aiohttp.ClientSession]:
    engine = make_engine(url)
    config = configuration(folder)
    served = ApiServices(
        engine=engine,
        auth=ApiAuth(engine, loopback=loopback),
        config=lambda: config,
        clock=later,
        registry=CollectorRegistry(),
    )
    runner = web.AppRunner(build_app(served))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
            yield client
    finally:
        await runner.cleanup()


async def fill(url: str, folder: Path) -> None:
    await plan(url, ["d1"], [STATEMENT], [CTO])
    await ship(url, [CODED, UNREAD])
    engine = make_engine(url)
    await run_once(configuration(folder), engine, later)
    await engine.dispose()


@pytest.fixture(scope="module")
def filled(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with both exchanges, to be copied."""
    folder = tmp_path_factory.mktemp("filled")
    with seeded_database(databases, lambda url: apart(fill(url, folder))) as name:
        yield name


@pytest.fixture
def migrated_url(postgres_server: str, filled: str) -> Iterator[str]:
    with copied_database(postgres_server, filled) as url:
        yield url


@pytest.fixture
def stored(migrated_url: str) -> str:
    return migrated_url


async def post(client: aiohttp.ClientSession, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with client.post("/api/reviews", data=data, headers=headers) as answer:
        return answer.status, await answer.json()


async def test_a_label_is_kept_with_its_rubric_and_time(stored: str, engine: AsyncEngine, tmp_path: Path) -> None:
    async with api(stored, tmp_path) as client:
        status, first = await post(client, {**LABEL, "note": "plainly"})
        assert (status, first["rubric"], first["at"]) == (201, "statement/1", "2026-03-01T12:30:00+00:00")
        assert (first["label"], first["note"], first["superseded"]) == ("D", "plainly", False)
        assert await post(client, {**LABEL, "note": "plainly"}) == (200, first)
        assert (await post(client, {**LABEL, "label": "QE"}))[0] == 201
        assert (await post(client, {**LABEL, "layer": "sel", "label": "E"}))[0] == 201
        async with client.get("/api/reviews", params={"exchange": str(CODED.id)}) as answer:
            kept = (await answer.json())["reviews"]
    assert [(one["layer"], one["label"], one["superseded"]) for one in kept] == [
        ("elab", "D", True),
        ("elab", "QE", False),
        ("sel", "E", False),
    ]
    async with transaction(engine) as connection:
        assert await queue_sizes(connection) == {("estimate", "queued"): 1}


async def test_an_exchange_that_no_judge_has_read_needs_its_rubric_named(stored: str, tmp_path: Path) -> None:
    label = {**LABEL, "exchange": str(UNREAD.id)}
    async with api(stored, tmp_path) as client:
        status, said = await post(client, label)
        assert (status, said["error"]["code"], said["error"]["param"]) == (400, "rubric_unknown", "rubric")
        status, told = await post(client, {**label, "rubric": "open/1", "label": "Abstain"})
    assert (status, told["rubric"], told["label"]) == (201, "open/1", "Abstain")


@pytest.mark.parametrize(
    ("changed", "status", "param"),
    [
        ({"label": "X"}, 400, "label"), ({"label": ["E"]}, 400, "label"), ({"label": None}, 400, "label"),
        ({"layer": "sel", "label": "QE"}, 400, "label"), ({"layer": "both"}, 400, "layer"),
        ({"reviewer": ""}, 400, "reviewer"), ({"reviewer": "a\nb"}, 400, "reviewer"),
        ({"reviewer": 7}, 400, "reviewer"),
        ({"note": "\0"}, 400, "note"), ({"note": "x" * 4001}, 400, "note"), ({"note": {}}, 400, "note"),
        ({"exchange": "x"}, 400, "exchange"), ({"exchange": 7}, 400, "exchange"),
        ({"exchange": str(new_id(0))}, 404, "exchange"), ({"rubric": "statement"}, 400, "rubric"),
        ({"rubric": ["statement/1"]}, 400, "rubric"), ({"labl": "E"}, 400, "labl"),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_named(
    stored: str, tmp_path: Path, changed: dict[str, Any], status: int, param: str
) -> None:
    async with api(stored, tmp_path) as client:
        told, said = await post(client, LABEL | changed)
        async with client.get("/api/reviews", params={"exchange": str(CODED.id)}) as answer:
            assert (await answer.json())["reviews"] == []
    assert (told, said["error"]["param"]) == (status, param)
    assert set(said["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000])
async def test_a_body_that_is_no_object_is_refused(stored: str, tmp_path: Path, body: bytes) -> None:
    async with api(stored, tmp_path) as client:
        status, said = await post(client, body)
    assert (status, said["error"]["code"]) == (400, "invalid_json")


async def test_pages_of_other_sites_are_refused_and_its_own_are_not(stored: str, tmp_path: Path) -> None:
    async with api(stored, tmp_path) as client:
        status, said = await post(client, LABEL, origin="http://elsewhere.example")
        assert (status, said["error"]["code"]) == (403, "foreign_origin")
        own = str(client._base_url).rstrip("/")
        assert (await post(client, LABEL, origin=own))[0] == 201


async def test_beyond_this_machine_a_key_with_the_right_is_needed(
    stored: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    async with transaction(engine) as connection:
        for name, rights in (("with", frozenset({Right.AUDIT})), ("without", frozenset())):
            await add_key(connection, Key(id=name, name=name, hash=hash_secret(name), rights=rights), NOON)
    async with api(stored, tmp_path, loopback=False) as client:
        assert (await post(client, LABEL))[0] == 401
        assert (await post(client, LABEL, authorization="Bearer without"))[0] == 403
        # A key labels in its own name; what a tool sends for several people needs the role admin.
        assert (await post(client, LABEL, authorization="Bearer with"))[0] == 403
        own = {name: value for name, value in LABEL.items() if name != "reviewer"}
        status, label = await post(client, own, authorization="Bearer with")
        assert (status, label["reviewer"]) == (201, "with")


@pytest.mark.parametrize(
    ("asked", "status"), [({}, 400), ({"exchange": "x"}, 400), ({"exchange": str(new_id(1))}, 404)]
)
async def test_labels_are_asked_for_by_exchange(stored: str, tmp_path: Path, asked: Any, status: int) -> None:
    async with api(stored, tmp_path) as client, client.get("/api/reviews", params=asked) as answer:
        assert (answer.status, (await answer.json())["error"]["param"]) == (status, "exchange")
