"""Child processes that end with their parent and are restarted when they die. Used by the gateway and by ``up``."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from auditor.parent_pipe import HOPELESS

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE, _SETTLED = 0.1, 5.0, 10.0
_HOPELESS_PAUSE = 15.0  # seconds until a child that had started before is tried again, although it gave up
_LAST_WORDS = 1.0  # seconds to wait for the last reports of a child that has ended


@dataclass(slots=True)
class Child:
    """One child process.

    ``module`` is run with ``bootstrap()`` on its standard input, which stays open for as long as this process lives.
    """

    name: str
    module: str
    bootstrap: Callable[[], bytes]
    pass_fds: Sequence[int] = ()
    #: Returns the child's environment variables; they are read at each start.
    environment: Callable[[], Mapping[str, str]] = lambda: os.environ
    #: What the child first reported; set once.
    reported: "asyncio.Future[dict[str, object]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    _last_report: dict[str, object] = field(default_factory=dict)
    _report_arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _has_started: bool = False
    _process: asyncio.subprocess.Process | None = None
    _stopping: signal.Signals | None = None
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> int:
        """Keep the child running until it is stopped or cannot start. Return its last exit status.

        A child that gives up after an earlier start succeeded is tried again: the schema, say, is another one while a
        release is installed, and the other children go on.
        """
        pause = _FIRST_PAUSE
        while True:
            began = time.monotonic()
            status = await self._run_once()
            if self._stopping or (status == HOPELESS and not self._has_started):
                return status
            if status == HOPELESS:
                pause = _HOPELESS_PAUSE
                log.warning("%s cannot start (%s); trying again", self.name, self._last_report.get("error"))
            else:
                pause = _FIRST_PAUSE if time.monotonic() - began > _SETTLED else min(pause * 2, _LONGEST_PAUSE)
                log.warning("%s ended with status %d; restarting it", self.name, status)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), pause)
            if self._stopping:
                return status

    async def _run_once(self) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self.module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=self.pass_fds,
            env=self.environment(),
            process_group=0,  # Ctrl-C in a terminal is the parent's to pass on
        )
        self._process = process
        self.send_bootstrap()
        if self._stopping:  # stopped while it was being started
            process.send_signal(self._stopping)
        reading = asyncio.create_task(self._read_reports(process))
        status = await process.wait()
        self._process = None
        await asyncio.wait({reading}, timeout=_LAST_WORDS)
        reading.cancel()
        return status

    def send_bootstrap(self) -> None:
        """Send the child its bootstrap again. A child that is not running gets it when it is started."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(self.bootstrap())  # writing to a dead child does no harm

    async def _read_reports(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            with contextlib.suppress(ValueError):  # a library may print other lines there
                self._last_report = json.loads(line)
                self._has_started |= "error" not in self._last_report
                if not self.reported.done():
                    self.reported.set_result(self._last_report)
                self._report_arrived.set()
                self._report_arrived.clear()

    async def wait_for_report(self, fact: str, value: object) -> None:
        """Wait until the child's last report contains this fact."""
        while self._last_report.get(fact) != value:
            await self._report_arrived.wait()

    def terminate(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Signal the child to end, and do not restart it."""
        self._stopping = number
        self._stopped.set()
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End the child now."""
        self.terminate(signal.SIGKILL)
