"""The gateway's parent process: binds the listening socket, starts the shipper and the workers, and restarts them.

It serves no requests itself. On SIGHUP it reads the configuration again and sends it to its children if it is valid. If
the parent dies, its children notice the end of their standard input: workers finish their requests, the shipper stops,
and spool and snapshot stay for the next parent.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import resource
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from auditor import parent_pipe
from auditor.access import make_secret
from auditor.config import Address, Config, reload
from auditor.config.reload import describe
from auditor.domain.keys import Key, Right, hash_secret
from auditor.errors import AuditError, UsageError
from gateway import bootstrap, snapshot
from gateway.processes.children import Child

log = logging.getLogger(__name__)

_STORE_PATIENCE = 10.0  # seconds to wait for the shipper's first report
_STOP_GRACE = 15.0  # seconds beyond the drain for a child to end by itself
_RELOAD_PATIENCE = 10.0  # seconds for the workers to report that they serve a new configuration


@dataclass(frozen=True, kw_only=True, slots=True)
class Sidecar:
    """A process that runs beside the gateway under the same parent (``up``: the auditor)."""

    name: str
    module: str
    bootstrap: Callable[[Config], bytes]


def run(config: Config, database_url: str, read: Callable[[], Config], sidecars: Sequence[Sidecar] = ()) -> None:
    """Run the gateway until SIGTERM or SIGINT. On SIGHUP use the configuration that ``read`` returns, if it is valid.

    Raises
    ------
    UsageError
        Another gateway uses the same ``data_dir``; the address is in use or not local; the store has another schema; or
        other machines can reach the address and there is no key.
    """
    _raise_file_limit()
    folders = bootstrap.folders(config)
    with _sole_gateway(folders.root), _listen(config.gateway.listen) as listening:
        shutil.rmtree(folders.counters, ignore_errors=True)
        asyncio.run(_Supervisor(config, database_url, read, listening, sidecars).run())


def _raise_file_limit() -> None:
    """Raise the soft limit of file descriptors to the hard one; the children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems report a limit that they do not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def knows_keys(config: Config) -> bool:
    """Return whether client keys are known from an earlier run; then clients can be served before the store answers."""
    try:
        snapshot.read(bootstrap.folders(config).snapshot)
    except (OSError, ValueError):
        return False
    return True


