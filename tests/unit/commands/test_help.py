"""The help of each command: one sentence, one example that can be typed, and a page that exists."""

import re
import shlex
from typing import Any

import pytest
from support.paths import ROOT
from typer.main import get_command
from typer.testing import CliRunner

from biasmeter.commands.help import EXAMPLES, GROUPS
from biasmeter.commands.main import app


def commands(command: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    if not hasattr(command, "commands"):
        return {" ".join(path): command}
    return {name: one for key, child in command.commands.items() for name, one in commands(child, (*path, key)).items()}


COMMANDS = commands(get_command(app))


def test_each_command_has_an_example_and_each_example_a_command() -> None:
    assert set(EXAMPLES) == set(COMMANDS)


def test_the_overview_groups_all_commands_and_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, ["--help"], catch_exceptions=False).stdout.splitlines()
    assert max(map(len, shown)) <= 80
    titles = [line.split()[1] for line in shown if line.startswith("╭")]
    assert titles == ["Options", *GROUPS]
    listed = [match[1] for line in shown if (match := re.match(r"│ ([a-z][a-z-]*) ", line))]
    assert listed == [name for names in GROUPS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) == {name.split()[0] for name in COMMANDS}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_of_a_command(name: str) -> None:
    command = COMMANDS[name]
    assert command.help[0].isupper()
    example, page = command.epilog.split("\n\n")
    words = shlex.split(example.removeprefix("Example: "))
    start = ["biasmeter", *name.split()]
    assert words[: len(start)] == start
    command.make_context(name, words[len(start) :])  # raises where the arguments are wrong
    assert (ROOT / page.removeprefix("Documentation: ")).is_file()
    for option in command.params:
        assert getattr(option, "help", None) or option.param_type_name == "argument", option.name
