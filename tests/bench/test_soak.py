"""Ten minutes in bad weather: memory flat, nothing in flight or open at the end, every request accounted for.

Run: make measurements PYTEST_ARGS="tests/bench/test_soak.py -s"
"""

import os
import platform
from pathlib import Path

import pytest
from support.servers.soak import Plan, soak


@pytest.mark.bench
@pytest.mark.timeout(900)
async def test_ten_minutes_of_bad_weather_leave_nothing_behind(tmp_path: Path, migrated_url: str) -> None:
    # Connections that are kept for later are closed after half a minute without use.
    plan = Plan(warm_up=60, measured=600, rest=60, connections=0, growth=8)
    soaked = await soak(tmp_path, migrated_url, plan)
    print(f"\nPython {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, all on one machine")
    print(soaked.report())
    assert soaked.faults() == []
