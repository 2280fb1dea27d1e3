"""``biasmeter check``: validate the configuration and connect to what it names, with ``advice`` and ``reach``."""

import asyncio
import json
import os
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from auditor.errors import ConfigError
from biasmeter.options import ConfigOption
from biasmeter.tables import table_lines

_COLOURS: Final = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "problem": typer.colors.RED}
_COLUMNS: Final = ("state", "kind", "name", "where", "detail")


app = typer.Typer()


@app.command("check")
def check(
    config: ConfigOption,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    print_schema: Annotated[
        bool, typer.Option("--print-schema", help="Only print the JSON Schema of the configuration, for editors.")
    ] = False,
) -> None:
    """Validate the configuration, and connect to the store, the deployments and the judges that it names.

    Exit status: 0 everything is reachable (there may be warnings), 1 something is not, 2 the configuration is wrong.
    """
    if print_schema:
        from auditor.config.json_schema import config_schema_text

        typer.echo(config_schema_text(), nl=False)
        return
    from auditor.cli.advice import advise
    from auditor.cli.reach import reach
    from auditor.config import read

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
    for row, line in zip(rows, table_lines([row[column] for column in _COLUMNS] for row in rows), strict=True):
        state = row["state"]
        typer.echo(typer.style(state, fg=_COLOURS[state]) + line.removeprefix(state))
    counts = {state: sum(row["state"] == state for row in rows) for state in ("problem", "warning")}
    counted = [f"{count} {state}{'' if count == 1 else 's'}" for state, count in counts.items() if count]
    typer.echo(f"\n{', '.join(counted) or 'no problems found'}")
