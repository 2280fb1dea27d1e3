"""Files of a command: where none can be written, one line says so before the work starts."""

from pathlib import Path

import pytest

from auditor.documents.output import check_folder, write_files
from auditor.errors import UsageError


def test_a_folder_that_does_not_exist_yet_is_fine(tmp_path: Path) -> None:
    check_folder(tmp_path / "new" / "below")


@pytest.mark.parametrize("below", ["", "below"])
def test_a_file_in_its_place_is_refused(tmp_path: Path, below: str) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(UsageError, match="is a file"):
        check_folder(tmp_path / "taken" / below)


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="file name too long"):
        check_folder(tmp_path / ("x" * 300))


def test_all_files_are_written_or_none(tmp_path: Path) -> None:
    write_files(tmp_path, {"a": b"old"})
    with pytest.raises(UsageError, match="file name too long"):
        write_files(tmp_path, {"a": b"new", "x" * 300: b""})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}
