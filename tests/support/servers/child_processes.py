"""Child processes of the tests: started, heard from once, ended with the parent whatever happens to it.

The child's standard input is a pipe that only the parent holds: its end of file is the parent's death.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.paths import ROOT, TESTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A running child and the first thing it said."""

    process: "subprocess.Popen[str]"
    hello: dict[str, Any]

    @property
    def pid(self) -> int:
        """Process id."""
        return self.process.pid


@contextmanager
def child_process(arguments: Sequence[str], *, log: Path | None = None, grace: float = 5.0) -> Iterator[Child]:
    """Run Python with these arguments, usually `-m` and a module of the tests, until the block ends.

    The child's first line is a JSON object. `log` is where the child writes its messages;
    they are shown when it does not get ready.
    """
    paths = [TESTS, ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            said = log.read_text(errors="replace") if log and log.exists() else ""
            raise RuntimeError(f"{arguments[:2]} ended with {process.wait(grace)} before it was ready\n{said}")
        yield Child(process=process, hello=json.loads(line))
    finally:
        process.terminate()
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(grace)
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()


def die_with_parent() -> None:
    """Called in the child: end at once when standard input ends."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def say(**hello: Any) -> None:
    """Called in the child: tell the parent that it is ready, and how to reach it."""
    sys.stdout.write(json.dumps(hello) + "\n")
    sys.stdout.flush()