@contextlib.contextmanager
def _sole_gateway(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(folder / "gateway.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"data_dir: {folder}: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        os.close(lock)
        raise UsageError(
            f"another gateway (process {other}) uses {folder}; give this one a data_dir of its own"
        ) from None
    with contextlib.suppress(OSError):  # a full disk; the number is only for the message above
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
    try:
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def _listen(address: Address) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    host = "" if address.host in {"", "*"} else address.host
    try:
        listening = socket.create_server((host, address.port), family=family, backlog=1024)
    except OSError as error:
        raise UsageError(f"gateway.listen: {address}: {error.strerror or error}") from None
    with listening:
        listening.set_inheritable(True)
        yield listening


class _Supervisor:
    def __init__(
        self,
        config: Config,
        database_url: str,
        read: Callable[[], Config],
        listening: socket.socket,
        sidecars: Sequence[Sidecar],
    ) -> None:
        self._config = config
        self._generation = 0
        self._database_url = database_url
        self._read = read
        self._listening = listening
        self._sidecars = sidecars
        self._stop = asyncio.Event()
        self._stopped_by = signal.SIGTERM
        self._reload_due = asyncio.Event()
        self._failure: AuditError | None = None

    async def run(self) -> None:
        self._follow_signals()
        shipper = Child("shipper", "gateway.processes.ship", self._shipper_bootstrap, environment=self._environment)
        shipping = asyncio.create_task(shipper.run())
        try:
            await self._await_keys(shipper, shipping)
            workers = self._workers()
            sidecars = [
                Child(b.name, b.module, partial(self._sidecar_bootstrap, b), environment=self._environment)
                for b in self._sidecars
            ]
            await self._serve(workers, sidecars, shipper, shipping)
        finally:
            await _end([shipper], [shipping], _STOP_GRACE)
        if self._failure is not None:
            raise self._failure

    def _follow_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_by, number)
        reload.on_hangup(self._reload_due.set, partial(self._stop_by, signal.SIGINT))

    def _stop_by(self, number: signal.Signals) -> None:
        """Stop. SIGTERM gives load balancers time to notice; Ctrl-C waits only for requests in flight."""
        if not self._stop.is_set():
            self._stopped_by = number
            self._stop.set()

    def _workers(self) -> list[Child]:
        secret = hash_secret(make_secret(self._config))
        audit = Key(id="audit", name="the auditor on this host", hash=secret, rights=frozenset(Right))
        return [
            Child(
                f"worker {n}",
                "gateway.processes.worker",
                partial(self._worker_bootstrap, n, audit),
                (self._listening.fileno(),),
                self._environment,
            )
            for n in range(self._config.gateway.workers)
        ]

    def _worker_bootstrap(self, number: int, audit_key: Key) -> bytes:
        return parent_pipe.pack(
            bootstrap.WorkerBootstrap(
                config=self._config,
                generation=self._generation,
                number=number,
                listen_fd=self._listening.fileno(),
                audit_key=audit_key,
            )
        )

    def _shipper_bootstrap(self) -> bytes:
        config = self._config.without_upstream_keys()
        return parent_pipe.pack(bootstrap.ShipperBootstrap(config=config, database_url=self._database_url))

    def _sidecar_bootstrap(self, sidecar: Sidecar) -> bytes:
        return sidecar.bootstrap(self._config.without_upstream_keys())

    def _environment(self) -> dict[str, str]:
        """Return the environment of the children. Workers get the keys of deployments in their bootstrap."""
        return self._config.environment(os.environ)

    async def _await_keys(self, shipper: Child, shipping: asyncio.Task[int]) -> None:
        """Wait until the shipper has read the keys, or has reported that the store is down."""
        stopped = asyncio.create_task(self._stop.wait())
        awaited: set[asyncio.Future[Any]] = {shipper.reported, shipping, stopped}
        await asyncio.wait(awaited, timeout=_STORE_PATIENCE, return_when="FIRST_COMPLETED")
        stopped.cancel()
        report = shipper.reported.result() if shipper.reported.done() else {"unreachable": "no answer yet"}
        if "error" in report:
            raise UsageError(str(report["error"]))
        if "unreachable" in report:
            log.warning(
                "the store cannot be reached (%s); known keys work, copies wait in the spool", report["unreachable"]
            )
        gateway = self._config.gateway
        if gateway.listen.is_loopback:
            return
        try:
            known = snapshot.read(bootstrap.folders(self._config).snapshot)
        except (OSError, ValueError, KeyError):
            known = snapshot.KeySnapshot({})
        if not any(not key.revoked for key in known.keys.values()):
            raise UsageError(
                f"gateway.listen: {gateway.listen} can be reached from other machines, and there is no client key; "
                "run: biasmeter key create --name NAME -c FILE (or listen on 127.0.0.1)"
            )

    async def _serve(
        self, workers: list[Child], sidecars: list[Child], shipper: Child, shipping: asyncio.Task[int]
    ) -> None:
        front = [*workers, *sidecars]
        tasks = [asyncio.create_task(child.run()) for child in front]
        background = [
            asyncio.create_task(self._log_address(front)),
            asyncio.create_task(self._reload_when_due(workers, sidecars)),
        ]
        stopped = asyncio.create_task(self._stop.wait())
        try:
            awaited: set[asyncio.Future[Any]] = {*tasks, shipping, stopped}
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            # The shipper too: a slow store may report only now that its schema is another one.
            self._failure = _permanent_failure([*front, shipper], [*tasks, shipping])
        finally:
            for task in (*background, stopped):
                task.cancel()
            await _end(front, tasks, self._config.gateway.drain + _STOP_GRACE, self._stopped_by)

    async def _reload_when_due(self, workers: list[Child], sidecars: list[Child]) -> None:
        while True:
            await self._reload_due.wait()
            self._reload_due.clear()
            try:
                new = reload.reread(self._config, self._read)
            except UsageError as error:
                log.warning("nothing was reloaded: %s", error)
                continue
            changes = describe(self._config, new)
            self._config, self._generation = new, self._generation + 1
            for child in (*workers, *sidecars):
                child.send_bootstrap()
            await self._confirm(workers, f"{changes}; configuration {new.config_hash}")

    async def _confirm(self, workers: list[Child], changes: str) -> None:
        """Log the change when every worker serves it."""
        try:
            async with asyncio.timeout(_RELOAD_PATIENCE):
                await asyncio.gather(*(worker.wait_for_report("serving", self._generation) for worker in workers))
        except TimeoutError:
            log.warning("reloaded, but not every worker has confirmed it within %d s: %s", _RELOAD_PATIENCE, changes)
        else:
            log.info("reloaded: %s", changes)

    async def _log_address(self, front: list[Child]) -> None:
        await asyncio.gather(*(child.reported for child in front))
        host, port = self._listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        log.info("listening on http://%s:%d/v1 with %d workers", shown, port, self._config.gateway.workers)


def _permanent_failure(children: list[Child], tasks: list[asyncio.Task[int]]) -> AuditError | None:
    for child, task in zip(children, tasks, strict=True):
        if task.done() and task.result() == parent_pipe.HOPELESS:
            report = child.reported.result() if child.reported.done() else {}
            return UsageError(str(report.get("error", f"{child.name} cannot start")))
    return None


async def _end(
    children: list[Child],
    tasks: list[asyncio.Task[int]],
    seconds: float,
    number: signal.Signals = signal.SIGTERM,
) -> None:
    for child in children:
        child.terminate(number)
    _, late = await asyncio.wait(tasks, timeout=seconds) if tasks else (set(), set())
    if late:
        for child in children:
            child.kill()
        await asyncio.wait(late)
