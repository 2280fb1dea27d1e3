"""A worker: serves the inherited listening socket. ``python -m gateway.worker`` is started by the gateway's parent.

It talks to clients and deployments, reads the key snapshot, writes its own spool segments and counters, and nothing
else; it imports no database driver.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import time

import uvloop
from aiohttp import web

from auditor import lifeline
from auditor.config import Config
from auditor.domain.exchange import Origin
from gateway import bootstrap, endpoints, health, spool, telemetry
from gateway.app import Gateway, build_app
from gateway.auth import Doorkeeper
from gateway.catalog import Catalog
from gateway.counters import Counters
from gateway.recorder import Recorder
from gateway.routing import RoutingTable
from gateway.snapshot import SnapshotReader
from gateway.spool import SpoolWriter
from gateway.upstreams.reference import ReferenceUpstream

#: Serve on for this long after SIGTERM even when nothing is in flight, so that load balancers see /readyz turn first.
_SHOWN_DRAINING = 1.0
#: Past this a segment is finished even if it is small, so that it can be removed from the spool.
_SEGMENT_AGE = 60.0


def main() -> None:
    """Run one worker until it is told to end, or its parent is gone."""
    told: bootstrap.WorkerBootstrap = lifeline.receive()
    logging.basicConfig(level=logging.INFO, format=f"tiltmeter gateway worker {told.number}: %(message)s")
    # Requests make little garbage in cycles: collect rarely, and never walk what the start has made.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    uvloop.run(_serve(told))


async def _serve(told: bootstrap.WorkerBootstrap) -> None:
    gateway = _build(told)
    app = build_app(gateway, [*endpoints.routes(), *Catalog().routes(), *health.routes()])
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, handle_signals=False, auto_decompress=False)
    await runner.setup()
    drain = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, drain.set)
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    folders = bootstrap.folders(told.config)
    chores = [
        asyncio.create_task(lifeline.watch_parent(drain.set)),
        asyncio.create_task(_chores(gateway, folders, told.config)),
    ]
    listening = socket.socket(fileno=told.listen_fd)
    listening.setblocking(False)
    site = web.SockSite(runner, listening, backlog=1024)
    await site.start()
    lifeline.report(ready=True)
    await drain.wait()
    await _drain(gateway, told.config.gateway.drain)
    await runner.cleanup()
    for chore in chores:
        chore.cancel()
    await asyncio.gather(*chores, return_exceptions=True)
    gateway.recorder.spool.close()
    gateway.recorder.counters.close()


def _build(told: bootstrap.WorkerBootstrap) -> Gateway:
    config, folders = told.config, bootstrap.folders(told.config)
    counters = Counters(folders.counters / f"worker-{told.number}.counters")
    telemetry.forget_gauges(counters, Origin)
    snapshot = SnapshotReader(folders.snapshot)
    snapshot.refresh()
    name = f"{time.time_ns() // 1_000_000:013d}-{told.number}-{os.getpid()}"
    return Gateway(
        config=config,
        table=RoutingTable(config),
        doorkeeper=Doorkeeper(
            snapshot,
            keys_required=not config.gateway.listen.is_loopback,
            open_to_all=config.gateway.auth == "open",
            tags=frozenset(config.tag_names),
            audit_key=told.audit_key,
        ),
        snapshot=snapshot,
        upstream=ReferenceUpstream(),
        recorder=Recorder(SpoolWriter(folders.spool, name), counters),
        registry=telemetry.registry(folders.counters, folders.spool, folders.snapshot),
    )


async def _chores(gateway: Gateway, folders: bootstrap.Folders, config: Config) -> None:
    """Twice a second: read keys that changed, measure the spool, let an old segment go."""
    began = time.monotonic()
    while True:
        gateway.snapshot.refresh()
        gateway.recorder.spool_full = spool.backlog(folders.spool).bytes >= config.gateway.spool.max_bytes
        if time.monotonic() - began > _SEGMENT_AGE:
            gateway.recorder.spool.finish_segment()
            began = time.monotonic()
        await asyncio.sleep(0.5)


async def _drain(gateway: Gateway, limit: float) -> None:
    """Serve what is in flight, and what still comes, until nothing is; at most ``limit`` seconds."""
    gateway.draining = True
    began = time.monotonic()
    await asyncio.sleep(min(_SHOWN_DRAINING, limit))
    while gateway.in_flight and time.monotonic() - began < limit:  # noqa: ASYNC110 -- the count is no event
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
    sys.exit(0)
