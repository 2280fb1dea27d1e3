"""The gateway's application in the test's own event loop: real sockets, files and parts, but no process to start."""

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from support.stores.exchanges import spooled

from auditor.config import Config
from auditor.domain.exchange import Exchange
from auditor.domain.keys import Key, Right, hash_secret
from gateway import bootstrap, snapshot
from gateway.exchange.app import Gateway
from gateway.http import Server
from gateway.processes import worker
from gateway.recording.counters import read_all

AUDIT_SECRET = "the auditor's"


@dataclass(slots=True)
class Answer:
    """What a client got."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def attempts(self) -> int:
        return int(self.headers["x-biasmeter-attempts"])


@dataclass(slots=True)
class Served:
    """A gateway that is being served, and what it has kept."""

    url: str
    gateway: Gateway
    server: Server
    client: aiohttp.ClientSession
    folders: bootstrap.Folders

    async def chat(self, model: str, *, headers: dict[str, str] | None = None, **fields: Any) -> Answer:
        """Ask for a chat completion."""
        payload = {"model": model, "messages": [{"role": "user", "content": "hello"}], **fields}
        async with self.client.post(f"{self.url}/v1/chat/completions", json=payload, headers=headers) as answer:
            return Answer(answer.status, {k.lower(): v for k, v in answer.headers.items()}, await answer.read())

    async def probe(self, model: str, **fields: Any) -> Answer:
        """Ask as the auditor does."""
        headers = {"authorization": f"Bearer {AUDIT_SECRET}", "x-biasmeter-origin": "probe"}
        return await self.chat(model, headers=headers, **fields)

    def exchanges(self) -> list[Exchange]:
        """What has been written to the spool."""
        return spooled(self.folders.spool)

    def counted(self, name: str) -> dict[tuple[str, ...], int]:
        """The counts of one series that are not 0."""
        return {key[1:]: n for key, n in read_all(self.folders.counters).items() if key[0] == name and n}


@asynccontextmanager
async def served(
    settings: dict[str, Any], folder: Path, keys: Sequence[Key] = (), *, remembers: bool = True
) -> AsyncIterator[Served]:
    """Serve what `settings` describe, to those who have one of the `keys`, or to all where there is none."""
    config = Config.model_validate({"data_dir": str(folder), **settings})
    audit_key = Key(id="audit", name="audit", hash=hash_secret(AUDIT_SECRET), rights=frozenset(Right))
    told = bootstrap.WorkerBootstrap(config=config, generation=0, number=0, listen_fd=-1, audit_key=audit_key)
    folders = bootstrap.folders(config)
    snapshot.write(folders.snapshot, keys)
    snapshot.confirm(folders.snapshot)
    gateway = worker.build(told)
    server = worker.serve(gateway, remembers=remembers)
    listening = socket.create_server(("127.0.0.1", 0))
    await server.listen(listening)
    host, port = listening.getsockname()
    try:
        async with aiohttp.ClientSession() as client:
            yield Served(f"http://{host}:{port}", gateway, server, client, folders)
    finally:
        await server.close(1.0)
        gateway.pool.close()
        await gateway.recorder.finish()
        for part in (gateway.recorder.spool, gateway.recorder.counters, gateway.slots, gateway.limits):
            part.close()
