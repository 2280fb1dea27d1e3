"""Data set folders: what they hold, and that `datasets` and `mlcroissant` read them where these are installed."""

import hashlib
import json
import sys
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
import yaml

from auditor.errors import AuditError, InputError
from auditor.extras import missing_extra
from auditor.instrument.pool import record_of, shipped_pool
from biasmeter.commands.main import app


def pool_dataset(folder: Path, *arguments: str) -> Path:
    app(["pool", "--dataset", str(folder), *arguments], standalone_mode=False)
    return folder


def test_the_pool_with_card_and_croissant(tmp_path: Path) -> None:
    folder = pool_dataset(tmp_path / "pool")
    rows = pd.read_parquet(folder / "data" / "biasmeter-pool.parquet")
    assert [*rows["statement"]] == [one.statement for one in shipped_pool()]
    assert rows["canary"].str.startswith("biasmeter canary").all()
    _, header, text = (folder / "README.md").read_text().split("---\n", 2)
    card = yaml.safe_load(header)
    assert card["license"] == "cc-by-4.0"
    assert card["configs"][0]["data_files"] == [{"split": "test", "path": "data/biasmeter-pool.parquet"}]
    assert "Not for training" in text
    croissant = json.loads((folder / "croissant.json").read_text())
    (file,) = croissant["distribution"]
    assert file["sha256"] == hashlib.sha256((folder / file["contentUrl"]).read_bytes()).hexdigest()
    assert {one["name"] for one in croissant["recordSet"][0]["field"]} == set(rows.columns)


def test_a_pool_of_ones_own_has_no_licence_of_ours(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text("\n".join(json.dumps(record_of(one)) for one in shipped_pool()[:40]))
    folder = tmp_path / "pool"
    with suppress(AuditError):  # the checks of so small a pool may fail, after it was written
        pool_dataset(folder, "--statements", str(own))
    assert "license: other" in (folder / "README.md").read_text()
    assert len(pd.read_parquet(folder / "data" / "statements.parquet")) == 40


def test_without_pyarrow_no_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError) as told:
        pool_dataset(tmp_path / "pool")
    assert missing_extra(told.value) == "pyarrow, which is not installed; run: pip install 'biasmeter[frames]'"
    assert not (tmp_path / "pool").exists()


def test_a_folder_that_cannot_be_made_is_told_in_one_line() -> None:
    with pytest.raises(InputError, match=r"^/proc/none: cannot be written: No such file or directory$"):
        pool_dataset(Path("/proc/none"))


def test_the_real_readers_accept_it(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    croissant = pytest.importorskip("mlcroissant")
    folder = pool_dataset(tmp_path / "pool")
    rows = datasets.load_dataset(str(folder), split="test", cache_dir=str(tmp_path / "cache"))
    assert rows.num_rows == len(shipped_pool())
    described = croissant.Dataset(jsonld=str(folder / "croissant.json"))
    assert not described.metadata.issues.errors
    read = list(described.records("rows"))
    assert [one["rows/id"].decode() for one in read] == [one.id for one in shipped_pool()]
