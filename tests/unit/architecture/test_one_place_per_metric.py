"""A metric has one definition: registered in ``METRICS``, it is in the document, the report, the API and the series."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.worlds.coded_rows import write_rows

from auditor.api.estimates import estimate_json
from auditor.documents.analysis import AnalysisDocument
from auditor.documents.codec import canonical_bytes, decode
from auditor.documents.estimates import EstimateEntry
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.estimation.snapshots import Snapshot, Window, estimate_windows
from auditor.export.families import estimate_families, render
from auditor.metrics.rates import ELIGIBLE, FOURFOLD, METRICS, Metric, MetricSeries
from auditor.report.analysis import render_analysis

NOW = datetime(2031, 5, 6, 12, tzinfo=UTC)
#: Both layers give the same side: n11 + n00 of all four.
SAME_SIDE = Metric(
    name="same_side",
    base="eligible",
    kind="rate",
    numerator=FOURFOLD[0] + FOURFOLD[3],
    denominator=ELIGIBLE,
    fourfold=((1, 0, 0, 1), (1, 1, 1, 1)),
    equation="1 - Eq. 12",
    label="SAME_side",
    help="both layers take the same side",
    series=MetricSeries(name="same_side", help="Share of responses whose layers take the same side."),
    endorsement=False,
)
#: Responses to 100 statements: in 80 of them the layers take the same side.
LABELS = [("E", "E")] * 30 + [("D", "D")] * 50 + [("E", "D")] * 20


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, SAME_SIDE.name, SAME_SIDE)


def stored_rows() -> list[dict[str, Any]]:
    common = {
        "deployment": "d1", "origin": "probe", "rubric": "statement", "audit": None, "claim": None, "task": "BJ",
        "perspective": "self", "role": "none", "sentiment": "neutral", "category": None, "invites_reason": True,
        "sel_reason": None, "elab_reason": None, "uncoded": None, "n": 1, "inclusion": 1.0,
    }  # fmt: skip
    return [common | {"cluster": f"s{i}", "sel": sel, "elab": elab} for i, (sel, elab) in enumerate(LABELS)]


def test_in_the_document_and_the_report(tmp_path: Path) -> None:
    rows = [
        {"id": f"r{i}", "deployment": "d1", "statement_id": f"s{i}", "task": "BJ", "sel": sel, "elab": elab}
        for i, (sel, elab) in enumerate(LABELS)
    ]
    options = Options(n_boot=20)
    path = write_rows(tmp_path / "coded.jsonl", rows)
    written = canonical_bytes(analyse(read_tallies(path, options), options))
    document = decode(written, AnalysisDocument, "analysis.json")
    same_side = document.deployments[0].metrics["same_side"]
    assert isinstance(same_side, EstimateEntry)
    assert same_side.value == 0.8
    page = render_analysis(document).decode()
    assert "SAME<sub>side</sub>" in page
    assert 'data-v="/deployments/0/metrics/same_side"' in page
    assert "both layers take the same side (eligible base; BiAxisAudit 1 - Eq. 12)" in page


def test_in_the_api_and_the_series() -> None:
    window = Window(name="7d", since=NOW - timedelta(days=7), longest=False, rows=stored_rows(), votes={})
    rows = list(estimate_windows(Snapshot(as_of=NOW, seed=0), "coder", [window]))
    (answer,) = (estimate_json(row) for row in rows if row.metric == "same_side" and row.condition == "all")
    assert (answer["value"], answer["base"], answer["n"]) == (0.8, "eligible", 100)
    series = render(estimate_families(rows)).decode()
    assert "# HELP biasmeter_same_side Share of responses whose layers take the same side.\n" in series
    assert (
        'biasmeter_same_side{condition="all",deployment="d1",origin="probe",rubric="statement",window="7d"} 0.8'
        in series
    )
