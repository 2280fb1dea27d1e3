"""The help of each command: one sentence, one example that can be typed, and a page that exists."""

import shlex
from typing import Any

import pytest
from support.paths import ROOT
from typer.main import get_command

from biasmeter.commands.help import EXAMPLES
from biasmeter.commands.main import app


def commands(command: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    if not hasattr(command, "commands"):
        return {" ".join(path): command}
    return {name: one for key, child in command.commands.items() for name, one in commands(child, (*path, key)).items()}


COMMANDS = commands(get_command(app))


def test_each_command_has_an_example_and_each_example_a_command() -> None:
    assert set(EXAMPLES) == set(COMMANDS)


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
