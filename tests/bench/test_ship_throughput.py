"""The shipper beside a bare COPY of the same rows, in one run.

Run: make measurements PYTEST_ARGS="tests/bench/test_ship_throughput.py -s"
"""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest
from support.faults.harness import record
from support.stores.exchanges import exchange

from auditor.domain.exchange import Exchange
from gateway.recording import codec
from gateway.recording.counters import Counters
from gateway.recording.quarantine import Quarantine
from gateway.recording.spool import SpoolWriter
from gateway.storing.batches import ship_some
from gateway.storing.copy_rows import row_of
from gateway.storing.exchange_store import ExchangeStore

ROWS, ROUNDS = 10_000, 7


@pytest.mark.bench
async def test_the_shipper_takes_at_most_twice_the_time_of_a_bare_copy(tmp_path: Path, migrated_url: str) -> None:
    connection = await asyncpg.connect(migrated_url, statement_cache_size=0)
    store = ExchangeStore(connection)
    await store.prepare()
    await store.write([row_of(codec.encode(exchange()))])  # makes the partition of the day
    server = int(await connection.fetchval("SELECT pg_backend_pid()"))
    bare, shipped = [], []
    for number in range(ROUNDS):
        bare.append(await _bare(connection, server, _rows()))
        shipped.append(await _shipped(store, server, tmp_path / str(number), _rows()))
    assert await connection.fetchval("SELECT count(*) FROM exchanges") == 2 * ROUNDS * ROWS + 1
    await connection.close()
    # The fastest rounds: others on the machine only make a round slower.
    ratio = min(one.seconds for one in bare) / (seconds := min(one.seconds for one in shipped))
    print(f"\nshipper at {ratio:.2f} of the speed of a bare COPY ({ROWS / seconds:,.0f} exchanges/s)")
    for name, rounds in (("bare COPY", bare), ("shipper", shipped)):
        own, of_server = (min(getattr(one, part) for one in rounds) / ROWS * 1e6 for part in ("own", "server"))
        print(f"{name}: CPU us per exchange: the process {own:.1f}, PostgreSQL {of_server:.1f}")
    record({"copy_ratio": ratio, "rows": ROWS, "rounds": ROUNDS, "exchanges_a_second": ROWS / seconds})
    assert ratio >= 0.5


_CONTENT = ("id", "request", "response")
#: The fields of an exchange that are columns of the same name; `at` and `tags` have another form.
_FACTS = ("at", *(name for name in Exchange._fields if name not in {"at_us", "request", "response"}))


def _facts(row: Exchange) -> tuple[object, ...]:
    written = row._asdict() | {
        "at": datetime.fromtimestamp(row.at_us / 1e6, UTC), "tags": json.dumps(row.tags) if row.tags else None
    }  # fmt: skip
    return tuple(written[name] for name in _FACTS)


class Round(NamedTuple):
    """What one round took: seconds, and seconds of CPU of this process and of PostgreSQL's."""

    seconds: float
    own: float
    server: float


class Stopwatch:
    """Times a round; ``server`` is PostgreSQL's process."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._began = time.perf_counter(), time.process_time(), self._of_server()

    def _of_server(self) -> float:
        fields = Path(f"/proc/{self._server}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> Round:
        began, own, server = self._began
        return Round(time.perf_counter() - began, time.process_time() - own, self._of_server() - server)


def _rows() -> list[Exchange]:
    return [exchange(request=b"q" * 1000, response=b"a" * 500, tags={"tenant": "t"}) for _ in range(ROWS)]


async def _bare(connection: asyncpg.Connection, server: int, rows: list[Exchange]) -> Round:
    watch = Stopwatch(server)
    async with connection.transaction():
        for table, columns, records in (
            ("exchanges", _FACTS, [_facts(row) for row in rows]),
            ("exchange_content", _CONTENT, [(row.id, row.request, row.response) for row in rows]),
        ):
            await connection.copy_records_to_table(table, records=records, columns=columns)
    return watch.stop()


async def _shipped(store: ExchangeStore, server: int, folder: Path, rows: list[Exchange]) -> Round:
    writer = SpoolWriter(folder, "w")
    for row in rows:
        writer.append(codec.encode(row), 1)
    writer.close()
    counters = Counters(folder / "shipper.counters")
    quarantine = Quarantine(folder / "quarantine", counters, 1 << 20)
    watch = Stopwatch(server)
    while await ship_some(store, folder, quarantine):
        pass
    return watch.stop()
