"""The gateway's parent: binds the listening socket, starts the shipper and the workers, starts again what dies.

It serves nothing itself. When it dies, its children notice by the end of their standard input: workers finish what is
in flight, the shipper stops, and the next parent finds spool and snapshot as they were.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import shutil
import signal
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor import lifeline
from auditor.access import make_secret
from auditor.config import Address, Config
from auditor.domain.keys import Key, Right, hash_secret
from auditor.errors import AuditError, UsageError
from gateway import bootstrap, snapshot
from gateway.children import Child

log = logging.getLogger(__name__)

_STORE_PATIENCE = 10.0  # seconds to wait for the shipper's first word
_STOP_GRACE = 15.0  # seconds beyond the drain for a child to end by itself


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """A process that runs beside the gateway under the same parent (``up``: the auditor)."""

    name: str
    module: str
    bootstrap: bytes


def run(config: Config, database_url: str, beside: Sequence[Beside] = ()) -> None:
    """Run the gateway until SIGTERM or SIGINT.

    Raises
    ------
    UsageError
        Another gateway uses the same ``data_dir``; the address is taken or not ours; the store has another schema; or
        the address can be reached from elsewhere and there is no key.
    """
    folders = bootstrap.folders(config)
    with _sole_gateway(folders.root), _listen(config.gateway.listen) as listening:
        shutil.rmtree(folders.counters, ignore_errors=True)
        asyncio.run(_Supervisor(config, database_url, listening, beside).run())


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
    def __init__(self, config: Config, database_url: str, listening: socket.socket, beside: Sequence[Beside]) -> None:
        self._config = config
        self._listening = listening
        self._shipper_says = lifeline.pack(bootstrap.ShipperBootstrap(config=config, database_url=database_url))
        self._beside = beside
        self._stop = asyncio.Event()
        self._failure: AuditError | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        shipper = Child("shipper", "gateway.ship", self._shipper_says)
        shipping = asyncio.create_task(shipper.run())
        try:
            await self._await_keys(shipper, shipping)
            front = [*self._workers(), *(Child(b.name, b.module, b.bootstrap) for b in self._beside)]
            await self._serve(front, shipper, shipping)
        finally:
            await _end([shipper], [shipping], _STOP_GRACE)
        if self._failure is not None:
            raise self._failure

    def _workers(self) -> list[Child]:
        secret = hash_secret(make_secret(self._config))
        audit = Key(id="audit", name="the auditor on this host", hash=secret, rights=frozenset(Right))
        descriptor = self._listening.fileno()
        made = []
        for number in range(self._config.gateway.workers):
            told = bootstrap.WorkerBootstrap(config=self._config, number=number, listen_fd=descriptor, audit_key=audit)
            made.append(Child(f"worker {number}", "gateway.worker", lifeline.pack(told), (descriptor,)))
        return made

    async def _await_keys(self, shipper: Child, shipping: asyncio.Task[int]) -> None:
        """Wait until the shipper has read the keys, or must do without the store for now."""
        stopped = asyncio.create_task(self._stop.wait())
        awaited: set[asyncio.Future[Any]] = {shipper.reported, shipping, stopped}
        await asyncio.wait(awaited, timeout=_STORE_PATIENCE, return_when="FIRST_COMPLETED")
        stopped.cancel()
        said = shipper.reported.result() if shipper.reported.done() else {"unreachable": "no answer yet"}
        if "error" in said:
            raise UsageError(str(said["error"]))
        if "unreachable" in said:
            log.warning(
                "the store cannot be reached (%s); known keys work, captures wait in the spool", said["unreachable"]
            )
        gateway = self._config.gateway
        if gateway.listen.is_loopback:
            return
        try:
            known = snapshot.read(bootstrap.folders(self._config).snapshot)
        except (OSError, ValueError, KeyError):
            known = snapshot.Snapshot({})
        if not any(not key.revoked for key in known.keys.values()):
            raise UsageError(
                f"gateway.listen: {gateway.listen} can be reached from other machines, and there is no client key; "
                "run: tiltmeter key create --name NAME -c FILE (or listen on 127.0.0.1)"
            )

    async def _serve(self, front: list[Child], shipper: Child, shipping: asyncio.Task[int]) -> None:
        tasks = [asyncio.create_task(child.run()) for child in front]
        greeting = asyncio.create_task(self._greet(front))
        stopped = asyncio.create_task(self._stop.wait())
        try:
            awaited: set[asyncio.Future[Any]] = {*tasks, shipping, stopped}
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            # The shipper too: a store slow to answer may say only now that its schema is another.
            self._failure = _hopeless([*front, shipper], [*tasks, shipping])
        finally:
            greeting.cancel()
            stopped.cancel()
            await _end(front, tasks, self._config.gateway.drain + _STOP_GRACE)

    async def _greet(self, front: list[Child]) -> None:
        await asyncio.gather(*(child.reported for child in front))
        host, port = self._listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        log.info("listening on http://%s:%d/v1 with %d workers", shown, port, self._config.gateway.workers)


def _hopeless(children: list[Child], tasks: list[asyncio.Task[int]]) -> AuditError | None:
    for child, task in zip(children, tasks, strict=True):
        if task.done() and task.result() == lifeline.HOPELESS:
            said = child.reported.result() if child.reported.done() else {}
            return UsageError(str(said.get("error", f"{child.name} cannot start")))
    return None


async def _end(children: list[Child], tasks: list[asyncio.Task[int]], patience: float) -> None:
    for child in children:
        child.terminate()
    _, late = await asyncio.wait(tasks, timeout=patience) if tasks else (set(), set())
    if late:
        for child in children:
            child.kill()
        await asyncio.wait(late)
