"""Write a demonstration's folder and configuration, and run commands on it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml

from auditor.demo import guarded
from auditor.errors import AuditError
from auditor.instrument.pool import record_of, shipped_pool
from auditor.simulate.config import default_text

#: The deployments of the built-in scenario to show: an unbiased one, the cancellation trap, twins, and a biased one.
DEPLOYMENTS = ("sim-level", "sim-tilted", "sim-cancelling", "sim-twin-home", "sim-twin-abroad")
JUDGES = ("sim-judge-north", "sim-judge-east", "sim-judge-south")
_PATIENCE = 90.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Ports:
    """The ports of the processes, on 127.0.0.1."""

    simulator: int
    gateway: int
    auditor: int


def choose_ports(gateway: int) -> Ports:
    """Choose the gateway's port and the next one for the auditor, or free ones for 0."""
    with contextlib.ExitStack() as probes:

        def free() -> int:
            probe = probes.enter_context(socket.create_server(("127.0.0.1", 0)))
            return int(probe.getsockname()[1])

        return Ports(simulator=free(), gateway=gateway or free(), auditor=gateway + 1 if gateway else free())


def configuration(ports: Ports) -> dict[str, Any]:
    """Return the configuration: each simulated deployment behind a route of its name, and the simulated judges."""
    upstream = f"http://127.0.0.1:{ports.simulator}/v1"
    twins = {"sim-twin-home": "twin-7", "sim-twin-abroad": "twin-7"}
    deployments: list[dict[str, Any]] = [
        {
            "name": name,
            "base_url": upstream,
            "model": name,
            "vendor": name.split("-")[1],
            **({"weights": twins[name]} if name in twins else {}),
            "concurrency": 32,
            "price": {"input": 0, "output": 0},
        }
        for name in (*DEPLOYMENTS, *JUDGES)
    ]
    return {
        "data_dir": "data",
        "gateway": {"listen": f"127.0.0.1:{ports.gateway}", "workers": 1},
        "auditor": {"listen": f"127.0.0.1:{ports.auditor}"},
        "deployments": deployments,
        "routes": [{"model": name, "deployments": [name], "capture": "full", "judge": True} for name in DEPLOYMENTS],
        "judges": [{"name": name.removeprefix("sim-judge-"), "deployment": name} for name in JUDGES],
        "panel": {"judges": [name.removeprefix("sim-judge-") for name in JUDGES]},
    }


def write_configuration(folder: Path, ports: Ports) -> Path:
    """Write the configuration into the demonstration's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "biasmeter.yaml"
    head = (
        "# Written by `biasmeter demo`. Its deployments are simulated: start them with\n"
        f"#   biasmeter simulate --port {ports.simulator}\n"
    )
    path.write_text(head + yaml.safe_dump(configuration(ports), sort_keys=False), encoding="utf-8")
    return path


def write_scenario(folder: Path) -> Path:
    """Write the built-in scenario with the shipped statements, so that the simulator knows their options."""
    pool = folder / "statements.jsonl"
    pool.write_text("".join(json.dumps(record_of(each)) + "\n" for each in shipped_pool()), encoding="utf-8")
    path = folder / "scenario.yaml"
    path.write_text(f"statements: {pool.name}\n{default_text()}", encoding="utf-8")
    return path


def run(log: Path, *arguments: str) -> None:
    """Run one command to its end; what it prints goes into ``log``.

    Raises
    ------
    AuditError
        The command failed; the message names it.
    """
    with log.open("ab") as output, _started(arguments, output) as process:
        status = process.wait()
    if status:
        raise AuditError(f"`biasmeter {' '.join(arguments)}` ended with status {status}; see {log}")


@contextlib.contextmanager
def running(log: Path, ready: str, *arguments: str) -> Iterator[None]:
    """Run one command until the block ends; it is ready once its log contains ``ready``.

    Raises
    ------
    AuditError
        The command ended before it was ready, or was not ready in time.
    """
    with log.open("wb") as output, _started(arguments, output) as process:
        _await(process, log, ready, arguments[0])
        yield


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Turn the first SIGTERM or SIGHUP into ``SystemExit``, so that everything that was started is stopped."""
    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is not signal.SIG_IGN]

    def end(number: int, _: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        if number == signal.SIGHUP:  # the terminal may be gone, and writing to it would fail
            with Path(os.devnull).open("wb") as nothing:
                for descriptor in (1, 2):
                    os.dup2(nothing.fileno(), descriptor)
        raise SystemExit(128 + number)

    former = {each: signal.signal(each, end) for each in numbers}
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)


@contextlib.contextmanager
def _started(arguments: tuple[str, ...], output: IO[bytes]) -> Iterator["subprocess.Popen[bytes]"]:
    """Start one command in a process group of its own, and end what is left of it with the block."""
    # It also ends when the other end of its standard input closes: when this process dies.
    process = subprocess.Popen(  # noqa: S603 -- our own commands
        [sys.executable, "-m", guarded.__name__, *arguments],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        process_group=0,
    )
    patience = guarded.GRACE
    try:
        yield process
        patience = _PATIENCE
    finally:
        _stop(process, patience)


def _stop(process: "subprocess.Popen[bytes]", patience: float) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)  # as Ctrl-C does: there is no load balancer to wait for
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.stdin is not None
    process.stdin.close()


def _await(process: "subprocess.Popen[bytes]", log: Path, ready: str, name: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while ready not in log.read_text(encoding="utf-8", errors="replace"):
        if process.poll() is not None:
            raise AuditError(f"`biasmeter {name}` ended with status {process.returncode}; see {log}")
        if time.monotonic() > deadline:
            raise AuditError(f"`biasmeter {name}` was not ready within {_PATIENCE:.0f} s; see {log}")
        time.sleep(0.1)
