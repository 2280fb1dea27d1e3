"""`docs/behaviours.md` has all forty, and names the tests that there are."""

import re
from pathlib import Path

from support.paths import DOCS, ROOT

FORTY = range(1, 41)


def documented() -> dict[int, str]:
    """The rows of the table by their number."""
    lines = (DOCS / "behaviours.md").read_text().splitlines()
    rows = [match for match in (re.match(r"\| (\d+) \|(.*)", line) for line in lines) if match]
    return {int(row[1]): row[2] for row in rows}


def test_each_of_the_forty_is_documented_with_the_tests_that_show_it() -> None:
    room = "".join(path.read_text() for path in sorted(Path(__file__).parent.glob("test_*.py")))
    rows = documented()
    assert list(rows) == list(FORTY)
    for number in FORTY:
        tests = set(re.findall(rf"^async def (test_{number:02}_\w+)", room, re.MULTILINE))
        assert tests, number
        assert set(re.findall(r"`(test_\w+)`", rows[number])) == tests


def test_every_file_that_the_page_names_is_there() -> None:
    named = re.findall(r"`((?:tests|docs)/[^`]+)`", (DOCS / "behaviours.md").read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []
