"""CHANGELOG.md has the form of Keep a Changelog."""

import re

from support.paths import ROOT

TYPES = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_versions_and_types_are_those_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", one) for one in versions[1:])
    types = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert types
    assert set(types) <= TYPES
