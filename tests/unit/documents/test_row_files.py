"""CSV for spreadsheets: text is never executed, numbers stay numbers, and reading gives the same rows."""

import csv
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from auditor.documents.csv_cells import escape_formula, unescape_formula
from auditor.documents.input_files import csv_records
from auditor.documents.row_files import writing_rows

#: Texts that a spreadsheet would execute, and texts that look like escaped ones.
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''-1", "plain", "'tis", "")


def test_text_is_not_executed_and_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with writing_rows(path, ["text", "number"], {}) as write:
        for text in FORMULAS:
            write({"text": text, "number": -0.5})
    with path.open(newline="") as file:
        _, *cells = csv.reader(file)
    assert not [text for text, _ in cells if text.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert {number for _, number in cells} == {"-0.5"}
    assert tuple(row["text"] for _, row in csv_records(path)) == FORMULAS


@given(st.text(st.sampled_from("'=+-@\t\ra"), max_size=6))
def test_reading_is_the_inverse_of_writing(text: str) -> None:
    escaped = escape_formula(text)
    assert isinstance(escaped, str)
    assert unescape_formula(escaped) == text
