"""Erasure: what is selected is gone from every table, the rest stays, numbers are counted again, the chain verifies."""

import asyncio
import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import TRAFFIC, asked_body, configuration, fetch, ship, verdict
from support.stores.coded_store import LATER
from support.stores.exchanges import NOON, exchange

from auditor.domain.erasure import ErasureSelector, SelectorKind
from auditor.domain.exchange import Exchange, Origin
from auditor.domain.ids import floor_id
from auditor.jobs.code import code_chunk, find_chunks
from auditor.jobs.run_once import run_once
from auditor.store.chain import verify_chain
from auditor.store.engine import transaction
from auditor.store.erasure import TABLES, begin_erasure, count_selected, end_erasure, erase, find_selected
from auditor.work import open_work

USER, OTHER = "Zoë/7", "zoe"
#: The first exchange that retention keeps.
KEPT_FROM = floor_id(NOON - timedelta(days=400))


def by(kind: str, value: str, tag: str = "") -> ErasureSelector:
    return ErasureSelector(kind=SelectorKind(kind), value=value, tag=tag)


def traffic() -> list[Exchange]:
    """Twelve exchanges of three tenants and two keys; three name the user, one of them in a request that was cut."""
    made = []
    for index in range(12):
        request = asked_body("system words", f"Old people are slow, part {index}.")
        if index in {2, 5}:
            request = asked_body("system words", "Old people are slow.", user=USER)
        if index == 8:
            request = json.dumps({"safety_identifier": USER, "messages": "x" * 50}, ensure_ascii=False).encode()[:60]
        changed: dict[str, Any] = {
            "request": request,
            "key_id": f"key_{index % 2}",
            "tags": {"tenant": f"t{index % 3}"},
        }
        made.append(verdict("E", "D", index, **changed))
    about = {"origin": Origin.PEER, "parent": made[2].id, "route": "chat", "tags": {}}
    return [
        *made,
        exchange(NOON + timedelta(minutes=1), **about),
        exchange(NOON + timedelta(minutes=2), tags={"tenant": "x"}),
    ]


SELECTED = {
    "exchange": (by("exchange", "{2}"), {2, 12}),
    "key": (by("key", "key_1"), {1, 3, 5, 7, 9, 11}),
    "tag": (by("tag", "t2", "tenant"), {2, 5, 8, 11, 12}),
    "user": (by("user", USER), {2, 5, 8, 12}),
    "nobody": (by("user", OTHER), set()),
}


@pytest.mark.parametrize("case", SELECTED)
async def test_what_is_selected_goes_and_the_rest_is_counted_again(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path, case: str
) -> None:
    made, config = traffic(), configuration(tmp_path, TRAFFIC)
    await ship(migrated_url, made)
    await run_once(config, engine, lambda: LATER)
    selector, places = SELECTED[case]
    if case == "exchange":
        selector = by("exchange", str(made[2].id))
    expected = {made[place].id for place in places}
    found = await find_selected(engine, selector, [])
    assert found == expected
    counts = await count_selected(engine, found)
    assert counts.get("exchanges", 0) == len(expected)
    before = {table: await rows_of(migrated_url, table) for table in TABLES}
    await begin_erasure(engine, "erasure_1", selector, "ana", LATER)
    removed = await erase(engine, "erasure_1", found)
    await end_erasure(engine, "erasure_1", removed)
    assert removed == counts
    assert await find_selected(engine, selector, []) == (expected if case == "exchange" else set()) - {made[12].id}
    for table in TABLES:
        kept = [row for row in before[table] if row[0] not in expected]
        assert await rows_of(migrated_url, table) == kept, table
    state = await verify_chain(engine, KEPT_FROM)
    assert (state.fault, state.rows, state.head.erased) == (None, len(made) - len(expected), len(expected))
    await run_once(config, engine, lambda: LATER)
    tiles = await fetch(migrated_url, "SELECT coalesce(sum(n), 0)::int FROM tallies")
    codings = await fetch(migrated_url, "SELECT count(*)::int FROM codings")
    assert tiles == codings
    ((record,),) = await fetch(migrated_url, "SELECT e::text FROM erasures e")
    assert "ana" in record
    assert selector.digest("erasure_1") in record
    assert len(selector.value) < 5 or selector.value not in record


async def rows_of(url: str, table: str) -> list[tuple[UUID, str]]:
    rows = await fetch(url, f"SELECT {TABLES[table]}, t::text FROM {table} t ORDER BY 1, 2")
    return [tuple(row) for row in rows]


async def test_a_user_is_found_by_the_cluster_after_the_content_is_gone(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    rules = TRAFFIC.replace("    cluster: {tag: tenant}\n", "")
    made = [verdict("E", "D", index, request=asked_body("s", "Old?", user=f"u{index}")) for index in range(3)]
    await ship(migrated_url, made)
    await run_once(configuration(tmp_path, rules), engine, lambda: LATER)
    await fetch(migrated_url, "DELETE FROM exchange_content")
    assert await find_selected(engine, by("user", "u1"), ["moderation"]) == {made[1].id}
    # Of an audit that clusters by something else, an equal digest says nothing about users.
    assert await find_selected(engine, by("user", "u1"), []) == set()


async def test_what_is_being_coded_while_it_is_erased_does_not_come_back(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    made = [verdict("E", "D", index) for index in range(3)]
    await ship(migrated_url, made)
    async with open_work(engine, configuration(tmp_path, TRAFFIC), lambda: LATER) as work:
        async with transaction(engine) as connection:
            (chunk,) = await find_chunks(connection, work)
        reader = work.coders[chunk.coder]
        coding, gate = threading.Event(), threading.Event()
        code = type(reader).code

        async def slowly(self: Any, stored: Any) -> Any:
            coding.set()
            assert await asyncio.to_thread(gate.wait, 120)
            return await code(self, stored)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(reader), "code", slowly)
            running = asyncio.create_task(code_chunk(work, chunk))
            assert await asyncio.to_thread(coding.wait, 120)
            await begin_erasure(engine, "erasure_1", by("exchange", str(made[1].id)), "ana", datetime.now(UTC))
            await erase(engine, "erasure_1", {made[1].id})
            gate.set()
            await running
    coded = await fetch(migrated_url, "SELECT exchange_id FROM codings ORDER BY 1")
    assert [row[0] for row in coded] == [made[0].id, made[2].id]
    assert await fetch(migrated_url, "SELECT count(*) FROM votes WHERE exchange_id = $1", made[1].id) == [(0,)]


async def test_an_erased_exchange_that_is_imported_again_is_a_new_one_of_the_chain(
    migrated_url: str, engine: AsyncEngine
) -> None:
    made = [exchange(NOON + timedelta(seconds=index)) for index in range(3)]
    await ship(migrated_url, made)
    await begin_erasure(engine, "erasure_1", by("exchange", str(made[1].id)), "ana", LATER)
    await erase(engine, "erasure_1", {made[1].id})
    await ship(migrated_url, [made[1]._replace(model="other")])
    state = await verify_chain(engine, KEPT_FROM)
    assert (state.fault, state.rows, state.head.erased, state.length) == (None, 3, 1, 2)
    await fetch(migrated_url, "DELETE FROM exchanges WHERE id = $1", made[1].id)
    state = await verify_chain(engine, KEPT_FROM)
    assert state.fault is not None
    assert (state.fault.kind, state.fault.position) == ("missing", 2)
