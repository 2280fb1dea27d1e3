"""`biasmeter export-exchanges` and `import-exchanges`, as a user types them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.servers.product import Product
from typer.testing import CliRunner

from auditor.errors import UsageError
from biasmeter.commands.main import app

CONFIG = """
data_dir: data
store: {{url: "{url}"}}
deployments: [{{name: here, base_url: "http://127.0.0.1:1/v1", model: m}}]
routes: [{{model: "*", deployments: [here]}}]
"""


def product_of(folder: Path, url: str) -> Product:
    """An installation of which nothing runs."""
    made = Product(folder, {}, None)
    made.config.write_text(CONFIG.format(url=url))
    return made


def test_a_spend_log_goes_in_and_our_lines_come_out(tmp_path: Path, migrated_url: str) -> None:
    product = product_of(tmp_path, migrated_url)
    began = datetime.now(UTC) - timedelta(hours=1)
    row = {
        "request_id": "chatcmpl-1", "call_type": "acompletion", "model": "azure/gpt", "model_group": "gpt",
        "startTime": began.isoformat(), "endTime": began.isoformat(),
        "proxy_server_request": {"messages": []}, "response": {"choices": []},
    }  # fmt: skip
    logs = tmp_path / "logs.jsonl"
    logs.write_text("\n".join(json.dumps(one) for one in (row, row | {"request_id": ""}, row | {"call_type": "ocr"})))
    command = ("import-exchanges", str(logs), "-c", str(product.config), "--format", "litellm", "--content")
    done = product.run(*command, "--deployment", "here", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"biasmeter: {logs}:2: request_id is missing")
    done = product.run(*command, "--deployment", "azure/gpt=here", "--skip-bad")
    assert done.stdout.splitlines() == [
        f"{logs}: 1 exchanges stored, 0 were there already, 1 bad rows skipped",
        "  left out: call type ocr 1",
    ]
    assert done.stderr.startswith(f"skipped {logs}:2: ")
    told = json.loads(product.run(*command, "--deployment", "here", "--skip-bad", "--json").stdout)
    assert told == {"source": str(logs), "stored": 0, "known": 1, "left_out": {"call_type ocr": 1}, "skipped": 1}
    out = tmp_path / "out.jsonl"
    select = ("export-exchanges", "-c", str(product.config), "--select", "tag.imported=litellm", "-o", str(out))
    assert product.run(*select).stdout == f"{out}: 1 exchanges\n"
    (line,) = map(json.loads, out.read_text().splitlines())
    assert (line["request_id"], line["deployment"], line["response"]) == ("chatcmpl-1", "here", '{"choices":[]}')
    assert json.loads(product.run(*select, "--json").stdout) == {"out": str(out), "exchanges": 1}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("import-exchanges", "none.jsonl"), "none.jsonl: no such file"),
        (
            ("import-exchanges", "biasmeter.yaml", "--format", "csv"),
            "--format 'csv' is not known; the formats are biasmeter",
        ),
        (
            ("import-exchanges", "biasmeter.yaml", "--deployment", "gpt=there"),
            "'there' is not declared; there are here",
        ),
        (
            ("import-exchanges", "biasmeter.yaml", "--deployment", "here", "--deployment", "here"),
            "all rows are given a deployment twice",
        ),
        (("export-exchanges", "--select", "all", "-o", "none/out.jsonl"), "no such directory"),
        (("export-exchanges", "--select", "seed=1", "-o", "out.jsonl"), "--select: seed"),
    ],
)
def test_bad_options_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    product_of(tmp_path, "postgresql://nobody@127.0.0.1:1/none")
    done = CliRunner().invoke(app, options)
    assert isinstance(done.exception, UsageError)
    assert named in str(done.exception)
    assert len(str(done.exception).splitlines()) == 1
