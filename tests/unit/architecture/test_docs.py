"""The pages name files and headings that exist."""

import re
from pathlib import Path

import pytest
from support.paths import DOCS, ROOT, TESTS

PAGES = sorted([*ROOT.glob("*.md"), *TESTS.glob("README.md"), *TESTS.glob("*/README.md"), *DOCS.rglob("*.md")])
#: Dated notes are about the code of their day.
CURRENT_PAGES = [page for page in PAGES if page.parent != DOCS / "design"]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as a code host makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    """On a code host, where pages that only the site has do not exist."""
    wrong = []
    for target in re.findall(r"\]\((?!https?://|mailto:)([^)\s]+)\)", page.read_text()):
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            wrong.append(target)
    assert wrong == []


@pytest.mark.parametrize("page", CURRENT_PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`(tests/[\w/.-]+?)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []
