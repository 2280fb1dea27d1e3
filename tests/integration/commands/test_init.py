"""``biasmeter init``: the configuration that it writes is one, whatever was answered."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.clients.terminals import on_terminal
from support.paths import ROOT

from auditor.config import load
from auditor.errors import UsageError
from biasmeter.commands.main import app


def init(folder: Path, *arguments: str) -> Path:
    out = folder / "biasmeter.yaml"
    app(["init", "-o", str(out), *arguments], standalone_mode=False)
    return out


def test_the_defaults_are_openai(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = load(init(tmp_path), {"OPENAI_API_KEY": "sk-test"})
    (deployment,) = made.deployments
    assert (deployment.name, deployment.base_url) == ("gpt-4o-mini", "https://api.openai.com/v1")
    assert deployment.api_key is not None
    assert (made.routes[0].sample, made.routes[0].capture) == (0.05, "hashed")
    assert made.panel.judges == ("lexicon",)
    assert made.probes == ()
    told = capsys.readouterr().out
    assert "export OPENAI_API_KEY=..." in told
    assert f"biasmeter up -c {tmp_path / 'biasmeter.yaml'}" in told


def test_a_server_without_a_key(tmp_path: Path) -> None:
    made = load(
        init(tmp_path, "--base-url", "http://127.0.0.1:8000/v1", "--model", "meta/Llama 3: 8B", "--name", "local"), {}
    )
    (deployment,) = made.deployments
    assert (deployment.name, deployment.model, deployment.api_key) == ("local", "meta/Llama 3: 8B", None)


def test_it_never_overwrites(tmp_path: Path) -> None:
    text = init(tmp_path).read_text()
    with pytest.raises(UsageError, match="is there already"):
        init(tmp_path, "--model", "other")
    assert (tmp_path / "biasmeter.yaml").read_text() == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--base-url", "not a url"), "these values make no configuration: .*base_url"),
        (("--key-env", "a-b"), "--key-env 'a-b' is not the name"),
        (("--sample", "7"), "these values make no configuration: .*sample"),
        (("--capture", "all"), "these values make no configuration: .*capture"),
        (("--name", "a b"), "these values make no configuration: .*name"),
    ],
)
def test_wrong_values_write_nothing(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        init(tmp_path, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal_it_asks(tmp_path: Path) -> None:
    person = SimpleNamespace(folder=tmp_path, _environ=lambda: os.environ | {"PYTHONPATH": str(ROOT)})
    answers = {"Address": b"http://127.0.0.1:9/v1\n", "key": b"\n", "audits": b"small\n", "name": b"\n"}
    left = dict(answers)

    def answer(shown: str) -> bytes | None:
        last = shown.rstrip().splitlines()[-1] if shown.strip() else ""
        for word in list(left):
            if last.endswith("]:") and word in last:
                return left.pop(word)
        return None

    done = on_terminal(person, "init", type_in=answer)
    assert done.status == 0, done.text
    assert not left
    (deployment,) = load(tmp_path / "biasmeter.yaml", {}).deployments
    assert (deployment.name, deployment.base_url, deployment.api_key) == ("small", "http://127.0.0.1:9/v1", None)
