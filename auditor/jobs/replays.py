"""Run the replays that people plan and start in the console, each as the command that does the same.

``replay`` is a package above the auditor, so a replay is a process of its own. The command estimates the calls, or
sends those without an answer and compares all answers; what it has written stays in the data folder.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import shlex
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from auditor.config import Config
from auditor.jobs.console_runs import repeat_runs, wait_for_stop
from auditor.store.console_runs import ConsoleRun, RunKind, RunState, begin_run, end_run
from auditor.store.engine import store_errors, transaction
from auditor.store.plans import lock_plan
from auditor.work import Work

log = logging.getLogger(__name__)

#: In a format's key: the two sides of a swap of groups.
_SWAP: Final = "<>"
#: Seconds that a stopped command has to finish the calls under way.
_PATIENCE: Final = 15.0
#: The command's log lines name it.
_NAME: Final = "biasmeter: "


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayChoice:
    """A replay as somebody asks for it. Its fields are the options of ``biasmeter replay``."""

    select: str
    formats: str = ""  #: separated by commas; empty: the command's own choice
    swap: tuple[str, ...] = ()
    to: str | None = None
    name: str = ""
    budget_calls: int | None = None
    budget_usd: float | None = None

    @property
    def id(self) -> str:
        """A digest of the settings; budgets belong to a run, and a second run continues the first."""
        settings = {name: value for name, value in asdict(self).items() if not name.startswith("budget")}
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return asdict(self)

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> "ReplayChoice":
        """Read what ``to_json`` wrote."""
        return cls(**{**document, "swap": tuple(document["swap"])})

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> "ReplayChoice":
        """Return the choice that continues a stored replay."""
        return cls(
            select=settings["select"],
            formats=",".join(key for key in settings["formats"] if _SWAP not in key),
            swap=tuple(key for key in settings["formats"] if _SWAP in key),
            to=settings["to"] or None,
            name=settings["name"] or "",
        )

    def options(self) -> list[str]:
        """Return the options of the command."""
        arguments = ["--select", self.select]
        arguments += ["--formats", self.formats] if self.formats else []
        for each in self.swap:
            arguments += ["--swap", each]
        arguments += ["--to", self.to] if self.to else []
        arguments += ["--name", self.name] if self.name else []
        arguments += ["--budget-calls", str(self.budget_calls)] if self.budget_calls is not None else []
        arguments += ["--budget-usd", str(self.budget_usd)] if self.budget_usd is not None else []
        return arguments


def command(choice: ReplayChoice, file: str, *, send: bool) -> str:
    """Return the command that does the same as the console."""
    return f"biasmeter replay -c {file} {shlex.join(choice.options())}{' --yes' if send else ''}"


def folder_of(config: Config, run_id: str) -> Path:
    """Return the folder in which a replay of the console leaves its comparison."""
    return config.data_dir / "replays" / run_id


async def repeat_replays(work: Work) -> None:
    """Run started replays, repeatedly, until cancelled. Any number of processes may: each run is done by one."""
    await repeat_runs(work, RunKind.REPLAY, _run_alone)


async def _run_alone(work: Work, run: ConsoleRun) -> None:
    with store_errors():
        async with work.engine.begin() as lock:
            if await lock_plan(lock, f"console {run.id}"):
                await _run(work, run)


async def _run(work: Work, run: ConsoleRun) -> None:
    result: dict[str, Any] = {}
    stopped = run.state is RunState.STOPPING
    if not stopped:
        async with transaction(work.engine) as connection:
            await begin_run(connection, RunKind.REPLAY, run.id)
        stopped, result = await _call(work, run)
    async with transaction(work.engine) as connection:
        state = RunState.STOPPED if stopped else RunState.ENDED
        await end_run(connection, RunKind.REPLAY, run.id, state, result)
    log.info("replay %s: %s", run.id, result.get("error") or state)


async def _call(work: Work, run: ConsoleRun) -> tuple[bool, dict[str, Any]]:
    """Run the command; return whether somebody stopped it, and what it wrote."""
    choice = ReplayChoice.of_json(run.choice["replay"])
    folder = folder_of(work.config, run.id)
    folder.mkdir(parents=True, exist_ok=True)
    options = [*choice.options(), "--out", str(folder), "--json", *(["--yes"] if run.choice["send"] else [])]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "biasmeter", "replay", "-c", work.config.file, *options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    ending = asyncio.create_task(process.communicate())
    stopping = asyncio.create_task(wait_for_stop(work, RunKind.REPLAY, run.id))
    try:
        await asyncio.wait([ending, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        # Also where the auditor ends: its next start continues the run.
        stopped = await _end(process, ending, stopping)
    output, errors = await ending
    return stopped, _result(output, errors, process.returncode or 0)


async def _end(
    process: asyncio.subprocess.Process, ending: "asyncio.Task[tuple[bytes, bytes]]", stopping: "asyncio.Task[None]"
) -> bool:
    """End what still runs, as Ctrl-C would; return whether somebody has stopped the run."""
    stopped = stopping.done()
    stopping.cancel()
    if not ending.done():
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        _, late = await asyncio.wait([ending], timeout=_PATIENCE)
        if late:
            process.kill()
            await asyncio.wait([ending])
    return stopped


def _result(output: bytes, errors: bytes, status: int) -> dict[str, Any]:
    """Read what the command has printed: the cost of the open calls or the main numbers, and why it failed."""
    try:
        result: dict[str, Any] = json.loads(output)
    except json.JSONDecodeError:
        result = {}
    result.pop("groups", None)
    is_cost = "to_send" in result
    if status != 0 and not is_cost:
        lines = errors.decode(errors="replace").strip().splitlines()
        result["error"] = lines[-1].removeprefix(_NAME) if lines else f"the command ended with status {status}"
    return result
