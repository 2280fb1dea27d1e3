"""The product as its users run it: `biasmeter` processes, started with a configuration file and watched from outside.

A started process and all that it starts carry a mark in their environment, so that a test can count them and the
harness can end whatever is left.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import yaml
from support.paths import ROOT
from support.servers import commands
from support.servers.ports import free_port
from support.stores.postgres import remove_store
from support.waiting import PATIENCE, eventually

from gateway.recording.spool import backlog

MARK = "BIASMETER_TEST_MARK"
#: Seconds for a process to get ready: a loaded machine needs most of a minute to import and to create a database.
STARTUP = 120.0


@dataclass(slots=True)
class Running:
    """A `biasmeter` process."""

    process: "subprocess.Popen[bytes] | commands.Command"
    log: Path
    mark: str

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def pids(self, module: str) -> list[int]:
        """The processes of this run whose command line names `module`, oldest first."""
        return [pid for pid in marked_pids(self.mark) if module in command_line(pid)]

    def stop(self, number: int = signal.SIGTERM, patience: float = PATIENCE) -> int:
        self.process.send_signal(number)
        return self.process.wait(patience)


def all_pids() -> list[int]:
    return sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())


def working_folder(pid: int) -> Path | None:
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return None


def marked_pids(mark: str) -> list[int]:
    """All processes, of whatever parent, that were started under `mark`."""
    needle = f"{MARK}={mark}".encode()
    found = []
    for pid in all_pids():
        with suppress(OSError):
            if needle in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@dataclass(slots=True)
class Product:
    """One installation: a folder with a configuration, and the processes run on it."""

    folder: Path
    settings: dict[str, Any]
    database_url: str | None
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    environment: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()  #: the beginning of the command line of started processes
    started: "list[subprocess.Popen[bytes] | commands.Command]" = field(default_factory=list)

    @property
    def config(self) -> Path:
        return self.folder / "biasmeter.yaml"

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        return f"http://{self.settings['gateway']['listen']}"

    @property
    def api(self) -> str:
        return f"http://{self.settings['auditor']['listen']}"

    def write(self) -> None:
        self.config.write_text(yaml.safe_dump(self.settings, sort_keys=False))

    def run(self, *arguments: str, check: bool = True, timeout: float = 60) -> "subprocess.CompletedProcess[str]":
        """Run one command to its end."""
        if self._has_own_interpreter:
            done = subprocess.run(
                [sys.executable, "-m", "biasmeter", *arguments],
                check=False,
                capture_output=True,
                text=True,
                env=self._environ(),
                cwd=self.folder,
                timeout=timeout,
            )
        else:
            done = commands.run(arguments, environment=self._environ(), folder=self.folder, timeout=timeout)
        if check:
            assert done.returncode == 0, done.stderr
        return done

    def create_key(self, *options: str) -> tuple[str, str]:
        """Make a client key: its id and the key itself."""
        done = self.run("key", "create", "-c", str(self.config), "--name", "test", "--json", "--yes", *options)
        made = json.loads(done.stdout)
        return made["id"], made["key"]

    @contextmanager
    def running(self, *arguments: str, until: str = r"listening on http://\S+/v1") -> Iterator[Running]:
        """Run one command until the block ends; it is ready when its log says `until`."""
        running = self.start(*arguments, until=until)
        try:
            yield running
        finally:
            if running.process.poll() is None:
                running.stop()

    def start(self, *arguments: str, until: str = r"listening on http://\S+/v1") -> Running:
        return self.start_unconfigured(*arguments, "-c", str(self.config), until=until)

    def start_unconfigured(self, *arguments: str, until: str = r"listening on http://\S+/v1") -> Running:
        log = self.folder / f"{arguments[0]}-{time.monotonic_ns()}.log"
        with log.open("wb") as file:
            if self.prefix or self._has_own_interpreter:
                process = subprocess.Popen(
                    [*self.prefix, sys.executable, "-m", "biasmeter", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env=self._environ(),
                    cwd=self.folder,
                )
            else:
                output = file.fileno()
                process = commands.start(
                    arguments, environment=self._environ(), folder=self.folder, stdout=output, stderr=output
                )
        self.started.append(process)
        running = Running(process, log, self.mark)
        deadline = time.monotonic() + STARTUP
        while not re.search(until, running.said()):
            assert process.poll() is None, f"it ended with {process.returncode}:\n{running.said()}"
            assert time.monotonic() < deadline, f"not ready in time:\n{running.said()}"
            time.sleep(0.02)
        return running

    @property
    def _has_own_interpreter(self) -> bool:
        """Whether the environment says what Python reads when it starts, so that a forked command would ignore it."""
        return any(name.startswith("PYTHON") for name in self.environment)

    def _environ(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BIASMETER_", "OPENAI_"))}
        return kept | {MARK: self.mark, "PYTHONPATH": str(ROOT)} | self.environment

    async def rows(self, query: str, *arguments: Any) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.database_url)
        try:
            return list(await connection.fetch(query, *arguments))
        finally:
            await connection.close()

    async def found(self, query: str, *arguments: Any) -> list[asyncpg.Record]:
        """Wait until a query has rows: the record of an exchange that was cut comes after the client saw its end."""
        rows: list[asyncpg.Record] = []

        async def are_there() -> bool:
            rows[:] = await self.rows(query, *arguments)
            return bool(rows)

        await eventually(are_there)
        return rows

    async def stored_ids(self) -> Counter[str]:
        """Every exchange in the store, through the auditor's API, page by page."""
        found: Counter[str] = Counter()
        after = None
        async with aiohttp.ClientSession() as client:
            while True:
                query = {"limit": "1000"} | ({"after": after} if after else {})
                async with client.get(self.api + "/api/exchanges", params=query) as answer:
                    assert answer.status == 200, await answer.text()
                    page = await answer.json()
                found.update(line["id"] for line in page["exchanges"])
                after = page["next"]
                if after is None:
                    return found

    def spooled(self) -> int:
        """Records' bytes that wait in the spool."""
        return backlog(self.data_dir / "gateway" / "spool").bytes

    async def shipped(self) -> None:
        """Wait until the spool is empty."""
        await eventually(lambda: self.spooled() == 0)


