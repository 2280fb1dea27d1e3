"""A worker process, which serves clients on the inherited listening socket (``python -m gateway.processes.worker``).

It connects to deployments, reads the key snapshot, and writes its own spool segments and counters. It imports no
database driver.
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
from datetime import UTC, datetime
from functools import partial

import uvloop

from auditor import parent_pipe
from auditor.domain.exchange import Origin
from auditor.domain.log_lines import start_logging
from gateway import bootstrap
from gateway.auth import Authenticator
from gateway.catalog import Catalog
from gateway.exchange.app import Gateway, Router, json_answer
from gateway.exchange.endpoints import ENDPOINTS
from gateway.exchange.forwarder import Forwarder
from gateway.exchange.pass_through import pass_through
from gateway.http import Request, Server, WholeAnswer
from gateway.limits.key_limits import KeyLimits
from gateway.rare_log import RareLog
from gateway.recording import spool, telemetry
from gateway.recording.counters import Counters
from gateway.recording.recorder import Recorder
from gateway.recording.redaction import Redactor
from gateway.recording.spool import SpoolWriter
from gateway.routing.slots import DeploymentSlots
from gateway.routing.table import RoutingTable
from gateway.snapshot import SnapshotReader
from gateway.upstreams.pool import ConnectionPool
from gateway.welcome import WelcomePage

#: The paths that `Health` answers.
_OPERATORS = ("/healthz", "/readyz", "/metrics")
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health:
    """Answers ``/healthz``, ``/readyz`` and ``/metrics``."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def alive(self, _: Request) -> WholeAnswer:
        """``/healthz``."""
        return json_answer({"status": "ok"})

    async def ready(self, _: Request) -> WholeAnswer:
        """``/readyz``."""
        gateway = self._gateway
        if gateway.draining:
            return json_answer({"status": "draining"}, status=503)
        if gateway.snapshot.current is None and gateway.config.gateway.auth == "keys":
            return json_answer({"status": "unconfigured", "why": "the client keys have not been read yet"}, status=503)
        return json_answer({"status": "ready"})

    async def metrics(self, request: Request) -> WholeAnswer:
        """``/metrics``."""
        self._gateway.authenticator.refuse_web_pages(request.headers)
        body = self._gateway.metrics_page.render()
        return WholeAnswer(200, {"content-type": _METRICS_TYPE}, body)


log = logging.getLogger(__name__)

#: Seconds for requests that are ended at the drain's limit to send their error to the client.
_LAST_WORDS = 2.0
#: Seconds for which the thread of large copies may keep the interpreter from the event loop.
_SWITCH_INTERVAL = 0.001
#: Seconds between two rounds of maintenance.
_MAINTAIN_EVERY = 0.5
#: Seconds after which a segment is finished even if it is small, so that it can be removed from the spool.
_SEGMENT_AGE = 60.0


def main() -> None:
    """Run one worker until a signal, or until its parent has ended."""
    settings: bootstrap.WorkerBootstrap = parent_pipe.receive()
    start_logging(f"biasmeter gateway worker {settings.number}")
    # Requests create few reference cycles: collect garbage rarely, and exclude the objects of the start.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    uvloop.run(_serve(settings))


async def _serve(settings: bootstrap.WorkerBootstrap) -> None:
    gateway = build(settings)
    server = serve(gateway)
    ending = _follow_signals()
    listening = socket.socket(fileno=settings.listen_fd)
    listening.setblocking(False)
    await server.listen(listening)
    parent_pipe.report(serving=settings.generation)
    background = [
        asyncio.create_task(_follow_parent(gateway, ending)),
        asyncio.create_task(_maintain(gateway, settings)),
    ]
    await _drain(gateway, server, noticed=await ending)
    await server.close(_LAST_WORDS)
    gateway.pool.close()
    for task in background:
        task.cancel()
    await asyncio.gather(*background, return_exceptions=True)
    await gateway.recorder.finish()
    gateway.recorder.spool.close()
    gateway.recorder.counters.close()
    gateway.slots.close()
    gateway.limits.close()


def _follow_signals() -> "asyncio.Future[bool]":
    """Return a future for the end of this worker: True if load balancers need time to notice."""
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[bool] = loop.create_future()
    loop.add_signal_handler(signal.SIGTERM, _end, ending, True)
    loop.add_signal_handler(signal.SIGINT, _end, ending, False)
    return ending


def _end(ending: "asyncio.Future[bool]", noticed: bool) -> None:  # noqa: FBT001 -- a signal handler's arguments are positional
    if not ending.done():
        ending.set_result(noticed)


async def _follow_parent(gateway: Gateway, ending: "asyncio.Future[bool]") -> None:
    """Apply each new configuration. End at once when the parent ends, because the next parent needs the address."""
    await parent_pipe.watch_parent(lambda: _end(ending, False), lambda settings: _reload(gateway, settings))


def _reload(gateway: Gateway, settings: bootstrap.WorkerBootstrap) -> None:
    """Serve a new configuration from the next request on. Requests in flight keep their route and deployment."""
    table = RoutingTable(settings.config, gateway.table.actions, gateway.table.stopped)
    authenticator = _authenticator(settings, gateway.snapshot)
    gateway.config, gateway.table, gateway.authenticator = settings.config, table, authenticator
    gateway.recorder.redactor = Redactor(settings.config.gateway.redact)
    parent_pipe.report(serving=settings.generation)


