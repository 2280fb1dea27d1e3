"""The pages name files and headings that exist."""

import re
from pathlib import Path

import pytest
from support.paths import DOCS, ROOT

#: Pages of the site that are written from the code; building the site checks links to their headings.
GENERATED = {"commands.md", "configuration.md", "configuration.schema.json", "documents.md", "series.md"}
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted(DOCS.rglob("*.md"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as a code host makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    wrong = []
    for target in re.findall(r"\]\((?!https?://|mailto:)([^)\s]+)\)", page.read_text()):
        file, _, anchor = target.partition("#")
        if file in GENERATED:
            continue
        there = (page.parent / file).resolve() if file else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            wrong.append(target)
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`(tests/[\w/.-]+?)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []
