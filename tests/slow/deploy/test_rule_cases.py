"""Every case of every alert, played through by promtool: some are of days."""

import subprocess

import pytest
from support.documents.deployed_rules import RULES, found_or_skip

CASES = tuple(file.with_stem(f"{file.stem}_test") for file in RULES)


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_each_alert_fires_and_keeps_quiet_as_written(file: str) -> None:
    done = subprocess.run(
        [found_or_skip("promtool"), "test", "rules", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
