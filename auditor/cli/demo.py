"""``biasmeter demo``: run the whole product on this machine against simulated deployments of declared truth."""

import os
from pathlib import Path
from typing import Annotated

import typer

from auditor.errors import UsageError

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
