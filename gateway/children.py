"""Child processes that end with their parent, and start again when they die. Used by the gateway and by ``up``."""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from auditor.lifeline import HOPELESS

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE, _SETTLED = 0.1, 5.0, 10.0


@dataclass(slots=True)
class Child:
    """One child process.

    ``module`` is run with ``bootstrap`` on its standard input, which stays open for as long as this process lives.
    """

    name: str
    module: str
    bootstrap: bytes
    pass_fds: Sequence[int] = ()
    #: What the child first reported; set once.
    reported: "asyncio.Future[dict[str, object]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    _process: asyncio.subprocess.Process | None = None
    _stopping: bool = False

    async def run(self) -> int:
        """Keep the child running until it is stopped, or ends as hopeless; give its last exit status."""
        pause = _FIRST_PAUSE
        while True:
            began = time.monotonic()
            status = await self._run_once()
            if self._stopping or status == HOPELESS:
                return status
            pause = _FIRST_PAUSE if time.monotonic() - began > _SETTLED else min(pause * 2, _LONGEST_PAUSE)
            log.warning("%s ended with status %d; starting it again", self.name, status)
            await asyncio.sleep(pause)

    async def _run_once(self) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self.module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=self.pass_fds,
            process_group=0,  # Ctrl-C in a terminal is the parent's to pass on
        )
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(self.bootstrap)
            await process.stdin.drain()
        except ConnectionError:
            pass  # it is dead already, and its status says more
        if self._stopping:  # asked to end while it was being started
            process.terminate()
        line = await process.stdout.readline()
        if line and not self.reported.done():
            self.reported.set_result(json.loads(line))
        status = await process.wait()
        self._process = None
        return status

    def terminate(self) -> None:
        """Ask the child to end, and do not start it again."""
        self._stopping = True
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()

    def kill(self) -> None:
        """End the child now."""
        self._stopping = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
