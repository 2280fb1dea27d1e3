"""Whatever stands in the file, the answer is a configuration or a ``ConfigError``: never another exception."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auditor.config import Config, load, loads
from auditor.errors import ConfigError

FULL = Path(__file__).with_name("full.yaml").read_text()
LINES = FULL.splitlines(keepends=True)
ENVIRON = {"EU_KEY": "sk-eu-1234", "US_KEY": "sk-us-5678", "HOOK_SECRET": "hush-hush", "HOME": "/home/someone"}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        [
            "",
            "all",
            "lexicon",
            "*",
            "gpt-4o",
            "-1",
            "1e400",
            "9" * 400,
            "${EU_KEY}",
            "${",
            "~",
            "1d",
            ":0",
            "[",
            "http://",
            "\ud800",
            "\x85",
        ]
    ),
)
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=8,
)


def settle(text: str) -> Config | None:
    try:
        config = loads(text, source="t.yaml", folder=Path("/etc"), environ=ENVIRON).config
    except ConfigError as error:
        told = str(error).split("\n")
        assert 1 <= len(told) <= 21
        assert all(line.startswith("t.yaml") and line.isprintable() for line in told)
        return None
    assert repr(config)
    assert len(config.config_hash) == 16
    for route in config.routes:
        config.mirrored(route)
    for probe in config.probes:
        config.probed(probe)
    return config


@settings(deadline=None)
@given(st.text())
def test_any_text(text):
    settle(text)


@settings(deadline=None)
@given(st.text(alphabet="ab:-[]{},&*!|>'\"%@`?#<~ \n\t$0", max_size=60))
def test_any_text_of_yaml_signs(text):
    settle(text)


@settings(deadline=None, max_examples=300)
@given(
    st.integers(0, len(LINES) - 1),
    st.sampled_from(["drop", "twice", "indent", "replace", "insert"]),
    st.text(alphabet="ab:-[]{},&*!|>'\"%@?#<~ \t$0name", max_size=30),
)
def test_edited_lines(index, edit, text):
    lines = list(LINES)
    new = {"drop": [], "twice": [lines[index]] * 2, "indent": [f"  {lines[index]}"], "replace": [f"{text}\n"]}
    lines[index : index + 1] = new.get(edit, [lines[index], f"{text}\n"])
    settle("".join(lines))


@settings(deadline=None, max_examples=300)
@given(st.integers(0, len(FULL)), st.integers(0, 12), st.text(max_size=6))
def test_edited_characters(start, length, text):
    settle(FULL[:start] + text + FULL[start + length :])


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(FULL)), st.integers(0, 4), st.binary(max_size=4))
def test_edited_bytes(tmp_path, start, length, replacement):
    content = FULL.encode()
    path = tmp_path / "t.yaml"
    path.write_bytes(content[:start] + replacement + content[start + length :])
    with contextlib.suppress(ConfigError):
        load(path, ENVIRON)


def paths_of(tree: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(one for key, value in items for one in paths_of(value, (*path, key)))]


def replaced(tree: Any, path: tuple[str | int, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = replaced(tree[path[0]], path[1:], value)
    return copy


@pytest.fixture(scope="module")
def whole() -> Any:
    """The full example as plain data, with its variables as quoted text."""
    quoted = FULL.replace('"${US_KEY}"', "${US_KEY}")
    for name in ("BIASMETER_DATABASE_URL", "EU_KEY", "US_KEY", "HOOK_SECRET"):
        quoted = quoted.replace(f"${{{name}}}", f'"${{{name}}}"')
    return yaml.load(quoted, yaml.BaseLoader)


def test_the_example_survives_the_way_there_and_back(whole):
    assert settle(yaml.safe_dump(whole)) == settle(FULL) is not None


@settings(deadline=None, max_examples=400)
@given(data=st.data())
def test_replaced_values(whole, data):
    tree = whole
    for _ in range(data.draw(st.integers(1, 3))):
        tree = replaced(tree, data.draw(st.sampled_from(paths_of(tree))), data.draw(trees))
    settle(yaml.dump(tree, allow_unicode=True))


MARK = "kX9q7Z"


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from(list(ENVIRON)), st.one_of(st.text(), st.text().map(lambda text: MARK + text))))
def test_any_environment(environ):
    environ = {"HOME": "/home/someone", **environ}
    try:
        config = loads(FULL, source="t.yaml", folder=Path("/etc"), environ=environ).config
        shown = repr(config.deployments) + repr(config.monitor)
    except ConfigError as error:
        shown = str(error)
    assert MARK not in shown
