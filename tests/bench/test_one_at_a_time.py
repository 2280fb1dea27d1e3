"""The full design, 20 statements x 401 templates: 8,020 calls a deployment, killed and resumed.

Run: make measurements PYTEST_ARGS="tests/bench/test_one_at_a_time.py -s"
"""

import os
import platform
from pathlib import Path

import pytest
from support.servers.one_at_a_time_audit import assert_exact, audit, world

STATEMENTS = 20


@pytest.mark.bench
@pytest.mark.timeout(900)
async def test_every_call_is_answered_exactly_as_planned_whatever_is_killed(tmp_path: Path, migrated_url: str) -> None:
    with world(tmp_path, migrated_url, STATEMENTS) as product:
        audited = await audit(product)
    print(f"\nPython {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, all on one machine")
    print(audited)
    assert_exact(audited, STATEMENTS)
    assert audited.planned == 2 * 8_020
