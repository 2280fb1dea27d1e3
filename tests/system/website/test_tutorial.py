"""The tutorial's commands, each run as it is printed."""

import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from support.paths import DOCS
from support.servers.ports import free_port
from support.servers.product import MARK, kill_all, marked_pids
from support.stores.postgres import remove_store
from support.waiting import wait_until

PAGE = DOCS / "tutorial.md"


def script() -> str:
    """Return the commands as a reader's one shell runs them, on ports that are free here."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 9
    ports = {port: str(free_port()) for port in ("4000", "4001", "4010")}
    listen = "gateway: {listen: '127.0.0.1:4000', workers: 1, drain_notice: 0s}\nauditor: {listen: '127.0.0.1:4001'}"
    blocks[1] += f"cat >> biasmeter.yaml <<'END'\n{listen}\nEND\n"
    # With job control, so that %1 and %2 are its jobs.
    text = "set -em\n" + "".join(f"echo '== {number}'\n{block}" for number, block in enumerate(blocks))
    return re.sub("|".join(ports), lambda found: ports[found[0]], text)


@pytest.mark.slow
def test_the_commands_work_as_printed(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    program = Path(sys.executable).parent
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BIASMETER_", "OPENAI_"))}
    environment |= {MARK: mark, "PATH": f"{program}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    try:
        done = subprocess.run(
            ["bash", "-c", script()],
            cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        # The embedded PostgreSQL ends a moment after its last user.
        wait_until(lambda: not marked_pids(mark))
    finally:
        kill_all(marked_pids(mark))
        remove_store(tmp_path / "biasmeter-data")
    for part in ("starting: gateway for applications", '"ready"', "chat.completion", "360 of 360 answered"):
        assert part in done.stdout
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    evidence = json.loads((tmp_path / "report" / "evidence.json").read_text())
    assert evidence["schema"] == "biasmeter.evidence/1"
    assert (evidence["report"]["from"], evidence["report"]["to"]) == (report["from"], report["to"])
    bias = next(one for one in evidence["requirements"] if one["clause"] == "MEASURE 2.11")
    assert bias["evidence"] == ["/parts"]
    assert bias["missing"] == ["/peers"]
    assert all(
        pointer[1:] in report for one in evidence["requirements"] for pointer in one["evidence"] + one["missing"]
    )
