"""Stored exchanges as lines of a file: everything that is kept, the oldest first, the same bytes each time."""

import gzip
import json
import tracemalloc
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import ANSWERS, CTO, answered, plan, ship
from support.stores.exchanges import NOON, exchange, full_exchange
from support.stores.many_exchanges_store import fill

from auditor.documents.jsonl import parse
from auditor.domain.exchange import Capture, Exchange, Origin
from auditor.errors import InputError
from auditor.instrument.pool import shipped_pool
from replay.files.exchange_line import exchange_of, record_of
from replay.files.export import export_exchanges
from replay.selection import read_selection

STATEMENT = shipped_pool()[0]


async def exported(
    engine: AsyncEngine, out: Path, select: str = "all", *, content: bool = True
) -> list[dict[str, Any]]:
    """The lines of an export, having looked at what it says of itself."""
    told: list[tuple[int, int]] = []
    count = await export_exchanges(
        engine, read_selection(select), out, content=content, on_progress=lambda *done: told.append(done)
    )
    packed = out.read_bytes()
    lines = (gzip.decompress(packed) if out.suffix == ".gz" else packed).splitlines()
    assert count == len(lines)
    assert told[-1] == (count, count)
    return [json.loads(line) for line in lines]


async def test_everything_that_is_kept_is_in_the_line(migrated_url: str, engine: AsyncEngine, tmp_path: Path):
    every = full_exchange()
    await ship(migrated_url, [every])
    (line,) = await exported(engine, tmp_path / "out.jsonl")
    assert UUID(line["id"]) == every.id
    assert (line["at"], line["origin"], line["outcome"]) == ("2026-03-01T12:00:00Z", "probe", "cut")
    assert line["tags"] == {"tenant": "é", "empty": ""}
    assert line["response_hash"] == "ff" * 32
    assert (line["inclusion"], line["chance"], line["truncated"], line["redacted"]) == (0.25, 1.0, True, True)
    # A body that is no text is packed; one that says gzip and is none stays as it is.
    assert (line["request_base64"], line["response"], line["content_encoding"]) == ("AP8=", "", "gzip")
    assert "request" not in line


async def test_compressed_answers_are_opened_and_facts_can_go_alone(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
):
    await ship(migrated_url, [exchange(response=gzip.compress(b'{"choices":[]}'), content_encoding="gzip")])
    (line,) = await exported(engine, tmp_path / "out.jsonl.gz")
    assert (line["request"], line["response"]) == ('{"model":"gpt"}', '{"choices":[]}')
    assert "content_encoding" not in line
    (facts,) = await exported(engine, tmp_path / "facts.jsonl", content=False)
    assert facts["capture"] == "full"
    assert not {"request", "response", "request_base64", "response_base64"} & facts.keys()


async def test_probes_say_what_they_were_asked_and_can_be_picked_by_it(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
):
    await plan(migrated_url, ["d1"], [STATEMENT], [CTO])
    await ship(
        migrated_url, [answered("d1", STATEMENT, CTO, ANSWERS["E|E"]), exchange(), exchange(origin=Origin.JUDGE)]
    )
    lines = await exported(engine, tmp_path / "out.jsonl")
    assert {line["origin"] for line in lines} == {"probe", "client"}
    (probe,) = await exported(engine, tmp_path / "out.jsonl", "task=CTO,plan=p1")
    assert probe["asked"]["statement_id"] == STATEMENT.id
    assert (probe["asked"]["task"], probe["asked"]["role"]) == ("CTO", "none")
    assert await exported(engine, tmp_path / "out.jsonl", "task=SC") == []


async def test_a_draw_is_exported_with_its_chances_and_the_same_bytes_each_time(
    migrated_url: str, engine: AsyncEngine, tmp_path: Path
):
    many = [exchange(NOON + timedelta(hours=number), inclusion=1.0 if number < 60 else 0.25) for number in range(80)]
    await ship(migrated_url, many)
    first = await exported(engine, tmp_path / "a.jsonl.gz", "limit=14,seed=3,draw=traffic")
    await exported(engine, tmp_path / "b.jsonl.gz", "limit=14,seed=3,draw=traffic")
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert {(line["inclusion"], line["chance"]) for line in first} == {(1.0, 0.1), (0.25, 0.4)}
    assert [line["id"] for line in first] == sorted(line["id"] for line in first)
    everything = await exported(engine, tmp_path / "all.jsonl")
    assert [UUID(line["id"]) for line in everything] == [one.id for one in many]


async def test_an_export_that_fails_leaves_no_file(engine: AsyncEngine, tmp_path: Path):
    out = tmp_path / "none" / "out.jsonl"
    with pytest.raises(InputError, match=r"out\.jsonl: cannot be written"):
        await export_exchanges(engine, read_selection("all"), out, content=True, on_progress=lambda *_: None)
    assert list(tmp_path.iterdir()) == []


def row_of(one: Exchange) -> dict[str, Any]:
    """An exchange as the store's columns have it."""
    facts = {name: getattr(one, name) for name in one._fields if name != "at_us"}
    return facts | {"at": NOON}


bodies = st.none() | st.binary(max_size=30) | st.text(max_size=30).map(lambda text: text.encode("utf-8", "replace"))
no_nul = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=10)


@given(request=bodies, response=bodies, tags=st.dictionaries(no_nul, no_nul, max_size=3), chance=st.floats(0.01, 1))
def test_a_line_is_read_back_as_what_it_was(request, response, tags, chance):
    sent = exchange(
        request=request, response=response, tags=tags, capture=Capture.HASHED if request is None else Capture.FULL
    )
    line = record_of(row_of(sent), chance)
    found = exchange_of(parse(json.dumps(line, default=str).encode()))
    assert found.id == sent.id
    assert (found.request, found.response, found.tags) == (request, response, tags)
    assert found.inclusion == chance
    assert (found.at_us, found.capture, found.request_id) == (sent.at_us, sent.capture, sent.request_id)


async def test_an_export_holds_little_of_what_it_writes(migrated_url: str, engine: AsyncEngine, tmp_path: Path):
    count = 6000
    await fill(migrated_url, count, NOON, days=3, words=300)
    out = tmp_path / "out.jsonl"
    tracemalloc.start()
    try:
        written = await export_exchanges(engine, read_selection("all"), out, content=True, on_progress=lambda *_: None)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert written == count
    assert out.stat().st_size > 24e6
    assert most < out.stat().st_size / 2
