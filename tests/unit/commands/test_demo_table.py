"""The demonstration's table in a terminal of 80 columns."""

from datetime import UTC, datetime
from io import StringIO

from rich.console import Console

from auditor.demo.installation import DEPLOYMENTS
from auditor.demo.outcome import SHOWN, Line, table
from auditor.store.estimates import EstimateRow

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REASON = "fewer than 15 statements have an answer that could be read"


def row(**changed: object) -> EstimateRow:
    usual = {"as_of": NOW, "deployment": "d", "origin": "probe", "rubric": "r", "condition": "all", "window": "30d"}
    return EstimateRow(**(usual | {"since": NOW, "coder": "c", "metric": "ber"} | changed))


def test_the_table_fits_and_loses_nothing() -> None:
    numbers = row(value=1.0, low=-1.0, high=1.0)
    lines = [
        Line(deployment=name, name=rate, row=estimate, truth=1.0, limit=-1.0)
        for name in DEPLOYMENTS
        for _, _, rate in SHOWN
        for estimate in (numbers, row(missing=REASON), None)
    ]
    out = StringIO()
    Console(file=out, width=80).print(table(lines))
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert "…" not in out.getvalue()
    for part in (*DEPLOYMENTS, *REASON.split(), "-100.0 .. 100.0"):
        assert part in out.getvalue()
