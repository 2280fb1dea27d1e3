"""From the spool into a real PostgreSQL: every row once, a bad one costs no other, nothing is thrown away."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest
from support.stores.exchanges import NOON, exchange, full_exchange
from support.stores.small_disks import read_only

from auditor.domain.exchange import Capture, Exchange, Origin, Outcome
from auditor.domain.ids import new_id
from auditor.errors import StoreUnavailable
from gateway.recording import codec
from gateway.recording.counters import Counters
from gateway.recording.quarantine import Quarantine
from gateway.recording.spool import HEAD_BYTES, MAGIC, Segment, SpoolWriter, backlog, segments
from gateway.storing import copy_rows
from gateway.storing.batches import ship_some
from gateway.storing.exchange_store import ExchangeStore


@pytest.fixture
def counters(tmp_path: Path) -> Counters:
    return Counters(tmp_path / "counters" / "shipper.counters")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
async def store(migrated_url: str) -> AsyncIterator[ExchangeStore]:
    connection = await asyncpg.connect(migrated_url, statement_cache_size=0)
    made = ExchangeStore(connection)
    await made.prepare()
    yield made
    connection.terminate()


def spool(folder: Path, *exchanges: Exchange | bytes, finished: bool = True) -> SpoolWriter:
    """Write records into a segment; bytes are written as they are."""
    writer = SpoolWriter(folder, f"w{uuid4().hex}")
    for one in exchanges:
        writer.append(one if isinstance(one, bytes) else codec.encode(one), 1)
    if finished:
        writer.close()
    return writer


async def ship(store: ExchangeStore, folder: Path, counters: Counters, quarantine_max_bytes: int = 1 << 20) -> None:
    """Ship until nothing moves; that must come to an end."""
    quarantine = Quarantine(folder / "quarantine", counters, quarantine_max_bytes)
    for _ in range(50):
        if not await ship_some(store, folder, quarantine):
            return
    pytest.fail("the shipper goes in circles")


async def rows(store: ExchangeStore, table: str = "exchanges") -> list[asyncpg.Record]:
    return await store.connection.fetch(f"SELECT * FROM {table} ORDER BY 1")


async def ids(store: ExchangeStore) -> set[UUID]:
    return {row["id"] for row in await rows(store)}


def quarantined(folder: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in (folder / "quarantine").glob("*"))


def counted(counters: Counters) -> int:
    return counters.get(("biasmeter_spool_quarantined_bytes",))


# --- what is written -------------------------------------------------------------------------------------------------


async def test_every_field_arrives(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    given = full_exchange()
    usual = Exchange._field_defaults
    assert all(getattr(given, name) != default for name, default in usual.items()), "a field was left at its default"
    assert given.tags
    spool(folder, given)
    await ship(store, folder, counters)
    (facts,) = await rows(store)
    (content,) = await rows(store, "exchange_content")
    assert facts["at"] == NOON
    assert json.loads(facts["tags"]) == given.tags
    for name in set(facts.keys()) - {"at", "tags"}:
        assert facts[name] == getattr(given, name), name
    assert (content["id"], content["request"], content["response"]) == (given.id, given.request, given.response)
    assert set(Exchange._fields) == (set(facts.keys()) | set(content.keys())) - {"at"} | {"at_us"}


async def test_what_is_absent_is_null(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    spool(folder, exchange(capture=Capture.HASHED, request=None, response=None))
    await ship(store, folder, counters)
    (facts,) = await rows(store)
    absent = ("key_id", "ref", "parent", "tags", "error_type", "finish_reason", "prompt_tokens", "completion_tokens",
              "first_byte_us", "content_encoding", "request_hash", "response_hash")  # fmt: skip
    assert [facts[name] for name in absent] == [None] * len(absent)
    assert await rows(store, "exchange_content") == []


async def test_a_moment_is_stored_to_the_microsecond(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    moments = [NOON.replace(microsecond=us) for us in (0, 1, 499_999, 500_001, 999_999)]
    spool(folder, *map(exchange, moments))
    await ship(store, folder, counters)
    assert sorted(row["at"] for row in await rows(store)) == moments


@pytest.mark.parametrize("field", ["model", "request_id", "finish_reason", "content_encoding"])
async def test_text_that_postgresql_does_not_hold_is_replaced(
    store: ExchangeStore, folder: Path, counters: Counters, field: str
) -> None:
    spool(folder, exchange(**{field: "a\0b\u0001é😀"}))
    await ship(store, folder, counters)
    (row,) = await rows(store)
    assert row[field] == "a\ufffdb\u0001é😀"
    assert counted(counters) == 0


async def test_half_a_surrogate_pair_is_replaced(store: ExchangeStore) -> None:
    """The spool's encoding does not let one through, but the store is not told so."""
    fields = list(codec.decode_fields(codec.encode(exchange())))
    for name, value in {"model": "a\ud800b", "tags": {"tenant": "\udc00\0"}}.items():
        fields[Exchange._fields.index(name)] = value
    await store.write([copy_rows._row_of(tuple(fields))])
    (row,) = await rows(store)
    assert row["model"] == "a?b"
    assert json.loads(row["tags"]) == {"tenant": "?\ufffd"}


