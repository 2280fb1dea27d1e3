"""The shippers of many gateway hosts as processes on one PostgreSQL, and what they and the server use.

A host is a data folder with a spool and the process that `biasmeter gateway` starts to ship it. Workers are left out:
the test writes into the spools what they would write.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import asyncpg
from support.stores.audited_store import configuration
from support.stores.exchanges import exchange
from support.waiting import eventually

from auditor.parent_pipe import pack
from gateway import bootstrap
from gateway.recording import codec
from gateway.recording.spool import SpoolWriter, backlog

_TICKS = os.sysconf("SC_CLK_TCK")
#: Shippers that start at once: each takes most of a second of CPU to import.
_AT_ONCE = 4


class Usage(NamedTuple):
    """Seconds of CPU of the shippers and of PostgreSQL, and the time at which they were read."""

    at: float
    shippers: float
    server: float

    def since(self, earlier: "Usage") -> "Usage":
        return Usage(*(now - then for now, then in zip(self, earlier, strict=True)))


def cpu_of(pid: int, *, with_ended_children: bool = False) -> float:
    """Seconds of CPU of a process that runs, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if with_ended_children else 13])) / _TICKS


def server_cpu(postmaster: int) -> float:
    """Seconds of CPU of a PostgreSQL server with all its processes, also those that have ended."""
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    total = cpu_of(postmaster, with_ended_children=True)
    for child in children:
        try:
            total += cpu_of(int(child))
        except (FileNotFoundError, ProcessLookupError):  # it ended just now; the next reading has it
            continue
    return total


async def postmaster_of(connection: asyncpg.Connection) -> int:
    backend = int(await connection.fetchval("SELECT pg_backend_pid()"))
    return int(Path(f"/proc/{backend}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


@dataclass(slots=True)
class Host:
    """A gateway host without its workers."""

    writer: SpoolWriter
    spool: Path
    process: "subprocess.Popen[bytes]"


@dataclass(slots=True)
class ShippingFleet:
    """Hosts whose shippers run, and a connection to their store."""

    hosts: list[Host]
    store: asyncpg.Connection
    postmaster: int
    written: list[str] = field(default_factory=list)

    def usage(self) -> Usage:
        shippers = sum(cpu_of(host.process.pid) for host in self.hosts)
        return Usage(time.monotonic(), shippers, server_cpu(self.postmaster))

    def write(self, rows: int, number: int) -> None:
        """Write so many exchanges, whole and of usual size, into the spool of one host."""
        self._write(self.hosts[number % len(self.hosts)].writer, rows)

    def write_at_once(self, rows: int) -> None:
        """Write so many exchanges for each host, and let all spools have them at one moment."""
        segments = []
        for host in self.hosts:
            aside = host.spool.with_name("aside")
            writer = SpoolWriter(aside, f"aside-{len(self.written)}")
            self._write(writer, rows)
            writer.close()
            segments += [(path, host.spool / path.name) for path in aside.iterdir()]
        for path, target in segments:
            path.rename(target)

    def _write(self, writer: SpoolWriter, rows: int) -> None:
        for _ in range(rows):
            one = exchange(datetime.now(UTC), request=b"q" * 1000, response=b"a" * 500, tags={"tenant": "t"})
            writer.append(codec.encode(one), 1)
            self.written.append(str(one.id))

    async def stored(self) -> int:
        return int(await self.store.fetchval("SELECT count(*) FROM exchanges"))

    async def shipped(self) -> None:
        """Wait until all spools are empty."""
        await eventually(lambda: not any(backlog(host.spool).bytes for host in self.hosts), patience=600)

    async def connections(self) -> int:
        """The connections of the shippers."""
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        return int(await self.store.fetchval(query + " AND backend_type = 'client backend'"))


@contextmanager
def shippers(folder: Path, url: str, number: int) -> Iterator[list[Host]]:
    """Start the shippers of so many hosts; all have reported that they are ready."""
    hosts: list[Host] = []
    try:
        for index in range(number):
            hosts.append(_start(folder / f"host{index:03}", url))
            if len(hosts) % _AT_ONCE == 0:
                _wait(hosts[-_AT_ONCE:])
        _wait(hosts[len(hosts) // _AT_ONCE * _AT_ONCE :])
        yield hosts
    finally:
        for host in hosts:
            host.writer.close()
            host.process.terminate()
        for host in hosts:
            host.process.communicate(timeout=60)


def _start(folder: Path, url: str) -> Host:
    folder.mkdir(parents=True)
    config = configuration(folder)
    folders = bootstrap.folders(config)
    folders.counters.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway.processes.ship"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
    )
    assert process.stdin is not None
    process.stdin.write(pack(bootstrap.ShipperBootstrap(config=config, database_url=url)))
    process.stdin.flush()
    return Host(SpoolWriter(folders.spool, "w"), folders.spool, process)


def _wait(hosts: list[Host]) -> None:
    for host in hosts:
        assert host.process.stdout is not None
        assert json.loads(host.process.stdout.readline()).get("ready"), "a shipper could not start"
