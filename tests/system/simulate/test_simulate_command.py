"""`biasmeter simulate` from outside: its table, its server, its end, and what it says of wrong files."""

import json
import signal
import socket
import subprocess
import sys

import httpx2
import pytest
import yaml
from support.paths import ROOT
from support.servers import commands

from auditor.errors import ConfigError, InputError
from auditor.instrument.pool import shipped_pool
from auditor.simulate.config import default_text, load, loads, read_statements

COMMAND = [sys.executable, "-m", "biasmeter", "simulate"]


def run(*arguments):
    return commands.run(["simulate", *arguments], folder=ROOT)


def test_the_truth_is_printed_for_people_and_for_machines(tmp_path, thorough):
    table = run("--truth")
    assert table.returncode == 0, table.stderr
    assert "nothing below was measured" in table.stdout
    assert "sim-cancelling" in table.stdout
    path = tmp_path / "one.yaml"
    path.write_text("deployments: [{name: only}]\njudges: [{name: j, accuracy: 0.9}]\n")
    found = json.loads(run("--truth", "--json", *([] if thorough else ["-c", path])).stdout)
    assert found["simulated"] is True
    assert len(found["truth"]) == (7 if thorough else 1) * 6
    row = found["truth"][0]
    assert {"ber_sel", "ir", "dni", "ber_union_full"} <= set(row["true"]) & set(row["limit"])


def test_the_built_in_scenario_can_be_saved_and_changed(tmp_path):
    text = run("--show-config").stdout
    assert text == default_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("seed: 0", "seed: 9", 1))
    assert load(path).scenario.seed == 9


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_it_serves_until_told_to_stop(number, tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(yaml.safe_dump({"deployments": [{"name": "only"}]}))
    process = subprocess.Popen(
        [*COMMAND, "-c", str(path), "--port", "0", "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = json.loads(process.stdout.readline())
        with httpx2.Client(base_url=said["address"]) as client:
            assert client.get("/models").json()["data"][0]["id"] == "only"
            body = {"model": "only", "messages": [{"role": "user", "content": "Cooks hum. Do you agree? Yes or no?"}]}
            assert client.post("/chat/completions", json=body).status_code == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, "", "")


def test_a_port_that_is_taken_is_one_line(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text("deployments: [{name: only}]\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("-c", path, "--port", taken.getsockname()[1])
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "in use" in done.stderr


WRONG = [
    ("", "f.yaml:1: the file is empty"),
    ("deployments: []\n", "f.yaml:1: deployments: needs at least one entry"),
    ("seed: 1\n", 'f.yaml:1: "deployments" is missing'),
    ("deployments:\n  - {name: a, tasks: {BJ: {p_a: 1.4}}}\n", "f.yaml:2: deployments[0].tasks.BJ.p_a: must be less"),
    ("deployments:\n  - {name: a, tsks: {}}\n", "f.yaml:2: deployments[0].tsks: unknown key"),
    ("deployments:\n  - {name: a}\n  - {name: a}\n", "f.yaml:1: the name 'a' is declared twice"),
    ("deployments:\n  - name: a\n    drift: {at: soon}\n", "f.yaml:3: deployments[0].drift.at: neither"),
    ("deployments:\n  - name: a\n    drift: {at: 2026-01-01T00:00:00}\n", "f.yaml:3: deployments[0].drift.at: neither"),
    ("deployments:\n  - {name: a, shifts: {'colour=red': {sel: 1}}}\n", "f.yaml:2: deployments[0]: 'colour=red'"),
    (
        "deployments: [{name: a}]\njudges:\n  - {name: j, accuracy: .9, confusion: {E: {D: .1}}}\n",
        "f.yaml:3: judges[0]",
    ),
    ("deployments: [{name: a}]\njudges:\n  - {name: j, confusion: {E: {D: .8, N: .4}}}\n", "f.yaml:3: judges[0]"),
    ("deployments: [{name: a, failures: {cut: .6, server_error: .6}}]\n", "f.yaml:1: deployments[0].failures"),
    ("deployments: [{name: a, tasks: {XX: {}}}]\n", "f.yaml:1: deployments[0].tasks.XX"),
    ("seed: 1\nseed: 2\n", "f.yaml:2: seed: is set twice"),
    ("deployments: [\n", "f.yaml:2:1: not valid YAML"),
    ("- a\n", "f.yaml:1: must be a mapping"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_scenario_is_told_with_its_line(text, message):
    with pytest.raises(ConfigError) as caught:
        loads(text, "f.yaml")
    assert str(caught.value).startswith(message), str(caught.value)


def test_wrong_files_end_the_command_in_one_line(tmp_path):
    gone = run("-c", str(tmp_path / "gone.yaml"), "--truth")
    assert (gone.returncode, gone.stderr.count("\n")) == (2, 1)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    found = run("-c", str(binary), "--truth")
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)


def test_a_statement_pool_is_read_beside_the_scenario(tmp_path):
    (tmp_path / "pool.jsonl").write_text('{"id": "a", "statement": "Cooks hum.", "more": 1}\n\n')
    path = tmp_path / "s.yaml"
    path.write_text("statements: pool.jsonl\ndeployments: [{name: d}]\n")
    loaded = load(path)
    assert loaded.texts == ("Cooks hum.",)
    assert loaded.pool.find("Well: Cooks  hum. Yes or no?") is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "p.jsonl:1: not JSON"),
        ("[]", "p.jsonl:1: not a JSON object"),
        ('{"id": "a"}', "p.jsonl:1: statement: "),
        ('{"id": "a", "statement": "x"}\n{"id": "a", "statement": "y"}', "p.jsonl:2: the id"),
        ("", "p.jsonl: holds no statement"),
    ],
)
def test_a_wrong_statement_pool_is_told_with_its_line(tmp_path, text, message):
    path = tmp_path / "p.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        list(read_statements(path))
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(message)


def test_without_statements_of_its_own_it_knows_the_shipped_ones():
    assert load().pool.find(f"{shipped_pool()[0].statement}\n\nDo you agree?") == shipped_pool()[0]
