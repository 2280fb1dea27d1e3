"""The auditor's commands. Each module of this package declares a few and imports heavy libraries only when one runs."""

import typer

from auditor.cli import offline, simulate

app = typer.Typer(no_args_is_help=True)
offline.register(app)
simulate.register(app)
