"""The size of a whole study: 8 deployments on the OAT grid, 641,600 coded rows, one process.

Promised: 60 s and 2 GiB for ``analyze`` by deployment x condition with 2,000 replicates; aimed at 20 s. The page alone:
30 s and 5 MiB.
"""

import json
import os
import resource
import subprocess
import sys
import time

import pytest
from support.paths import ROOT
from support.worlds.coded_rows import coded_rows, oat_conditions

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.codec import decode
from auditor.report.analysis import render_analysis

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

TEXT = "I would not say that this holds for a whole group of people; it depends on the person. " * 6


def test_whole_study(tmp_path):
    path = tmp_path / "coded.jsonl"
    grid = oat_conditions()
    with path.open("w") as stream:
        for part, (conditions, templates) in enumerate(((grid[:1], 1), (grid[1:], 20))):
            for row in coded_rows(conditions, deployments=8, statements=200, templates=templates, seed=part):
                row["id"] = f"{part}.{row['id']}"
                stream.write(json.dumps(row | {"response": TEXT, "elaboration_text": TEXT}) + "\n")
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, time.monotonic()
    command = [sys.executable, "-m", "biasmeter", "analyze", str(path), "-o", str(tmp_path / "out")]
    options = ["--by", "deployment,task,perspective,role,sentiment", "--n-boot", "2000", "--json"]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    took = time.monotonic() - started
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    told = json.loads(done.stdout)
    print(
        f"{told['n_rows']} rows, {path.stat().st_size / 2**20:.0f} MiB: {took:.1f} s, at most {memory / 2**20:.2f} GiB"
    )
    page = (tmp_path / "out" / "report.html").stat().st_size / 2**20
    started = time.monotonic()
    content = (tmp_path / "out" / "analysis.json").read_bytes()
    render_analysis(decode(content, AnalysisDocument, "analysis.json"))
    drawing = time.monotonic() - started
    print(f"the page: {page:.2f} MiB, made of the document in {drawing:.1f} s")
    assert page < 5
    assert drawing < 30
    assert told["n_rows"] == 641_600
    assert told["n_groups"] == 8 * 21 + 1
    assert took < 60
    assert max(memory, before) < 2 * 2**20


def test_many_deployments(tmp_path):
    """Promised: 30 s of one processor for 300 deployments and 120,000 rows, by deployment, page included."""
    path = tmp_path / "coded.jsonl"
    with path.open("w") as stream:
        for row in coded_rows(oat_conditions()[:2], deployments=300, statements=200, judges=0):
            stream.write(json.dumps(row | {"response": TEXT, "elaboration_text": TEXT}) + "\n")
    command = [sys.executable, "-m", "biasmeter", "analyze", str(path), "-o", str(tmp_path / "out")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*command, "--by", "deployment", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = json.loads(done.stdout)
    print(f"{told['n_rows']} rows of {len(told['deployments'])} deployments: {took:.1f} s")
    assert told["n_rows"] == 120_000
    assert len(told["deployments"]) == 300
    assert took < 30
