"""What counting coded rows in Parquet files costs: 10^6, 10^7 and 10^8 rows, one process with 1 GB for DuckDB.

``python -m pytest -m bench -s tests/bench/test_count_parquet.py`` prints the table of the dated note to
``docs/scale.md``. It needs 3 GB of disk. ``BIASMETER_PARQUET_ROWS=1e7`` stops at fewer rows.
"""

import json
import os
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest

from auditor.export.parquet.tables import file_of

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3000)]

MOST = int(float(os.environ.get("BIASMETER_PARQUET_ROWS", "1e8")))
SIZES = [n for n in (10**6, 10**7, 10**8) if n <= MOST]
FIRST = date(2026, 1, 1)
DAYS = 100
#: 200 deployments, 100 statements, 12 conditions: 240,000 subjects, each with up to nine outcomes.
ROW = """
    SELECT uuid()::VARCHAR AS exchange_id, 'coder_1a2b3c4d5e6f' AS coder, TIMESTAMPTZ '{day} 00:00:00+00' AS hour,
           'deployment-' || lpad((h % 200)::VARCHAR, 3, '0') AS deployment, 'probe' AS origin,
           'statement/1' AS rubric, NULL::VARCHAR AS audit, 'stereotype' AS claim,
           ['BJ', 'CTO', 'SC', 'EP'][1 + (h // 200) % 4] AS task,
           ['neutral', 'first', 'third'][1 + (h // 800) % 3] AS perspective,
           NULL::VARCHAR AS role, NULL::VARCHAR AS sentiment, true AS invites_reason,
           'category-' || ((h // 2400) % 100 // 10) AS category, 'statement-' || ((h // 2400) % 100) AS cluster,
           1.0::DOUBLE AS inclusion, ['E', 'D', 'N'][1 + (h // 240000) % 3] AS sel, NULL::VARCHAR AS sel_reason,
           'rule' AS sel_via, ['E', 'D', 'N'][1 + (h // 720000) % 3] AS elab, NULL::VARCHAR AS elab_reason,
           NULL::BLOB AS remainder_hash, NULL::VARCHAR AS uncoded, TIMESTAMPTZ '{day} 01:00:00+00' AS coded_at,
           (40 + h % 100)::BIGINT AS completion_tokens,
           [{{'judge': 'north', 'label': 'E'}}, {{'judge': 'east', 'label': 'D'}}] AS votes
    FROM (SELECT (hash(range + {start}) % 4611686018427387904)::BIGINT AS h FROM range({n}))
"""
CHILD = """
import json, resource, sys, time
from pathlib import Path
from auditor.export.parquet.counts import folder_tallies
start, cpu = time.perf_counter(), time.process_time()
tallies = folder_tallies(Path(sys.argv[1]), ("deployment", "task"))
print(json.dumps({"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu,
    "groups": len(tallies.count), "n": int(tallies.count.sum()),
    "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def generate(folder: Path, rows: int) -> int:
    """Write coded rows over ``DAYS`` days, and return the bytes."""
    size = 0
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        path = file_of(folder, "codings", day)
        path.parent.mkdir(parents=True)
        query = ROW.format(day=day, start=number * (rows // DAYS), n=rows // DAYS)
        duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
        size += path.stat().st_size
    return size


@pytest.mark.parametrize("rows", SIZES)
def test_count(rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = generate(tmp_path, rows)
    run = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], check=True, capture_output=True, text=True)
    found = json.loads(run.stdout)
    assert found["n"] == rows
    with capsys.disabled():
        print(
            f"\n| {rows:,} | {size / rows:.1f} | {found['groups']:,} | {found['seconds']:.1f} "
            f"| {found['cpu'] / rows * 1e6:.2f} | {found['rss'] / 2**30:.2f} |"
        )
