"""Commands of the product as processes that need not import it: a server that has imported it forks one for each.

A command is a process of its own, with its own arguments, environment, folder and signals, as if started by
`python -m biasmeter`. Only the second or more that importing takes is paid once a run. What a command starts itself
(workers, the shipper, the auditor) is started as always.
"""

import atexit
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from support import costs
from support.paths import ROOT, TESTS

#: What commands import when they run: imported once.
PRELOADED = (
    "auditor.api.app",
    "auditor.api.start",
    "auditor.jobs.queue_worker",
    "auditor.postgres.embedded",
    "auditor.process",
    "auditor.store.schema",
    "biasmeter.commands.main",
    "gateway.processes.supervisor",
    "replay.sending",
)


class Command:
    """One command that runs, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._replies = connection.makefile("rb")
        self.pid: int = json.loads(self._replies.readline())["pid"]
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status; raise `subprocess.TimeoutExpired` after `timeout` seconds."""
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._connection, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired("biasmeter", timeout or 0)
            reply = json.loads(self._replies.readline())
            self.returncode = int(reply["status"])
            costs.add_cpu_seconds(reply["cpu_seconds"])
            self._replies.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end (-15)."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it (-9)."""
        self.send_signal(signal.SIGKILL)


def start(
    arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path, stdout: int, stderr: int
) -> Command:
    """Start `biasmeter` with these arguments; its output goes to the descriptors, and it reads nothing."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_server())
    request = {"arguments": [*arguments], "environment": dict(environment), "folder": str(folder)}
    socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], [stdout, stderr])
    return Command(connection)


def run(
    arguments: Sequence[object],
    *,
    folder: Path,
    environment: Mapping[str, str] = os.environ,
    timeout: float = 120,
) -> "subprocess.CompletedProcess[str]":
    """Run `biasmeter` with these arguments to its end."""
    arguments = [*map(str, arguments)]
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        command = start(
            arguments, environment=environment, folder=folder, stdout=stdout.fileno(), stderr=stderr.fileno()
        )
        try:
            status = command.wait(timeout)
        finally:
            command.kill()
            command.wait(10)  # closes the connection, also where an error has ended the wait before
        outputs = []
        for file in (stdout, stderr):
            file.seek(0)
            outputs.append(file.read().decode(errors="replace"))
    return subprocess.CompletedProcess(["biasmeter", *arguments], status, *outputs)


@cache
def _server() -> str:
    """Start the server of this process's commands, and return its address."""
    address = f"{tempfile.mkdtemp(prefix='commands-')}/socket"
    process = subprocess.Popen(
        [sys.executable, "-m", "support.servers.commands", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": f"{TESTS}:{ROOT}", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"

    def stop() -> None:
        process.stdin.close()
        process.stdout.close()
        process.wait()
        Path(address).unlink(missing_ok=True)
        Path(address).parent.rmdir()

    atexit.register(stop)
    return address


def _serve(address: str) -> list[str]:
    """Fork a process for each connection, tell its exit status; return the arguments in the forked process."""
    for module in PRELOADED:
        __import__(module)
    import_module("biasmeter.commands.main").command_tree()
    gc.freeze()  # so that no child copies what it never frees
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    wakeup, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    with selectors.DefaultSelector() as selector:
        for source in (listener, wakeup, sys.stdin):
            selector.register(source, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select()]
            if sys.stdin in ready:
                _end(running)
            if wakeup in ready:
                wakeup.recv(4096)
                _report(running)
            if listener in ready:
                connection, request, descriptors = _accept(listener)
                pid = os.fork()
                if not pid:
                    break
                for descriptor in descriptors:
                    os.close(descriptor)
                connection.sendall(json.dumps({"pid": pid}).encode() + b"\n")
                running[pid] = connection
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for socket_ in (listener, wakeup, waker, connection, *running.values()):
        socket_.close()
    return _become(request, descriptors)


def _accept(listener: socket.socket) -> tuple[socket.socket, dict[str, Any], list[int]]:
    """Take one request and the descriptors of its outputs."""
    connection, _ = listener.accept()
    message, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 2)
    while not message.endswith(b"\n"):
        message += connection.recv(1 << 20)
    return connection, json.loads(message), descriptors


def _report(running: dict[int, socket.socket]) -> None:
    """Tell who waits for them of all that have ended."""
    with suppress(ChildProcessError):
        while (ended := os.wait4(-1, os.WNOHANG))[0]:
            pid, status, usage = ended
            reply = {"status": os.waitstatus_to_exitcode(status), "cpu_seconds": usage.ru_utime + usage.ru_stime}
            with running.pop(pid) as connection, suppress(OSError):
                connection.sendall(json.dumps(reply).encode() + b"\n")


def _end(running: Mapping[int, socket.socket]) -> NoReturn:
    """Kill what is left, and end."""
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    sys.exit()


def _become(request: Mapping[str, Any], descriptors: list[int]) -> list[str]:
    """Take over the environment, folder and outputs of a request; return its arguments."""
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, descriptor in enumerate((nothing, *descriptors)):
        os.dup2(descriptor, target)
        os.close(descriptor)
    return list(request["arguments"])


def _finish(status: object) -> NoReturn:
    """End as the interpreter does, but do not free what was imported: that takes longer than most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    sys.argv = ["biasmeter", *_serve(sys.argv[1])]
    from biasmeter.commands.main import main

    try:
        main()
    except SystemExit as ended:
        _finish(ended.code)
    _finish(None)
