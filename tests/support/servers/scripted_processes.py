"""Processes that run a few lines of Python beside a test: told to go on line by line, heard line by line, killed."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager


class Companion:
    """One of them, while it runs."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def hear(self) -> str:
        """Wait for a line of its standard output."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def tell(self) -> None:
        """Give it a line of standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """Kill it (-9)."""
        self._process.kill()
        self._process.wait()


@contextmanager
def companion(source: str, *arguments: object) -> Iterator[Companion]:
    """Run `source` with `arguments` in `sys.argv[1:]`; it is killed at the end of the block."""
    command = [sys.executable, "-c", textwrap.dedent(source), *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Companion(process)
        finally:
            process.kill()
