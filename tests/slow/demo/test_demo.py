"""`biasmeter demo`: every stage works, the numbers stand beside the truth, nothing is left running."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from pypdf import PdfReader
from support.clients.browsers import CHROMIUM, chromium
from support.servers.product import Product, kill_all, marked_pids
from support.stores.postgres import remove_store

from auditor.demo.installation import DEPLOYMENTS


def test_the_demonstration_works_from_end_to_end(tmp_path: Path) -> None:
    product = Product(tmp_path, {}, None)
    out = tmp_path / "demo"
    done = product.run("demo", "--out", str(out), check=False, timeout=280)
    remove_store(out / "data")
    assert done.returncode == 0, done.stdout + done.stderr
    assert marked_pids(product.mark) == []
    for name in DEPLOYMENTS:
        assert name in done.stdout
    # 25 intervals, each meant to hold its limit with 95 %: fewer than 20 would be no chance.
    held = (
        next(line for line in done.stdout.splitlines() if " intervals contain the limit" in line)
        .split(" intervals")[0]
        .split()
    )
    assert int(held[-3]) >= 20
    assert int(held[-1]) == 25
    assert "biasmeter up -c" in done.stdout
    assert [line for line in done.stdout.splitlines() if len(line) > 80 and str(out) not in line] == []
    page = (out / "report.html").read_text()
    assert "Content notice" in page
    # Its rates lead to their answers in the console, and nothing to anywhere else.
    console = re.search(r"^console +(http://\S+)/$", done.stdout, re.MULTILINE)
    assert console is not None
    assert f'href="{console[1]}/answers?' in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace(f'href="{console[1]}/answers?', "")
    assert json.loads((out / "report.json").read_text())
    if CHROMIUM is not None:
        with chromium() as browser:
            shown = browser.new_page()
            shown.goto((out / "report.html").as_uri())
            assert len(PdfReader(BytesIO(shown.pdf(prefer_css_page_size=True))).pages) <= 12


def test_an_out_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    product = Product(tmp_path, {}, None)
    (tmp_path / "demo").write_text("")
    done = product.run("demo", "--out", str(tmp_path / "demo"), check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def probing(out: Path) -> bool:
    """Whether the demonstration in this folder has begun to ask its deployments."""
    log = out / "audit.log"
    return log.exists() and (out / "up.log").stat().st_size > 0


def interrupt(
    folder: Path, end: Callable[["subprocess.Popen[bytes]"], None], terminal: tuple[int, int] | None = None
) -> int:
    """Start a demonstration, end it while it probes, and give its status; 15 s later nothing of it may run."""
    product, out = Product(folder, {}, None), folder / "demo"
    # Whoever runs the tests in the background has them ignore Ctrl-C, and so would all that they start.
    command = ["env", "--default-signal=INT,HUP", *(["setsid", "--ctty"] if terminal else [])]
    streams = terminal[1] if terminal else subprocess.DEVNULL
    process = subprocess.Popen(
        [*command, sys.executable, "-m", "biasmeter", "demo", "--out", str(out)],
        env=product._environ() | {"TERM": "xterm"}, cwd=folder, stdin=streams, stdout=streams, stderr=streams,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 240
        while not probing(out):
            assert process.poll() is None
            assert time.monotonic() < deadline
            if terminal and select.select([terminal[0]], [], [], 0.1)[0]:
                os.read(terminal[0], 65536)
            time.sleep(0.02)
        assert len(marked_pids(product.mark)) > 5
        end(process)
        ended = time.monotonic()
        status = process.wait(15)
        while marked_pids(product.mark):
            assert time.monotonic() < ended + 15, marked_pids(product.mark)
            time.sleep(0.1)
        return status
    finally:
        kill_all(marked_pids(product.mark))
        remove_store(out / "data")


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_signal_ends_all_that_the_demonstration_started(number: int, status: int, tmp_path: Path) -> None:
    assert interrupt(tmp_path, lambda process: process.send_signal(number)) == status


def test_a_terminal_that_closes_ends_all_that_the_demonstration_started(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()

    def close(_: "subprocess.Popen[bytes]") -> None:
        os.close(theirs)
        os.close(ours)

    assert interrupt(tmp_path, close, (ours, theirs)) == 129
