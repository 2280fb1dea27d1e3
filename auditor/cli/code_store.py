"""``biasmeter code-store``: code stored exchanges in bulk."""

import json
import os
from typing import Annotated, Literal

import typer

from auditor.errors import UsageError
from biasmeter.options import ConfigOption, JsonOption, LastOption, SinceOption, UntilOption, read_period
from biasmeter.progress import counting

app = typer.Typer()


@app.command("code-store")
def code_store(
    config: ConfigOption,
    engine: Annotated[
        Literal["queue", "ray"],
        typer.Option(help="queue: code in this process, as an auditor does. ray: on a Ray cluster."),
    ] = "queue",
    since: SinceOption = None,
    until: UntilOption = None,
    last: LastOption = None,
    budget_usd: Annotated[
        float | None,
        typer.Option("--budget-usd", min=0, help="Stop before the judges' estimated cost is over this."),
    ] = None,
    ray_address: Annotated[
        str | None,
        typer.Option("--ray-address", metavar="ADDRESS", help="A running cluster. Default: this machine alone."),
    ] = None,
    actors: Annotated[int, typer.Option(min=1, max=10_000, help="With ray: number of actors, half a core each.")] = 2,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how much there is to code, and its cost.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Code the stored exchanges of a period that the configuration's coders have not coded.

    Use it after a change of the panel or the rubric, when there is more than the auditor's queue can do beside its live
    work. Both engines store the same codings. If it stops, the same command continues. Auditors may run meanwhile.
    """
    from auditor.bulk.run import BulkRequest, code_pending
    from auditor.cli.store import in_store
    from auditor.config import load

    if engine == "queue" and ray_address is not None:
        raise UsageError("--ray-address needs --engine ray")
    begin, end = read_period(since, until, last)
    loaded = load(config, os.environ)
    if ray_address is not None and loaded.store.url is None:
        raise UsageError("--ray-address: other machines cannot reach the embedded store; set store.url")
    request = BulkRequest(
        engine=engine,
        since=begin,
        until=end,
        budget_usd=budget_usd,
        address=ray_address,
        actors=actors,
        dry_run=dry_run,
    )
    with counting("coding") as on_progress:
        pending, added = in_store(loaded, lambda store: code_pending(store, loaded, request, on_progress))
    if as_json:
        found = {"exchanges": pending.exchanges, "coded": added, "usd": round(pending.usd, 4), "left": pending.left}
        typer.echo(json.dumps(found))
        return
    if dry_run:
        typer.echo(f"{pending.exchanges:,} exchanges to code, about {pending.usd:.2f} USD for the judges")
    else:
        typer.echo(f"{added:,} of {pending.exchanges:,} exchanges coded")
    if pending.left:
        typer.echo(f"{pending.left:,} more are left out by the budget of {budget_usd} USD")
