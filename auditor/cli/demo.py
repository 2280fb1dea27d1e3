"""``tiltmeter demo``: the whole product on this machine, against simulated deployments of declared truth."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    app.command("demo")(_demo)


def _demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where everything of it goes.")] = Path(
        "tiltmeter-demo"
    ),
    port: Annotated[
        int, typer.Option(min=0, max=65534, help="The gateway's port, and the next one the auditor's; 0: free ones.")
    ] = 0,
) -> None:
    """Show the whole product on one machine: probes, coding, estimates beside the truth, and a report."""
    import os

    from rich.console import Console

    from auditor.demo.stages import demonstrate
    from auditor.errors import UsageError

    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {out} is not a folder")
    os.environ.pop("TILTMETER_DATABASE_URL", None)  # the demonstration never touches a store of the caller's
    demonstrate(out, port, Console())
