"""The documentation's site: every link leads somewhere, keys and commands are there, nothing comes from elsewhere."""

import html
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from support.lazy_imports import ImportedLater
from support.paths import DOCS, ROOT

from auditor.config import Config
from auditor.config.json_schema import config_schema, meanings
from auditor.period.evidence import requirements_table
from website import commands, configuration, reference
from website.configuration import keys as configuration_keys

jsonschema = ImportedLater("jsonschema")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it; a link that leads nowhere ends the build."""
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(out)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


def documented(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """Yield every key of the configuration, found in the JSON Schema of the models and not by the page's own way."""
    schema = model.model_json_schema()
    definitions = schema["$defs"]

    def below(part: Any, path: str) -> Iterator[str]:
        if isinstance(part, list):
            for one in part:
                yield from below(one, path)
        elif isinstance(part, dict):
            if "$ref" in part:
                name = part["$ref"].rpartition("/")[2]
                if name != "Address":  # written as one text
                    yield from below(definitions[name], path)
            for key, value in part.get("properties", {}).items():
                here = f"{path}.{key}" if path else key
                yield here
                yield from below(value, here)
            for word in ("items", "anyOf", "additionalProperties", "prefixItems"):
                yield from below(part.get(word), path)

    yield from below({key: value for key, value in schema.items() if key != "$defs"}, path)


def test_every_key_of_the_configuration_has_a_heading_with_its_name() -> None:
    names = set(re.findall(r"^#### .*\{ #(\S+) \}$", configuration.page(), re.MULTILINE))
    keys = set(documented(Config))
    assert len(keys) > 150
    assert sorted(keys - names) == []


@pytest.mark.slow
def test_every_key_of_the_configuration_has_an_anchor(site: Path) -> None:
    ids = set(re.findall(r'id="([^"]+)"', (site / "configuration.html").read_text()))
    assert sorted(set(documented(Config)) - ids) == []


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("gateway.drain", "duration, at least 0; default `30s`"),
        ("gateway.body_limit", "size, greater than 0; default `32MiB`"),
        ("panel.anchors", "duration"),
        ("gateway.retries", "number, at least 0 and at most 10; default `2`"),
    ],
)
def test_a_key_says_what_it_takes(key: str, told: str) -> None:
    assert f"{{ #{key} }}\n\n{told}\n" in configuration.page()


def test_every_key_has_a_meaning() -> None:
    page = configuration.page()
    told = [(path, meanings(section)[path.rpartition(".")[2]]) for path, section, _ in configuration_keys()]
    assert [path for path, meaning in told if not meaning or f"\n\n{meaning}\n" not in page] == []


@pytest.mark.slow
def test_a_key_says_what_it_means(site: Path) -> None:
    page = (site / "configuration.html").read_text()

    def shown(path: str) -> str:
        part = page.partition(f'id="{configuration.anchor(path)}"')[2].partition("<h")[0]
        return " ".join(html.unescape(re.sub(r"<[^>]+>", "", part)).split())

    drain = "How long requests in flight may take to finish after SIGTERM; then they end with an error."
    assert f"duration, at least 0; default 30s {drain}" in shown("gateway.drain")
    told = [(path, meanings(section)[path.rpartition(".")[2]]) for path, section, _ in configuration_keys()]
    assert [path for path, meaning in told if meaning.replace("`", "") not in shown(path)] == []


def test_every_command_is_there_with_its_example() -> None:
    text = commands.page()
    for name, _ in commands.commands():
        assert f"## `biasmeter {name}` {{ #{name.replace(' ', '-')} }}\n" in text
        assert f"```sh\nbiasmeter {name}" in text


@pytest.mark.slow
def test_every_command_has_an_anchor(site: Path) -> None:
    page = (site / "commands.html").read_text()
    assert [name for name, _ in commands.commands() if f'id="{name.replace(" ", "-")}"' not in page] == []


def test_series_and_documents_are_there() -> None:
    names = {name for name, *_ in reference.series()}
    assert {"biasmeter_requests_total", "biasmeter_ber", "biasmeter_jobs", "biasmeter_drift_evidence"} < names
    assert "report.schema.json" in reference.documents_page()


def test_the_navigation_has_four_kinds_of_pages_and_names_all_of_them() -> None:
    """`unit/architecture/test_docs.py` checks the links of the pages."""
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert [kind for section in nav for kind in section] == ["Start", "Tutorial", "How to", "Reference", "Explanation"]
    named = set(re.findall(r"[\w-]+\.md", str(nav)))
    generated = re.findall(r'^    "([\w-]+\.md)":', (ROOT / "website" / "hooks.py").read_text(), re.MULTILINE)
    assert named == {"index.md", *generated} | {page.name for page in DOCS.glob("*.md")}


@pytest.mark.slow
def test_a_reader_s_browser_asks_nobody_else(site: Path) -> None:
    asked = []
    for page in site.rglob("*.html"):
        text = page.read_text()
        asked += re.findall(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="(https?:[^"]+)"', text)
        asked += re.findall(r'<link\b[^>]*\bhref="(https?:[^"]+)"', text)
        assert 'class="mermaid"' not in text  # the theme would load a library for it
    for style in site.rglob("*.css"):
        asked += re.findall(r"url\(['\"]?(https?:[^)]+)\)|@import\s+['\"](https?:[^'\"]+)", style.read_text())
    assert asked == []


@pytest.mark.parametrize(
    "file",
    [ROOT / "tests/unit/config/full.yaml", ROOT / "deploy/biasmeter.yaml", ROOT / "deploy/kubernetes/biasmeter.yaml"],
)
def test_the_schema_for_editors_accepts_what_the_product_accepts(file: Path) -> None:
    validator = jsonschema.Draft202012Validator(config_schema())
    # As an editor reads it: `off` is text in YAML 1.2. A variable may stand unquoted where YAML would begin a mapping.
    given = yaml.safe_load(re.sub(r'(?<!")(\$\{\w+\}|\boff\b)', r'"\1"', file.read_text()))
    assert [error.message for error in validator.iter_errors(given)] == []
    for absent in ({"gateway": None}, {"gateway": {"workers": None, "retries": None}}, {"monitor": {"anchor": None}}):
        assert validator.is_valid(given | absent)
    assert not validator.is_valid(given | {"routes": None})
    assert not validator.is_valid(given | {"gatway": {}})
    assert not validator.is_valid(given | {"gateway": {"retries": "many"}})
    assert not validator.is_valid(given | {"gateway": {"retries": 11}})


def test_the_requirements_on_the_page_are_those_of_the_evidence_file() -> None:
    assert (ROOT / "docs/regulation.md").read_text().endswith(requirements_table())


@pytest.mark.slow
def test_every_page_can_be_reached(site: Path) -> None:
    front = (site / "index.html").read_text()
    pages = [page.with_suffix(".html").name for page in (DOCS).glob("*.md")]
    assert [page for page in pages if f'href="{page}"' not in front] == []
