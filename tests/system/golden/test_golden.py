"""The numbers and keys of the documents are those that are committed, whatever is rewritten around them."""

from copy import deepcopy

import pytest
from support.golden.summary import CASES, EXPECTED, Summary, deviations, read_expected, summaries, summary


@pytest.fixture(scope="module")
def found() -> dict[str, Summary]:
    return summaries()


@pytest.mark.parametrize("case", CASES)
def test_a_document_has_the_expected_keys_codes_and_numbers(case: str, found: dict[str, Summary]) -> None:
    different = list(deviations(read_expected(case), found[case]))
    assert not different, "\n".join([*different[:20], "if this is intended: make expected, and say why in the commit"])


def test_every_expected_file_belongs_to_a_case() -> None:
    assert {file.stem for file in EXPECTED.iterdir()} == set(CASES)


DOCUMENT = {
    "verdict": "different",
    "missing": "fewer than 15 statements",
    "rows": [{"n": 3, "rate": 0.25}, {"n": 5, "rate": -0.25}, {"n": 7, "rate": None}],
    "seed": 0,
}


@pytest.mark.parametrize(
    ("row", "key", "value"),
    [
        (0, "rate", 0.2500001),
        (0, "rate", -0.25),
        (0, "rate", None),
        (1, "n", 6),
        (2, "rate", 0.5),
        (2, "more", 1),
    ],
)
def test_a_changed_number_is_noticed(row: int, key: str, value: float | None) -> None:
    changed = deepcopy(DOCUMENT)
    changed["rows"][row][key] = value
    assert len(list(deviations(summary(DOCUMENT), summary(changed)))) == 1


def test_exchanged_rows_and_changed_codes_are_noticed() -> None:
    changed = DOCUMENT | {"verdict": "equivalent", "rows": DOCUMENT["rows"][::-1]}
    paths = [line.split(":")[0] for line in deviations(summary(DOCUMENT), summary(changed))]
    assert paths == ["rows[].n", "rows[].rate", "verdict"]


def test_other_words_and_last_digits_are_not_noticed() -> None:
    rows = [{"n": 3, "rate": 0.25 * (1 + 1e-10)}, *DOCUMENT["rows"][1:]]
    assert not list(deviations(summary(DOCUMENT), summary(DOCUMENT | {"missing": "too few statements", "rows": rows})))
