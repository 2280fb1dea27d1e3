"""``tiltmeter check``: is the configuration right, and is what it names there? ``advice`` and ``reach`` find out."""

import json
import os
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from auditor.cli.options import ConfigOption

_COLOURS: Final = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "problem": typer.colors.RED}
_COLUMNS: Final = ("state", "kind", "name", "where", "detail")


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    app.command("check")(check)


def check(
    config: ConfigOption,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Validate the configuration, and reach for the store, the deployments and the judges that it names.

    Exit status: 0 all is there (there may be warnings), 1 something is not, 2 the configuration is wrong.
    """
    import asyncio

    from auditor.cli.advice import advise
    from auditor.config import read
    from auditor.errors import ConfigError, UsageError

    try:
        from auditor.cli.reach import reach
    except ModuleNotFoundError as error:  # a host that only runs the gateway
        raise UsageError(f"check needs {error.name}, which is not here: pip install 'tiltmeter[audit]'") from None
    try:
        loaded = read(config, os.environ)
        loaded.config.database_url(os.environ)
    except ConfigError as error:
        if not as_json:
            raise
        _print_json({"file": str(config), "ok": False, "problems": str(error).splitlines()})
        raise typer.Exit(error.exit_status) from None
    rows = asyncio.run(reach(loaded.config, loaded.places, os.environ))
    rows += advise(loaded.config, loaded.places)
    table = [asdict(row) for row in rows]
    ok = not any(row["state"] == "problem" for row in table)
    if as_json:
        _print_json({"file": str(config), "ok": ok, "config_hash": loaded.config.config_hash, "rows": table})
    else:
        _print_table(table)
    raise typer.Exit(0 if ok else 1)


def _print_json(content: dict[str, Any]) -> None:
    typer.echo(json.dumps(content, indent=2, sort_keys=True))


def _print_table(rows: list[dict[str, str]]) -> None:
    widths = {column: max(len(row[column]) for row in rows) for column in _COLUMNS[:-1]}
    for row in rows:
        cells = [row[column].ljust(widths.get(column, 0)) for column in _COLUMNS]
        cells[0] = typer.style(cells[0], fg=_COLOURS[row["state"]])
        typer.echo("  ".join(cells))
    counts = {state: sum(row["state"] == state for row in rows) for state in ("problem", "warning")}
    told = [f"{count} {state}{'' if count == 1 else 's'}" for state, count in counts.items() if count]
    typer.echo(f"\n{', '.join(told) or 'all is well'}")
