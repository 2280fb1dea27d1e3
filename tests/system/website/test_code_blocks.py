"""The code blocks of the pages: commands that the product takes, and settings that it reads.

`test_tutorial.py` runs the tutorial's commands, `tests/integration/config/test_import_config.py` the conversion in
`import.md`, and `tests/integration/library/test_python_page.py` the Python of `python.md`.
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.lazy_imports import ImportedLater
from support.paths import DOCS, ROOT
from typer.main import get_command

from auditor.config.json_schema import config_schema
from biasmeter.commands.main import app

jsonschema = ImportedLater("jsonschema")

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *(DOCS).glob("*.md")])
#: What ends a command in a shell.
_END = re.compile(r"\s(?:#|\||>|<|&&|&)(?:\s|$)")
SCHEMA = config_schema()
APP: Any = get_command(app)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each code block."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of the product."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in line.split("&&"):
            command = re.sub(r"^(?:\s*[A-Z_]+=\S+)*\s*", "", part)
            if re.match(r"biasmeter (?!\w+:)", command):  # with a colon it is a line of a log
                yield shlex.split(_END.split(command, maxsplit=1)[0])


def named(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command that the words name, or the group of commands, and the words that follow."""
    command, arguments = APP, words[1:]
    while hasattr(command, "commands") and arguments and not arguments[0].startswith("-"):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    return command, arguments


class Yaml12(yaml.SafeLoader):
    """As an editor reads YAML: a day is text."""


Yaml12.yaml_implicit_resolvers = {
    first: [one for one in resolvers if one[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def settings(text: str) -> Any:
    """Return a block of YAML; `off` is text, and a variable may stand unquoted where YAML would begin a mapping."""
    return yaml.load(re.sub(r'(?<!")(\$\{\w+\}|\boff\b)', r'"\1"', text), Yaml12)


COMMANDS = [
    pytest.param(words, id=f"{page.stem}: {' '.join(words)}")
    for page in PAGES
    for language, text in blocks(page)
    if language in {"", "sh", "bash"}
    for words in commands(text)
]


@pytest.mark.parametrize("words", COMMANDS)
def test_the_product_takes_the_command(words: list[str]) -> None:
    command, arguments = named(words)
    if arguments != ["--help"] and not hasattr(command, "commands"):
        command.make_context(words[1], arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_text_have_the_options(page: Path) -> None:
    """In a sentence a command may lack what it needs, but has no other options than these."""
    wrong = []
    for text in re.findall(
        r"`(biasmeter [a-z][^`|:]*)`", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    ):
        command, arguments = named(shlex.split(text.replace("\n", " ")))
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
        options = (word.partition("=")[0] for word in arguments if word.startswith("-"))
        wrong += [(text, option) for option in options if option not in known]
    assert wrong == []


SETTINGS = [
    pytest.param(text, id=f"{page.stem} {number}")
    for page in PAGES
    for number, (language, text) in enumerate(blocks(page))
    if language == "yaml" and set(settings(text) or ()) <= set(SCHEMA["properties"])
]


@pytest.mark.parametrize("text", SETTINGS)
def test_the_product_reads_the_settings(text: str) -> None:
    given = settings(text)
    part = {name: value for name, value in SCHEMA.items() if name != "required"}
    assert [error.message for error in jsonschema.Draft202012Validator(part).iter_errors(given or {})] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_json_is_json(page: Path) -> None:
    for language, text in blocks(page):
        if language == "json":
            [json.loads(line) for line in text.splitlines()] if "\n{" in text else json.loads(text)
