"""A million stored exchanges: exported, drawn from and picked for a replay, each by a process that stays small.

Promised: under 500 MB.
"""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.paths import ROOT
from support.stores.many_exchanges_store import fill

COUNT = 1_000_000
PROMISED = 500_000_000
CONFIG = """
data_dir: data
store: {{url: "{url}"}}
deployments: [{{name: gpt-eu, base_url: "http://127.0.0.1:1/v1", model: m}}]
routes: [{{model: gpt, deployments: [gpt-eu], audit: desk}}]
audits: [{{name: desk, proposition: {{request: "$.messages[-1].content"}}, claim: stereotype}}]
"""
pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]


#: A process's peak begins with that of the one it was forked from, so a small one stands between.
BETWEEN = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, capture_output=True, check=False)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def measured(folder: Path, *arguments: str) -> tuple[int, int, float]:
    """Run a command: its exit status, the most memory it held in bytes, and its seconds."""
    began = time.monotonic()
    command = [sys.executable, "-m", "biasmeter", *arguments]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    told = subprocess.run(
        [sys.executable, "-c", BETWEEN, *command], cwd=folder, env=environ, check=True, capture_output=True, text=True
    )
    status, kibibytes = map(int, told.stdout.split())
    return status, kibibytes * 1024, time.monotonic() - began


async def test_a_million_exchanges(migrated_url: str, tmp_path: Path) -> None:
    (tmp_path / "biasmeter.yaml").write_text(CONFIG.format(url=migrated_url))
    await fill(migrated_url, COUNT, datetime.now(UTC) - timedelta(days=10))
    lines = {}
    commands = {
        "all.jsonl.gz": ("export-exchanges", "--select", "all"),
        "facts.jsonl": ("export-exchanges", "--select", "all", "--no-content"),
        "drawn.jsonl": ("export-exchanges", "--select", "limit=200000,draw=traffic"),
        # It says what it would cost, and sends nothing.
        "replay": ("replay", "--select", "origin=client,limit=2000,seed=1", "--formats", "BJ"),
    }
    for out, command in commands.items():
        status, memory, seconds = measured(tmp_path, *command, "-o", out)
        print(f"{' '.join(command)}: {memory / 1e6:.0f} MB, {seconds:.0f} s")
        assert status == (2 if out == "replay" else 0)
        assert memory < PROMISED
        lines[out] = (tmp_path / out).stat().st_size if (tmp_path / out).exists() else 0
    print(lines)
    assert lines["facts.jsonl"] > 100 * COUNT
