"""What stands as an example in a docstring gives what it says."""

import doctest
import importlib

import pytest
from support.paths import ROOT

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in ("auditor", "biasmeter", "gateway", "replay")
    for path in (ROOT / package).rglob("*.py")
    if any(">>>" in line and "+SKIP" not in line for line in path.read_text(encoding="utf-8").splitlines())
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str) -> None:
    module = importlib.import_module(name.removesuffix(".__init__"))
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0