async def test_a_record_of_an_earlier_release_with_fewer_fields_is_read(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    given = exchange(total_us=5, request=None, response=None)
    fields = codec.decode_fields(codec.encode(given))
    defaults = Exchange._field_defaults
    spool(folder, codec.VERSION + msgspec.msgpack.encode(fields[: Exchange._fields.index("upstream_us")]))
    spool(folder, codec.VERSION + msgspec.msgpack.encode(fields[: len(fields) - len(defaults) - 1]))
    await ship(store, folder, counters)
    (facts,) = await rows(store)
    assert (facts["id"], facts["total_us"], facts["upstream_us"], facts["truncated"]) == (given.id, 5, 0, False)
    assert len(quarantined(folder)) == 1


async def test_content_may_be_any_bytes(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    spool(folder, exchange(request=b"\0\xff\xfe", response=bytes(range(256)) * 5000))
    await ship(store, folder, counters)
    (content,) = await rows(store, "exchange_content")
    assert (content["request"], content["response"]) == (b"\0\xff\xfe", bytes(range(256)) * 5000)


# --- again, and again ------------------------------------------------------------------------------------------------


async def test_shipping_twice_gives_the_same_rows(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    """A shipper that dies between commit and mark: the next one ships the same again."""
    given = [exchange(ref=f"r{n}", origin=Origin.PROBE) for n in range(20)]
    spool(folder, *given)
    (path,) = segments(folder)
    kept = path.read_bytes()
    await ship(store, folder, counters)
    before = [await rows(store, table) for table in ("exchanges", "exchange_content", "planned_instances")]
    path.write_bytes(kept)
    await ship(store, folder, counters)
    after = [await rows(store, table) for table in ("exchanges", "exchange_content", "planned_instances")]
    assert after == before
    assert [len(table) for table in after] == [20, 20, 20]
    assert segments(folder) == []


async def test_a_growing_segment_is_shipped_as_it_grows_and_kept_until_it_is_finished(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    writer = spool(folder, exchange(), finished=False)
    for count in range(1, 6):
        await ship(store, folder, counters)
        assert len(await rows(store)) == count
        assert backlog(folder).bytes == 0
        assert len(segments(folder)) == 1
        writer.append(codec.encode(exchange()), 1)
    (path,) = segments(folder)
    with Segment(path) as segment:
        segment.mark(0)  # as after a power cut: all of it is shipped again
    await ship(store, folder, counters)
    assert len(await rows(store)) == 6
    writer.close()
    await ship(store, folder, counters)
    assert list(folder.iterdir()) == []


async def test_half_a_record_is_waited_for(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    writer = spool(folder, exchange(), exchange(), finished=False)
    (path,) = segments(folder)
    whole = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(len(whole) - 10)
        await ship(store, folder, counters)
        assert len(await rows(store)) == 1
        file.seek(len(whole) - 10)
        file.write(whole[-10:])
    await ship(store, folder, counters)
    assert len(await rows(store)) == 2
    assert counted(counters) == 0
    writer.close()


async def test_a_record_larger_than_a_window_is_shipped(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    sizes = [1, 9 << 20, 2, 5 << 20, 3]
    spool(folder, *(exchange(response=bytes(size)) for size in sizes))
    await ship(store, folder, counters)
    assert sorted(len(row["response"]) for row in await rows(store, "exchange_content")) == sorted(sizes)
    assert segments(folder) == []


async def test_a_pass_ends_in_time_for_a_signal(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    """The shipper looks between two passes whether it is to end."""
    quarantine = Quarantine(folder / "quarantine", counters, 1 << 20)
    given = [exchange(response=bytes(3 << 20)) for _ in range(6)]
    for one in given:
        spool(folder, one, exchange())
    paths = segments(folder)
    for left in (5, 4):
        assert await ship_some(store, folder, quarantine, seconds=0)
        assert segments(folder) == paths[6 - left :]
    assert await ship_some(store, folder, quarantine, seconds=60)
    assert segments(folder) == []
    assert len(await rows(store)) == 12


# --- planned instances -----------------------------------------------------------------------------------------------


async def test_the_first_complete_row_of_a_planned_instance_counts(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    incomplete = [exchange(ref="r1", outcome=one) for one in Outcome if one is not Outcome.COMPLETE]
    spool(folder, *incomplete)
    await ship(store, folder, counters)
    assert await rows(store, "planned_instances") == []
    first, second = exchange(ref="r1"), exchange(ref="r1")
    for one in (first, second):
        spool(folder, one)
        await ship(store, folder, counters)
    (planned,) = await rows(store, "planned_instances")
    assert (planned["ref"], planned["exchange_id"]) == ("r1", first.id)
    assert {first.id, second.id} <= await ids(store)


async def test_a_planned_instance_twice_in_one_batch_is_one(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    spool(folder, exchange(ref="r1"), exchange(ref="r1"), exchange(ref="r2"))
    await ship(store, folder, counters)
    assert [row["ref"] for row in await rows(store, "planned_instances")] == ["r1", "r2"]
    assert len(await rows(store)) == 3


# --- days ------------------------------------------------------------------------------------------------------------


async def test_each_day_has_its_partition(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    midnight = datetime(2026, 3, 2, tzinfo=UTC)
    moments = [
        midnight - timedelta(milliseconds=1), midnight, midnight + timedelta(days=1) - timedelta(milliseconds=1),
        midnight + timedelta(days=1), datetime(2024, 2, 29, 12, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2026, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC),
    ]  # fmt: skip
    spool(folder, *map(exchange, moments))
    await ship(store, folder, counters)
    found = await store.connection.fetch("SELECT tableoid::regclass::text AS part, at FROM exchanges ORDER BY at")
    assert {row["at"]: row["part"] for row in found} == {moment: f"exchanges_{moment:%Y%m%d}" for moment in moments}
    content = await store.connection.fetch("SELECT DISTINCT tableoid::regclass::text AS part FROM exchange_content")
    assert {row["part"] for row in content} == {f"exchange_content_{moment:%Y%m%d}" for moment in moments}


async def test_two_shippers_may_make_the_same_days_at_once(migrated_url: str, tmp_path: Path) -> None:
    days = [NOON + timedelta(days=n) for n in range(10)]

    async def ship_all(number: int) -> None:
        connection = await asyncpg.connect(migrated_url, statement_cache_size=0)
        counters = Counters(tmp_path / f"{number}.counters")
        shipper = ExchangeStore(connection)
        await shipper.prepare()
        folder = tmp_path / str(number)
        for turn in range(3):
            spool(folder, *(exchange(day, ref=f"{turn}-{n}") for n, day in enumerate(days)))
            await ship(shipper, folder, counters)
        await connection.close()

    await asyncio.gather(*map(ship_all, range(4)))
    connection = await asyncpg.connect(migrated_url)
    assert await connection.fetchval("SELECT count(*) FROM exchanges") == 4 * 3 * 10
    assert await connection.fetchval("SELECT count(*) FROM planned_instances") == 3 * 10
    await connection.close()


async def test_a_row_of_a_day_that_was_dropped_finds_a_place(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    spool(folder, exchange())
    await ship(store, folder, counters)
    for table in ("exchanges", "exchange_content"):
        await store.connection.execute(f"DROP TABLE {table}_{NOON:%Y%m%d}")
    late = exchange()
    spool(folder, late)
    await ship(store, folder, counters)
    assert await ids(store) == {late.id}
    assert counted(counters) == 0


# --- what cannot be shipped ------------------------------------------------------------------------------------------

POISON: dict[str, dict[str, Any]] = {
    "status beyond smallint": {"status": 2**20},
    "attempts beyond smallint": {"attempts": 2**40},
    "tokens beyond bigint": {"prompt_tokens": 2**63},
    "bytes beyond bigint": {"response_bytes": 2**64 - 1},
    "a moment beyond the calendar": {"at_us": 2**62},
    "an id beyond the calendar": {"id": UUID(int=2**128 - 1)},
    "an inclusion above 1": {"inclusion": 1.5},
    "an inclusion that is none": {"inclusion": float("nan")},
    "nothing captured": {"capture": Capture.OFF},
    "NUL in a name": {"deployment": "a\0b"},
    "NUL in a tag's name": {"tags": {"a\0": "b"}},
}


@pytest.mark.parametrize("changed", POISON.values(), ids=POISON.keys())
async def test_a_row_that_the_store_refuses_costs_no_other(
    store: ExchangeStore, folder: Path, counters: Counters, changed: dict[str, Any]
) -> None:
    good = [exchange() for _ in range(9)]
    bad = exchange(**changed)
    spool(folder, *good[:4], bad, *good[4:])
    await ship(store, folder, counters)
    assert await ids(store) == {one.id for one in good}
    assert quarantined(folder) == [codec.encode(bad)]
    assert counted(counters) == len(codec.encode(bad))
    assert segments(folder) == []


async def test_several_bad_rows_are_all_kept(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    good = [exchange() for _ in range(30)]
    bad = [exchange(status=2**20 + n) for n in range(7)]
    mixed = [*good, *bad]
    mixed.sort(key=lambda one: one.id.int & 0xFFFF)
    spool(folder, *mixed)
    await ship(store, folder, counters)
    assert await ids(store) == {one.id for one in good}
    assert quarantined(folder) == sorted(map(codec.encode, bad))
    assert counted(counters) == sum(len(codec.encode(one)) for one in bad)


async def test_rows_that_exist_and_new_ones_in_one_batch(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    """What two shippers leave, of which the first died: the new rows arrive, and the others stay as they are."""
    old, new = [exchange(finish_reason="stop") for _ in range(3)], [exchange() for _ in range(3)]
    spool(folder, *old)
    await ship(store, folder, counters)
    length = await store.connection.fetchval("SELECT max(position) FROM chain")
    spool(folder, old[0]._replace(finish_reason="length"), new[0], old[1], *new[1:], old[2])
    await ship(store, folder, counters)
    assert await ids(store) == {one.id for one in (*old, *new)}
    assert {row["finish_reason"] for row in await rows(store)} == {"stop", None}
    assert len(await rows(store, "exchange_content")) == 6
    assert await store.connection.fetchval("SELECT max(position) FROM chain") == length + 1
    assert quarantined(folder) == []


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x01",
        b"\x02" + codec.encode(exchange())[1:],
        b"\x01\xc1",
        b"\x01\x80",
        b"{}",
        b"\x01" + b"\x91" * 100_000,
    ],
    ids=["nothing", "no record", "another version", "no msgpack", "no exchange", "JSON", "deep"],
)
async def test_a_record_that_is_none_of_this_release_is_set_aside(
    store: ExchangeStore, folder: Path, counters: Counters, payload: bytes
) -> None:
    good = [exchange(), exchange()]
    spool(folder, good[0], payload, good[1])
    await ship(store, folder, counters)
    assert await ids(store) == {one.id for one in good}
    assert quarantined(folder) == [payload]
    assert counted(counters) == len(payload)


async def test_a_record_of_a_later_release_with_more_fields_is_read(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    """What is only added keeps the version: an older shipper takes what it knows."""
    given = exchange()
    encoded = codec.encode(given)
    size = int.from_bytes(encoded[2:4], "big")
    assert encoded[1] == 0xDC  # an array of 16-bit length
    later = encoded[:2] + (size + 1).to_bytes(2, "big") + encoded[4:] + b"\xa5later"
    spool(folder, later)
    await ship(store, folder, counters)
    assert await ids(store) == {given.id}


async def test_damage_is_set_aside_with_its_bytes(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    good = [exchange() for _ in range(3)]
    spool(folder, *good)
    (path,) = segments(folder)
    data = bytearray(path.read_bytes())
    second = HEAD_BYTES + 24 + len(codec.encode(good[0]))
    third = second + 24 + len(codec.encode(good[1]))
    data[second + 30] ^= 1
    torn = bytes(data[second:third])
    path.write_bytes(bytes(data) + b"trailing")
    await ship(store, folder, counters)
    assert await ids(store) == {good[0].id, good[2].id}
    assert quarantined(folder) == sorted([torn, b"trailing"])
    assert counted(counters) == len(torn) + len(b"trailing")
    names = {path.name for path in (folder / "quarantine").iterdir()}
    assert names == {f"{path.stem}-{second}.bin", f"{path.stem}-{len(data)}.bin"}


async def test_damage_is_counted_once_however_often_it_is_met(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    spool(folder, exchange(), b"\x09nonsense")
    (path,) = segments(folder)
    kept = path.read_bytes()
    for _ in range(3):
        path.write_bytes(kept)
        await ship(store, folder, counters)
    assert quarantined(folder) == [b"\x09nonsense"]
    assert counted(counters) == len(b"\x09nonsense")


async def test_a_store_that_is_gone_marks_and_sets_aside_nothing(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    spool(folder, b"\x09nonsense", exchange(), exchange(status=2**20))
    store.connection.terminate()
    with pytest.raises((StoreUnavailable, asyncpg.InterfaceError, asyncpg.PostgresConnectionError)):
        await ship_some(store, folder, Quarantine(folder / "quarantine", counters, 1 << 20))
    assert [path.suffix for path in folder.iterdir()] == [".segment"]
    assert counted(counters) == 0


@pytest.mark.parametrize("content", [b"not a segment at all", MAGIC[:5], b"BIASSPL9" + bytes(40)])
async def test_a_file_that_is_no_segment_is_set_aside(
    store: ExchangeStore, folder: Path, counters: Counters, content: bytes
) -> None:
    folder.mkdir()
    (folder / "0.segment").write_bytes(content)
    given = exchange()
    spool(folder, given)
    await ship(store, folder, counters)
    assert await ids(store) == {given.id}
    assert quarantined(folder) == [content]
    assert counted(counters) == len(content)
    assert segments(folder) == []


async def test_an_empty_file_is_removed(store: ExchangeStore, folder: Path, counters: Counters) -> None:
    folder.mkdir()
    (folder / "0.segment").touch()
    await ship(store, folder, counters)
    assert list(folder.iterdir()) == []


async def test_a_segment_that_cannot_be_read_stops_no_other(
    store: ExchangeStore, folder: Path, counters: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir()
    (folder / "0folder.segment").mkdir()
    # A file whose reading fails, also for the superuser: nothing is mapped at the start of our own memory.
    (folder / "0unreadable.segment").symlink_to("/proc/self/mem")
    given = [exchange(), exchange()]
    spool(folder, given[0])
    await ship(store, folder, counters)
    spool(folder, given[1])
    await ship(store, folder, counters)
    assert await ids(store) == {one.id for one in given}
    told = [line for line in caplog.records if line.levelno >= logging.ERROR]
    assert len(told) == 1
    assert "0unreadable.segment" in told[0].getMessage()


async def test_damage_that_cannot_be_set_aside_stays_and_stops_no_other(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    spool(folder, exchange(), b"\x09nonsense")
    (path,) = segments(folder)
    (folder / "quarantine").write_text("a file in the place of the folder")
    given = exchange()
    spool(folder, given)
    await ship(store, folder, counters)
    assert given.id in await ids(store)
    assert segments(folder) == [path]
    (folder / "quarantine").unlink()
    await ship(store, folder, counters)
    assert quarantined(folder) == [b"\x09nonsense"]
    assert segments(folder) == []


async def test_a_spool_that_has_become_read_only_is_shipped_once(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    """Neither marks nor removals are possible; the shipper must not repeat the whole spool all the time."""
    given = [exchange(response=bytes(1 << 20)) for _ in range(10)]
    spool(folder, *given[:5])
    writer = spool(folder, *given[5:], finished=False)
    with read_only(folder):
        await ship(store, folder, counters)
        assert await ids(store) == {one.id for one in given}
        assert len(segments(folder)) == 2
    writer.close()
    await ship(store, folder, counters)
    assert len(await rows(store)) == 10
    assert segments(folder) == []
    assert store.unmarked == {}


async def test_the_quarantine_has_a_limit_and_the_oldest_makes_room(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    damaged = [bytes([9, number]) * 2500 for number in range(6)]
    for nonsense in damaged[:4]:
        spool(folder, exchange(), nonsense)
        await ship(store, folder, counters, quarantine_max_bytes=16_000)
    assert quarantined(folder) == damaged[1:4]
    assert counted(counters) == 4 * 5000
    assert counters.get(("biasmeter_spool_quarantine_dropped_bytes",)) == 5000
    # Another shipper goes on with what is there; a file that is no segment takes space as well.
    (folder / "0.segment").write_bytes(damaged[4])
    spool(folder, damaged[5], b"\x09" * 20_000)
    await ship(store, folder, counters, quarantine_max_bytes=16_000)
    assert quarantined(folder) == damaged[3:6]
    assert counters.get(("biasmeter_spool_quarantine_dropped_bytes",)) == 3 * 5000 + 20_000
    assert len(await ids(store)) == 4
    assert segments(folder) == []


async def test_the_quarantine_limits_the_number_of_small_files(
    store: ExchangeStore, folder: Path, counters: Counters
) -> None:
    spool(folder, *(bytes([9, number]) for number in range(50)))
    await ship(store, folder, counters, quarantine_max_bytes=10 * 4096)
    assert quarantined(folder) == [bytes([9, number]) for number in range(40, 50)]


def test_every_kind_of_exchange_can_be_written_and_read() -> None:
    for origin in Origin:
        for outcome in Outcome:
            given = full_exchange()._replace(origin=origin, outcome=outcome, id=new_id(0))
            assert codec.decode(codec.encode(given)) == given