def serve(gateway: Gateway, *, remembers: bool = True) -> Server:
    """Return the server of a worker, which does not listen yet; ``remembers``: whether heads of requests are."""
    router, catalog, health = Router(), Catalog(gateway), Health(gateway)
    targets = {f"/v1/{endpoint.path}": endpoint for endpoint in ENDPOINTS}
    forwarder = Forwarder(gateway, targets)
    for target, endpoint in targets.items():
        router.add("POST", target, partial(forwarder.forward, endpoint))
    router.add_rest("POST", partial(pass_through, gateway, forwarder))
    router.add("GET", "/", WelcomePage(gateway).show)
    router.add("GET", "/v1/models", catalog.list)
    router.add("GET", "/v1/models/", catalog.model_by_name)
    for path, handler in zip(_OPERATORS, (health.alive, health.ready, health.metrics), strict=True):
        router.add("GET", path, handler)
    first_byte = lambda: gateway.config.gateway.first_byte  # noqa: E731 -- of the configuration then
    return Server(router.serve, first_byte, forwarder if remembers else None, _OPERATORS)


def build(settings: bootstrap.WorkerBootstrap) -> Gateway:
    """Create the parts of one worker. Called inside a running event loop."""
    config, folders = settings.config, bootstrap.folders(settings.config)
    counters = Counters(folders.counters / f"worker-{settings.number}.counters")
    telemetry.forget_gauges(counters, Origin)
    snapshot = SnapshotReader(folders.snapshot)
    snapshot.refresh()
    slots = DeploymentSlots(folders.slots, settings.number, config.gateway.workers)
    name = f"{time.time_ns() // 1_000_000:013d}-{settings.number}-{os.getpid()}"
    return Gateway(
        config=config,
        table=RoutingTable(config),
        authenticator=_authenticator(settings, snapshot),
        snapshot=snapshot,
        pool=ConnectionPool(),
        slots=slots,
        limits=KeyLimits(folders.limits, config.gateway.workers),
        recorder=Recorder(SpoolWriter(folders.spool, name), counters, Redactor(config.gateway.redact)),
        metrics_page=telemetry.MetricsPage(folders.counters, folders.spool, folders.snapshot, slots.states),
    )


def _authenticator(settings: bootstrap.WorkerBootstrap, snapshot: SnapshotReader) -> Authenticator:
    return Authenticator(
        snapshot,
        keys_required=not settings.config.gateway.listen.is_loopback,
        open_to_all=settings.config.gateway.auth == "open",
        tags=settings.config.tag_names,
        audit_key=settings.audit_key,
    )


def follow_actions(gateway: Gateway) -> None:
    """Apply the snapshot's actions on routes and stopped arms from the next request on, without what has expired."""
    snapshot, now = gateway.snapshot.current, datetime.now(UTC)
    actions = tuple(action for action in snapshot.actions if action.expires_at > now) if snapshot is not None else ()
    stopped: frozenset[str] = snapshot.stopped if snapshot is not None else frozenset()
    # A later end of an action changes nothing now.
    acting = [action.id for action in actions] != [action.id for action in gateway.table.actions]
    stopping = stopped != gateway.table.stopped
    if acting or stopping:
        gateway.table = RoutingTable(gateway.config, actions, stopped)
    if acting:
        named = ", ".join(f"{action.id} ({action.kind} on {action.route})" for action in actions) or "none"
        log.info("actions on routes: %s", named)
    if stopping:
        log.info("stopped arms: %s", ", ".join(sorted(stopped)) or "none")


async def _maintain(gateway: Gateway, settings: bootstrap.WorkerBootstrap) -> None:
    """Read changed keys, follow actions, return leases and measure the spool twice a second; clean up once a minute.

    A step that fails, for example because no file descriptor is free, is logged and tried again: without it revoked
    keys would go on working.
    """
    folder = bootstrap.folders(settings.config).spool
    recorder = gateway.recorder
    collected = time.monotonic()
    rare = RareLog(log)

    def measure_spool() -> None:
        recorder.spool_full = spool.backlog(folder).bytes >= gateway.config.gateway.spool.max_bytes

    def clean_up() -> None:
        nonlocal collected
        if time.monotonic() - collected > _SEGMENT_AGE:
            collected = time.monotonic()
            recorder.spool.finish_segment()
            gc.collect()  # takes a millisecond; the few cycles that exist hold prompts

    while True:
        follow = partial(follow_actions, gateway)
        for step in (gateway.snapshot.refresh, follow, gateway.limits.return_past_leases, measure_spool, clean_up):
            try:
                step()
            except Exception as error:  # noqa: BLE001 -- whatever it is, the next attempt may succeed
                rare.warning("maintenance failed and is tried again: %r", error)
        await asyncio.sleep(_MAINTAIN_EVERY)


async def _drain(gateway: Gateway, server: Server, *, noticed: bool) -> None:
    """Serve until no request is in flight, and end those that are not done in time."""
    gateway.draining = True
    server.drain()
    limits = gateway.config.gateway
    deadline = time.monotonic() + limits.drain
    if noticed:
        await asyncio.sleep(min(limits.drain_notice, limits.drain))
    await server.wait_until_idle(deadline - time.monotonic())
    server.stop()
    await server.wait_until_idle(deadline - time.monotonic())  # the connections accepted last
    server.stop_answers()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
    sys.exit(0)
