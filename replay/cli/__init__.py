"""The commands on stored traffic. Each module imports heavy libraries only when one of its commands runs."""

import typer

from replay.cli import compare, exchanges, replay

app = typer.Typer()
for module in (replay, exchanges, compare):
    app.registered_commands.extend(module.app.registered_commands)
