"""docs/architecture.md shows paths that exist, and the numbers that `make structure` prints."""

import re

import pytest
from support.architecture.call_paths import Step, faults, read_paths
from support.architecture.structure import product
from support.paths import DOCS

PAGE = DOCS / "architecture.md"
PATHS = read_paths(PAGE)
PRODUCT = product()
WINDOW = "A window, from stored exchange to displayed number"


def test_the_paths_are_shown() -> None:
    assert list(PATHS) == ["A request", WINDOW, "A statement"]


@pytest.mark.parametrize("title", PATHS)
def test_every_step_exists_and_is_called_by_the_one_above_it(title: str) -> None:
    assert [fault for step in PATHS[title] for fault in faults(step, PRODUCT)] == []


@pytest.mark.parametrize("title", PATHS)
def test_no_call_goes_up_a_layer(title: str) -> None:
    calls = {(step.caller.module, step.module) for step in PATHS[title] if step.caller is not None}
    assert [call for call in calls if PRODUCT.is_upward(*call)] == []


def test_the_path_of_a_window_is_short() -> None:
    assert len(PATHS[WINDOW]) < 20


def test_a_step_that_is_not_called_is_found() -> None:
    caller = Step("auditor.jobs.estimate", "estimate_all", None)
    assert list(faults(Step("auditor.store.findings", "nothing", caller), PRODUCT))
    assert list(faults(Step("auditor.store.exchanges", "read_exchange", caller), PRODUCT))


def test_the_table_has_the_rows_that_the_command_prints() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE)
    printed = dict(PRODUCT.rows())
    assert [name for name, _ in table if name in printed] == list(printed)
