"""docs/architecture.md shows packages and paths that exist, and figures that are those of the source."""

import re
from math import ceil
from pathlib import Path

import pytest
from support.architecture.call_paths import Step, faults, read_paths
from support.architecture.structure import product
from support.paths import DOCS, ROOT

PAGE = DOCS / "architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")
PATHS = read_paths(PAGE)
PRODUCT = product()
#: A number with its separators of thousands.
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+|\d+")
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


def test_the_page_counts_the_steps_of_that_path() -> None:
    assert f"\n{len(PATHS[WINDOW])} functions are on this path" in TEXT


def test_the_page_names_every_package() -> None:
    packages = {name for name in PRODUCT.paths if name.count(".") == 1 and PRODUCT.paths[name].stem == "__init__"}
    parts = {name for name in packages if name.startswith(("auditor.", "biasmeter.", "gateway."))}
    assert _packages() == parts | {"biasmeter", "replay", "website"}


@pytest.mark.parametrize("page", [PAGE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(
        r"`((?:auditor|gateway|replay|biasmeter|deploy|website|docs|tests)/[\w/.-]*)`", page.read_text("utf-8")
    )
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_figures_are_those_of_the_source() -> None:
    """Exactly what is none, and within 10 % what is counted: a figure need not follow every change."""
    shown = dict(re.findall(r"^\| (.+?) \| ([^|]+) \|$", TEXT.partition("## Measured")[2], re.MULTILINE))
    measured = dict(PRODUCT.rows())
    assert list(shown) == list(measured)
    assert {name: text for name, text in measured.items() if not _agree(shown[name], text)} == {}


@pytest.mark.parametrize(
    ("shown", "measured", "agree"),
    [
        ("656, 97,072", "700, 97,072", True), ("656, 97,072", "730, 97,072", False), ("none; 0", "none; 1", False),
        ("none; 0", "a > b; 0", False), ("6 / 17", "7 / 18", True), ("6 / 17", "8 / 17", False),
    ],
)  # fmt: skip
def test_a_figure_that_is_out_of_date_is_found(shown: str, measured: str, agree: bool) -> None:
    assert _agree(shown, measured) is agree


def _packages() -> set[str]:
    """Return the packages of the page's table."""
    table = TEXT.partition("| package | subject |")[2].partition("\n\n")[0]
    return {name for row in table.splitlines() for name in re.findall(r"`([\w.]+)`", row.split(" | ")[0])}


def _agree(shown: str, measured: str) -> bool:
    """Return whether two cells have the same words, and numbers that differ by a tenth at most, rounded up."""
    if _NUMBER.sub("", shown) != _NUMBER.sub("", measured):
        return False
    pairs = zip(
        *([int(text.replace(",", "")) for text in _NUMBER.findall(cell)] for cell in (shown, measured)), strict=True
    )
    return all(abs(ours - theirs) <= ceil(ours / 10) for ours, theirs in pairs)
