"""The two programs in C that the measurement needs: compiled on the spot, and the upstream run."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.hot_path.processes import on_cpus
from product import free_port

_SOURCES = Path(__file__).parent
_ELSEWHERE = "/usr/local/sbin:/usr/sbin"  # Debian keeps servers where only root's PATH looks


class NotHere(Exception):  # noqa: N818 -- a state of the machine
    """A proxy cannot be measured on this machine, and why."""


def found(program: str) -> str:
    """Give the path of a program.

    Raises
    ------
    NotHere
        It is not installed.
    """
    path = shutil.which(program) or shutil.which(program, path=_ELSEWHERE)
    if path is None:
        raise NotHere(f"{program} is not installed")
    return path


def compiled(name: str, folder: Path) -> Path:
    """Compile one of the programs into a folder.

    Raises
    ------
    NotHere
        There is no C compiler.
    """
    program = folder / name
    subprocess.run([found("cc"), "-O2", "-o", str(program), str(_SOURCES / f"{name}.c")], check=True)
    return program


@contextmanager
def upstream(folder: Path, cpu: int) -> Iterator[int]:
    """Run the upstream on one CPU until the block ends: its port."""
    program, port = compiled("upstream", folder), free_port()
    with on_cpus({cpu}):
        process = subprocess.Popen([str(program), str(port)])
    try:
        _await(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _await(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline, "the upstream does not come up"
        time.sleep(0.01)
