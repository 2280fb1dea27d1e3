"""Every test that `make test` leaves out is listed in tests/slow/README.md with its reason."""

import re

from support.paths import TESTS

LISTED = (TESTS / "slow" / "README.md").read_text()
_MARKED = re.compile(r"^@pytest\.mark\.slow\n(?:@.*\n|[ )].*\n)*(?:async )?def (test_\w+)", re.MULTILINE)


def test_each_slow_file_is_listed() -> None:
    files = [str(path.relative_to(TESTS / "slow")) for path in (TESTS / "slow").rglob("test_*.py")]
    assert files
    assert [file for file in files if f"`{file}`" not in LISTED] == []


def test_each_test_that_is_marked_slow_is_listed() -> None:
    marked = [name for path in TESTS.rglob("test_*.py") for name in _MARKED.findall(path.read_text())]
    assert marked
    assert [name for name in marked if f"`{name}`" not in LISTED] == []


def test_what_is_listed_exists() -> None:
    files = re.findall(r"`((?:unit|integration|system)/[\w/]+\.py)`", LISTED)
    assert [file for file in files if not (TESTS / file).is_file()] == []
