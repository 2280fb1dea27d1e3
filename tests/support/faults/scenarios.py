"""The faults: one function each. It injects its fault for a while, and returns how many faults it injected."""

import asyncio
import os
import signal
import socket
import struct
import time
from contextlib import suppress
from datetime import UTC, datetime

import aiohttp
import pytest
from support.clients.load import grown
from support.faults.harness import Scenario, Site, store_connection
from support.servers.certificates import Authority
from support.servers.product import STARTUP
from support.stores.embedded_processes import postgres_pids
from support.stores.small_disks import fill, read_only
from support.upstreams.scripted_upstream import ScriptedUpstream
from support.upstreams.upstream_answers import by_model
from support.upstreams.upstream_wire import CLOSE, RESET, Request, Steps
from support.waiting import eventually
from yarl import URL

from auditor.domain.schema import SCHEMA_VERSION
from auditor.store.engine import make_engine
from auditor.store.retention import RetentionBounds, remove_expired

#: The route to a deployment behind TLS, which only `tls_upstream_fails_half_way` starts.
TLS_MODEL = "tls"


def _signal_store(site: Site, number: int) -> None:
    for pid in postgres_pids(site.product):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


async def kill_any_process(site: Site) -> int:
    """Kill -9 of a worker, the shipper, the auditor, PostgreSQL or its supervisor, at random moments."""
    random, ended, kills = site.random, time.monotonic() + site.seconds(2.5, 20), 0
    while time.monotonic() < ended:
        victim = random.choice(
            ["gateway.processes.worker", "gateway.processes.ship", "postgres", "postgres.supervisor", "auditor"]
        )
        pids = postgres_pids(site.product) if victim == "postgres" else site.running.pids(f"-m {victim}")
        if victim == "postgres.supervisor":
            pids = site.running.pids("auditor.postgres.supervisor")
        if pids:
            pid = random.choice(pids)
            with suppress(ProcessLookupError):
                site.kill_worker(pid) if victim == "gateway.processes.worker" else os.kill(pid, signal.SIGKILL)
                kills += 1
        await asyncio.sleep(random.uniform(0.1, 0.5))
    return kills


async def store_stands_still(site: Site) -> int:
    """SIGSTOP of all processes of PostgreSQL."""
    _signal_store(site, signal.SIGSTOP)
    try:
        await asyncio.sleep(site.seconds(2, 10))
    finally:
        _signal_store(site, signal.SIGCONT)
    assert site.asked.failures == []
    return 1


async def store_is_away(site: Site) -> int:
    """PostgreSQL is killed again whenever it has started: 5 minutes at full length."""
    ended, kills = time.monotonic() + site.seconds(2, 300), 0
    while time.monotonic() < ended:
        _signal_store(site, signal.SIGKILL)
        kills += 1
        await asyncio.sleep(0.5)
    assert site.asked.failures == []
    return kills


async def disk_is_full(site: Site) -> int:
    """No byte is free below `data_dir`."""
    _need_small_disk(site)
    site.lost = True
    dropped = site.captured().get("dropped_spool_error", 0)
    ballast = fill(site.product.data_dir)

    def copies_are_dropped() -> bool:
        fill(site.product.data_dir)  # again: segments that have been shipped are removed
        return site.captured().get("dropped_spool_error", 0) > dropped

    try:
        await eventually(copies_are_dropped, STARTUP)
        await asyncio.sleep(site.seconds(1, 10))
    finally:
        ballast.unlink()
    assert site.asked.failures == []
    return 1


async def no_inode_is_left(site: Site) -> int:
    """No file can be created below `data_dir`; workers that start then have no segment of their own."""
    _need_small_disk(site)
    made = site.product.data_dir / "many"
    made.mkdir()
    (shipper,) = site.running.pids("gateway.processes.ship")
    os.kill(shipper, signal.SIGSTOP)  # it would remove segments, and so make room for others
    try:
        with suppress(OSError):
            for number in range(100_000):
                (made / str(number)).touch()
        await _with_new_segments(site)
    finally:
        os.kill(shipper, signal.SIGCONT)
    await asyncio.sleep(site.seconds(0.5, 10))
    for path in made.iterdir():
        path.unlink()
    made.rmdir()
    return 1


async def spool_is_read_only(site: Site) -> int:
    """Nothing in the spool's folder can be changed: no new segment, no mark, no removal."""
    with read_only(site.gateway / "spool"):
        await _with_new_segments(site)
        await asyncio.sleep(site.seconds(0.5, 10))
    return 1


async def spool_is_slow(site: Site) -> int:
    """Each write to the spool takes 20 ms."""
    with site.injected("slow", 0.02):
        await asyncio.sleep(site.seconds(1.5, 10))
    assert site.asked.failures == []
    return 1


async def clock_steps(site: Site) -> int:
    """The wall clock of the gateway goes a day forward, a day back, and 40 days back, where content is removed."""
    engine = make_engine(site.database_url)
    bounds = RetentionBounds.at(datetime.now(UTC), content=30 * 86400, facts=400 * 86400)

    async def content_is_removed() -> bool:
        # As the auditor does every hour; exchanges of the same day go on to arrive.
        return bool(await remove_expired(engine, bounds))

    async def all_days_are_stored() -> bool:
        return len(await site.rows("SELECT DISTINCT at::date FROM exchanges")) >= 4

    for step in (26, -26, -40 * 24):
        with site.injected("clock", 3600 * step):
            await grown(site.asked, 10)
            await asyncio.sleep(site.seconds(0, 3))
            for _ in range(3 if step < -30 * 24 else 0):
                await eventually(content_is_removed, STARTUP)
                await grown(site.asked, 10)
    await eventually(all_days_are_stored, STARTUP)
    await engine.dispose()
    assert site.asked.failures == []
    return 3


async def two_schema_versions(site: Site) -> int:
    """The store has another release's schema, as before a host's update; auditor and shipper are killed meanwhile."""
    async with store_connection(site) as connection:
        await connection.execute("ALTER TABLE exchanges ADD COLUMN of_the_next_release text")
        await connection.execute("UPDATE alembic_version SET version_num = '9999'")
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        try:
            victims = {*site.running.pids("-m auditor"), *site.running.pids("-m gateway.processes.ship")}
            for pid in victims - set(site.running.pids("-m auditor.postgres")):
                os.kill(pid, signal.SIGKILL)  # they cannot start now, and are started again later
            await grown(site.asked, 40)
            await asyncio.sleep(site.seconds(0.5, 10))
            assert site.product.spooled() > 0
        finally:
            await connection.execute("UPDATE alembic_version SET version_num = $1", SCHEMA_VERSION)
            await connection.execute("ALTER TABLE exchanges DROP COLUMN of_the_next_release")
    assert site.asked.failures == []
    return 3


async def workers_crash_in_a_loop(site: Site) -> int:
    """One of the workers is killed whenever it is there."""
    kills, ended, first = 0, time.monotonic() + site.seconds(2.5, 10), site.workers()[0]
    survivor = next(pid for pid in site.workers() if pid != first)
    while time.monotonic() < ended:
        for pid in site.workers():
            if pid != survivor:
                with suppress(ProcessLookupError):
                    site.kill_worker(pid)
                    kills += 1
        await asyncio.sleep(0.05)
    assert survivor in site.workers()
    return kills


async def clients_drip(site: Site) -> int:
    """Many clients send their requests a byte at a time, and never end them."""
    host, port = site.product.settings["gateway"]["listen"].split(":")
    sent = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n" + b"{" * 900
    sockets = [await asyncio.open_connection(host, int(port)) for _ in range(100)]
    ended, place = time.monotonic() + site.seconds(1.5, 10), 0
    while time.monotonic() < ended:
        for number, (_, writer) in enumerate(sockets):
            writer.write(sent[place : place + 1] if number % 2 else sent[place * 40 : place * 40 + 40])
        place = min(place + 1, len(sent) // 41)
        await asyncio.sleep(0.05)
    for _, writer in sockets:
        writer.transport.abort()
    site.bad_inputs += len(sockets)
    assert site.asked.failures == []
    return len(sockets)


async def clients_reset(site: Site) -> int:
    """Connections are reset within requests, and within and before answers."""
    host, port = site.product.settings["gateway"]["listen"].split(":")
    body = b'{"model":"slow-tokens:0.05","stream":true,"messages":[]}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n" % len(body)
    whole, random, ended, resets = head + body, site.random, time.monotonic() + site.seconds(1.5, 10), 0
    while time.monotonic() < ended:
        opened = [socket.create_connection((host, int(port))) for _ in range(20)]
        for each in opened:
            each.sendall(whole[: random.randrange(1, len(whole) + 30)])
        await asyncio.sleep(random.uniform(0, 0.1))
        for each in opened:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            each.close()
        resets += len(opened)
    site.bad_inputs += resets
    assert site.asked.failures == []
    return resets


async def tls_upstream_fails_half_way(site: Site) -> int:
    """A deployment behind TLS breaks off handshakes and answers: with a reset, or without closing the encryption."""
    random, count = site.random, round(site.seconds(40, 200))

    def script(request: Request) -> Steps:
        steps = list(by_model(request))
        cut = random.randrange(len(steps))
        return [*steps[:cut], random.choice([CLOSE, RESET])] if random.random() < 0.7 else steps

    context = Authority(site.product.folder, "faulty").serving("upstream", "IP:127.0.0.1")
    url = next(one["base_url"] for one in site.product.settings["deployments"] if one["name"] == TLS_MODEL)
    upstream = ScriptedUpstream(script)
    await upstream.start(URL(url).port or 0, context)
    async with aiohttp.ClientSession() as client:
        for number in range(count):
            payload = {"model": TLS_MODEL, "stream": bool(number % 2), "messages": []}
            async with client.post(site.product.url + "/v1/chat/completions", json=payload) as answer:
                await answer.read()
    await upstream.close()
    assert upstream.failures == []
    assert site.asked.failures == []
    return count


def _need_small_disk(site: Site) -> None:
    if not site.small_disk:
        pytest.skip("no small disk can be mounted here")


async def _with_new_segments(site: Site) -> None:
    """Replace the workers, whose segments are still open, and wait until copies are dropped."""
    site.lost = True
    known, before = site.workers(), site.captured().get("dropped_spool_error", 0)
    for pid in known:
        site.kill_worker(pid)
    await site.new_workers(known)
    await eventually(lambda: site.captured().get("dropped_spool_error", 0) > before, STARTUP)


ALL: tuple[Scenario, ...] = (
    two_schema_versions,
    store_stands_still,
    store_is_away,
    disk_is_full,
    spool_is_slow,
    clock_steps,
    clients_drip,
    clients_reset,
    tls_upstream_fails_half_way,
    workers_crash_in_a_loop,
    no_inode_is_left,
    spool_is_read_only,
    kill_any_process,
)
