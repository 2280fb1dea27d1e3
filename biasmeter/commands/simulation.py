"""``biasmeter demo`` and ``simulate``: the whole product, or deployments alone, with declared true behaviour."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.errors import UsageError

if TYPE_CHECKING:
    from auditor.simulate.config import LoadedScenario

app = typer.Typer()


@app.command("demo")
def _demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the demonstration.")] = Path(
        "biasmeter-demo"
    ),
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65534, help="Port of the gateway; the auditor takes the next one. 0 chooses free ports."
        ),
    ] = 0,
) -> None:
    """Show the whole product on one machine: probes, coding, estimates beside the truth, and a report."""
    from rich.console import Console

    from auditor.demo.stages import demonstrate

    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {out} is not a folder")
    os.environ.pop("BIASMETER_DATABASE_URL", None)  # the demonstration must not use the caller's store
    demonstrate(out, port, Console())


@app.command("simulate")
def simulate(
    config: Annotated[
        Path | None, typer.Option("-c", "--config", help="The scenario. Default: the built-in one.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free port.")] = 4010,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    truth: Annotated[
        bool, typer.Option("--truth", help="Print the true rates and the rates an audit would report, and exit.")
    ] = False,
    show_config: Annotated[bool, typer.Option("--show-config", help="Print the built-in scenario, and exit.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on one line instead of the table.")
    ] = False,
) -> None:
    """Serve simulated OpenAI-compatible deployments and judges whose true behaviour is declared."""
    from auditor.simulate.config import default_text, load

    if show_config:
        typer.echo(default_text(), nl=False)
        return
    loaded = load(config)
    if truth:
        _print(loaded, None, as_json=as_json)
        return
    from auditor.simulate.server import run

    run(loaded, host, port, lambda address: _print(loaded, address, as_json=as_json))


def _print(loaded: "LoadedScenario", address: str | None, *, as_json: bool) -> None:
    from biasmeter.terminal.scenario_output import describe, listing

    if as_json:
        served = {"address": address} if address else {}
        typer.echo(json.dumps({**served, **describe(loaded)}, sort_keys=True))
    else:
        typer.echo(listing(loaded))
        if address:
            typer.echo(f"\nlistening on {address} (use it as base_url; any key is accepted); stop with Ctrl-C")
    sys.stdout.flush()
