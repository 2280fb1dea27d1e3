"""Run the commands of a checkout, under whatever name the product has there."""

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: The product's names, the newest first.
NAMES = ("biasmeter", "tiltmeter")
#: The module of a package that has its command line, the newest first; a name that is no package is that module itself.
_COMMAND_LINES = ("commands.main", "cli")
_HELP = """
import sys
from importlib import import_module
from typer.main import get_command
from click import Context
app = import_module(sys.argv[1]).app
def show(command, names):
    print("=====", *names)
    with Context(command, info_name=names[-1]) as context:
        print(command.get_help(context) or "")
    for name, child in sorted(getattr(command, "commands", {}).items()):
        show(child, (*names, name))
show(get_command(app), ("product",))
"""
#: Runs many commands in children of one process that has imported the libraries, which take longer than most commands.
_RUN_ALL = """
import json, os, sys
from importlib import import_module
import numpy, scipy.stats, sqlalchemy, jinja2
name, jobs = sys.argv[1], json.loads(sys.argv[3])
module = import_module(sys.argv[2])
for folder, arguments in jobs:
    if not (child := os.fork()):
        os.chdir(folder)
        for number, file in ((1, "stdout.txt"), (2, "stderr.txt")):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT, 0o644), number)
        sys.argv = [name, *arguments]
        module.main()
        sys.exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    open(os.path.join(folder, "status.txt"), "w").write(f"{status}\\n")
"""


@dataclass(frozen=True)
class Checkout:
    """A tree of the product's source, old or new."""

    tree: Path

    @property
    def name(self) -> str:
        """Return the product's name in this tree."""
        return next(name for name in NAMES if (self.tree / name).is_dir() or (self.tree / f"{name}.py").is_file())

    @property
    def command_line(self) -> str:
        """Return the module with the commands."""
        below = (one for one in _COMMAND_LINES if (self.tree / self.name / f"{one.replace('.', '/')}.py").is_file())
        return next((f"{self.name}.{one}" for one in below), self.name)

    @property
    def environ(self) -> dict[str, str]:
        """Return an environment in which this tree is imported, whatever is installed."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(tuple(f"{n.upper()}_" for n in NAMES))}
        path = os.pathsep.join((str(self.tree), str(self.tree / "tests"), str(_metadata(self.name))))
        terminal = {"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1", "TZ": "UTC", "PYTHONHASHSEED": "0"}
        return kept | terminal | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}

    def run(self, folder: Path, *arguments: str, timeout: float = 600) -> "subprocess.CompletedProcess[str]":
        """Run one command in a folder."""
        return self._python(folder, "-m", self.name, *arguments, timeout=timeout)

    def run_all(self, jobs: Sequence[tuple[Path, Sequence[str]]]) -> None:
        """Run commands, each in its folder, and write there what they printed."""
        told = json.dumps([(str(folder), arguments) for folder, arguments in jobs])
        done = self._python(jobs[0][0], "-c", _RUN_ALL, self.name, self.command_line, told, timeout=1800)
        assert done.returncode == 0, done.stderr

    def help(self, folder: Path) -> str:
        """Return the help of every command."""
        done = self._python(folder, "-c", _HELP, self.command_line)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def script(self, folder: Path, text: str) -> "subprocess.CompletedProcess[str]":
        """Run a script that imports from the tree and from its tests."""
        return self._python(folder, "-c", text)

    @contextmanager
    def running(self, folder: Path, ready: str, *arguments: str) -> Iterator[Path]:
        """Run a command until the block ends; wait until its log contains `ready`."""
        log = folder / f"{arguments[0]}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", self.name, *arguments],
                cwd=folder, env=self.environ, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            deadline = time.monotonic() + 90
            while ready not in log.read_text(errors="replace"):
                assert process.poll() is None, log.read_text(errors="replace")
                assert time.monotonic() < deadline, log.read_text(errors="replace")
                time.sleep(0.1)
            yield log
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)

    def _python(self, folder: Path, *arguments: str, timeout: float = 600) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=folder, env=self.environ, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip


@cache
def _metadata(name: str) -> Path:
    """Return a folder that makes a distribution of this name known, for a checkout that is not installed."""
    folder = Path(tempfile.mkdtemp(prefix="golden-metadata-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    info = folder / f"{name}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 0.1.0\n")
    return folder


def canonical(document: object) -> str:
    """Return a JSON document as sorted, indented text."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
