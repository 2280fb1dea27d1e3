"""`biasmeter deploy-files` writes the committed files, and never over others."""

import tomllib
from pathlib import Path

import pytest
from support.paths import ROOT
from typer.testing import CliRunner

from auditor.errors import UsageError
from biasmeter.commands.deploy_files import PARTS
from biasmeter.commands.main import app


def write(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["deploy-files", *arguments])
    if done.exception:
        raise done.exception
    return done.output


def test_what_is_written_is_what_is_committed(tmp_path: Path) -> None:
    assert "files" in write("-o", str(tmp_path))
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    for name in ("grafana/dashboards/fleet.json", "prometheus/rules.yaml", "systemd/biasmeter-gateway.service",
                 "kubernetes/kustomization.yaml", ".env.example"):  # fmt: skip
        assert Path(name) in written
    for path in written - {Path("compose.yaml")}:
        assert (tmp_path / path).read_text() == (ROOT / "deploy" / path).read_text()
    assert "build:" not in (tmp_path / "compose.yaml").read_text()
    write("-o", str(tmp_path))  # the same again changes nothing


def test_a_file_that_was_changed_stays(tmp_path: Path) -> None:
    write("-o", str(tmp_path))
    (tmp_path / "biasmeter.yaml").write_text("mine")
    (tmp_path / "compose.yaml").unlink()
    with pytest.raises(UsageError, match=r"biasmeter\.yaml: exists with other content; nothing was written"):
        write("-o", str(tmp_path))
    assert not (tmp_path / "compose.yaml").exists()
    write("-o", str(tmp_path), "--force")
    assert (tmp_path / "biasmeter.yaml").read_text() != "mine"


def test_the_wheel_carries_each_part() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert built["force-include"] == {f"deploy/{part}": f"biasmeter/deploy/{part}" for part in PARTS}