def settings(upstream_url: str, **gateway: Any) -> dict[str, Any]:
    """A configuration with one deployment behind `gpt` (an alias) and behind `*`, everything captured."""
    return {
        "data_dir": "data",
        # No load balancer has to notice that a test's gateway ends.
        "gateway": {"listen": f"127.0.0.1:{free_port()}", "workers": 2, "drain_notice": "0s"} | gateway,
        "auditor": {"listen": f"127.0.0.1:{free_port()}"},
        "deployments": [
            {"name": "alias", "base_url": upstream_url, "model": "ordinary", "api_key": "sk-upstream"},
            {"name": "relayed", "base_url": upstream_url, "api_key": "sk-upstream"},
        ],
        "routes": [
            {"model": "gpt", "deployments": ["alias"], "capture": "full"},
            {"model": "*", "deployments": ["relayed"], "capture": "full"},
        ],
    }


@contextmanager
def installation(folder: Path, settings: dict[str, Any], database_url: str | None) -> Iterator[Product]:
    """An installation on `database_url` (or its own embedded store), gone with everything it started at the end."""
    if database_url is not None:
        settings = {**settings, "store": {"url": database_url}}
    product = Product(folder, settings, database_url)
    product.write()
    try:
        yield product
    finally:
        kill_all(marked_pids(product.mark))
        for process in product.started:
            process.kill()
        for process in product.started:  # of a test that failed: its warnings would be another test's
            process.wait()
        if database_url is None:
            remove_store(product.data_dir.resolve())
