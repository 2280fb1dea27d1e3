"""The page of the commands: what each one's ``--help`` says."""

from collections.abc import Iterator
from typing import Any, Final

from typer.main import get_command

from biasmeter.commands.main import app

_HEAD: Final = """# Commands

Generated from the commands' own help. Exit status: 0 ok, 1 the work failed, 2 wrong usage or configuration.
"""


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command's name, such as ``key list``, and the command, in the order of the names."""
    yield from sorted(_below(get_command(app), ()))


def _below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, child in getattr(command, "commands", {}).items():
        below = (*path, name)
        if hasattr(child, "commands"):
            yield from _below(child, below)
        else:
            yield " ".join(below), child


def page() -> str:
    """Write the page."""
    lines = [_HEAD]
    for name, command in commands():
        example, documentation = _epilog(command.epilog)
        lines += [
            f"## `biasmeter {name}` {{ #{name.replace(' ', '-')} }}\n",
            f"{_text(command.help)}\n",
            f"```sh\n{example}\n```\n",
            "| option | meaning |\n|---|---|",
            *(f"| {_option(option)} | {_cell(_help(option))} |" for option in command.params if _help(option)),
            f"\nMore: [{documentation}]({documentation}).\n",
        ]
    return "\n".join(lines)


def _epilog(epilog: str) -> tuple[str, str]:
    example, _, documentation = epilog.partition("\n\n")
    return example.removeprefix("Example: "), documentation.removeprefix("Documentation: docs/")


def _text(text: str | None) -> str:
    return "\n\n".join(
        " ".join(part.split())
        for part in (text or "").split("\n\n")
        if not part.strip().startswith(("Example:", "Documentation:"))
    )


def _option(option: Any) -> str:
    names = option.opts if option.param_type_name == "option" else [option.metavar or option.name]
    value = f" {option.metavar}" if option.param_type_name == "option" and option.metavar else ""
    return ", ".join(f"`{name}{value}`" for name in names)


def _help(option: Any) -> str:
    return getattr(option, "help", None) or ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
