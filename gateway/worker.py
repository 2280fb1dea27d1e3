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
from functools import partial

import uvloop

from auditor import lifeline
from auditor.domain.exchange import Origin
from gateway import bootstrap, spool, telemetry
from gateway.app import Gateway, Paths
from gateway.auth import Doorkeeper
from gateway.board import Board
from gateway.catalog import Catalog
from gateway.counters import Counters
from gateway.endpoints import ENDPOINTS
from gateway.health import Health
from gateway.limits import Limits
from gateway.recorder import Recorder
from gateway.redaction import Redactor
from gateway.routing import RoutingTable
from gateway.server import Site
from gateway.snapshot import SnapshotReader
from gateway.spool import SpoolWriter
from gateway.upstreams.lean import LeanUpstream
from gateway.upstreams.reference import ReferenceUpstream

#: Seconds in which requests that are ended at the drain's limit say so to their clients.
_LAST_WORDS = 2.0
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
    gateway = build(told)
    site = Site(paths(gateway).serve)
    ending = _follow_signals()
    listening = socket.socket(fileno=told.listen_fd)
    listening.setblocking(False)
    await site.listen(listening)
    lifeline.report(serving=told.generation)
    chores = [asyncio.create_task(_follow_parent(gateway, ending)), asyncio.create_task(_chores(gateway, told))]
    await _drain(gateway, site, noticed=await ending)
    await site.close(_LAST_WORDS)
    await gateway.upstream.close()
    for chore in chores:
        chore.cancel()
    await asyncio.gather(*chores, return_exceptions=True)
    gateway.recorder.spool.close()
    gateway.recorder.counters.close()
    gateway.board.close()
    gateway.limits.close()


def _follow_signals() -> "asyncio.Future[bool]":
    """Give what is set when this worker shall end: whether load balancers are to notice before it does."""
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[bool] = loop.create_future()
    loop.add_signal_handler(signal.SIGTERM, _end, ending, True)
    loop.add_signal_handler(signal.SIGINT, _end, ending, False)
    return ending


def _end(ending: "asyncio.Future[bool]", noticed: bool) -> None:  # noqa: FBT001 -- a signal handler's arguments are positional
    if not ending.done():
        ending.set_result(noticed)


async def _follow_parent(gateway: Gateway, ending: "asyncio.Future[bool]") -> None:
    """Take each new configuration; end with the parent, at once: the next one wants the address."""
    await lifeline.watch_parent(lambda: _end(ending, False), lambda told: _reload(gateway, told))


def _reload(gateway: Gateway, told: bootstrap.WorkerBootstrap) -> None:
    """Serve a new configuration from the next request on. Requests in flight go on with what they have begun with."""
    table, doorkeeper = RoutingTable(told.config), _doorkeeper(told, gateway.snapshot)
    gateway.config, gateway.table, gateway.doorkeeper = told.config, table, doorkeeper
    gateway.recorder.redactor = Redactor(told.config.gateway.redact)
    lifeline.report(serving=told.generation)


def paths(gateway: Gateway) -> Paths:
    """Put together what is served."""
    paths, catalog, health = Paths(), Catalog(gateway), Health(gateway)
    for endpoint in ENDPOINTS:
        paths.add("POST", f"/v1/{endpoint.path}", partial(endpoint.forward, gateway))
    paths.add("GET", "/v1/models", catalog.list)
    paths.add("GET", "/v1/models/", catalog.one)
    paths.add("GET", "/healthz", health.alive)
    paths.add("GET", "/readyz", health.ready)
    paths.add("GET", "/metrics", health.metrics)
    return paths


def build(told: bootstrap.WorkerBootstrap) -> Gateway:
    """Make the parts of one worker. Called inside a running event loop."""
    config, folders = told.config, bootstrap.folders(told.config)
    counters = Counters(folders.counters / f"worker-{told.number}.counters")
    telemetry.forget_gauges(counters, Origin)
    snapshot = SnapshotReader(folders.snapshot)
    snapshot.refresh()
    board = Board(folders.board, told.number, config.gateway.workers)
    name = f"{time.time_ns() // 1_000_000:013d}-{told.number}-{os.getpid()}"
    return Gateway(
        config=config,
        table=RoutingTable(config),
        doorkeeper=_doorkeeper(told, snapshot),
        snapshot=snapshot,
        upstream=LeanUpstream() if config.gateway.upstream == "lean" else ReferenceUpstream(),
        board=board,
        limits=Limits(folders.limits),
        recorder=Recorder(SpoolWriter(folders.spool, name), counters, Redactor(config.gateway.redact)),
        exposition=telemetry.Exposition(folders.counters, folders.spool, folders.snapshot, board.states),
    )


def _doorkeeper(told: bootstrap.WorkerBootstrap, snapshot: SnapshotReader) -> Doorkeeper:
    return Doorkeeper(
        snapshot,
        keys_required=not told.config.gateway.listen.is_loopback,
        open_to_all=told.config.gateway.auth == "open",
        tags=told.config.tag_names,
        audit_key=told.audit_key,
    )


async def _chores(gateway: Gateway, told: bootstrap.WorkerBootstrap) -> None:
    """Twice a second: read keys that changed, measure the spool; once a minute: let old segments and garbage go."""
    waiting = bootstrap.folders(told.config).spool
    began = time.monotonic()
    while True:
        gateway.snapshot.refresh()
        gateway.recorder.spool_full = spool.backlog(waiting).bytes >= gateway.config.gateway.spool.max_bytes
        if time.monotonic() - began > _SEGMENT_AGE:
            gateway.recorder.spool.finish_segment()
            gc.collect()  # a millisecond; the few cycles there are hold prompts
            began = time.monotonic()
        await asyncio.sleep(0.5)


async def _drain(gateway: Gateway, site: Site, *, noticed: bool) -> None:
    """Serve what is in flight, and what still comes, until nothing is; end what is not done in time."""
    gateway.draining = site.draining = True
    limits = gateway.config.gateway
    deadline = time.monotonic() + limits.drain
    if noticed:
        await asyncio.sleep(min(limits.drain_notice, limits.drain))
    await _served(site, deadline)
    site.stop()
    await _served(site, deadline)  # what was accepted last
    for task in site.tasks:
        task.cancel()


async def _served(site: Site, deadline: float) -> None:
    while site.tasks and time.monotonic() < deadline:  # noqa: ASYNC110 -- an emptied list is no event
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
    sys.exit(0)
