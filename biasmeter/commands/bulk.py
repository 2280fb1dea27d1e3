"""``biasmeter code-store`` and ``score-store``: code stored exchanges, and score stored answers of peers, in bulk."""

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from biasmeter.terminal.options import (
    ActorsOption,
    ConfigOption,
    EngineOption,
    JsonOption,
    LastOption,
    RayAddressOption,
    SinceOption,
    UntilOption,
    read_period,
)
from biasmeter.terminal.progress import counting

if TYPE_CHECKING:
    from auditor.bulk.pending import Pending

app = typer.Typer()

BudgetOption = Annotated[
    float | None,
    typer.Option("--budget-usd", min=0, help="Stop before the judges' estimated cost is over this."),
]


@app.command("code-store")
def code_store(
    config: ConfigOption,
    engine: EngineOption = "queue",
    since: SinceOption = None,
    until: UntilOption = None,
    last: LastOption = None,
    budget_usd: BudgetOption = None,
    ray_address: RayAddressOption = None,
    actors: ActorsOption = 2,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how much there is to code, and its cost.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Code the stored exchanges of a period that the configuration's coders have not coded.

    Use it after a change of the panel or the rubric, when there is more than the auditor's queue can do beside its live
    work. Both engines store the same codings. If it stops, the same command continues. Auditors may run meanwhile.
    """
    from auditor.bulk.engines import BulkEngine
    from auditor.bulk.pending import BulkRequest
    from auditor.bulk.run import code_pending
    from auditor.config import load_without_upstream_keys
    from biasmeter.store_work import in_store

    chosen = BulkEngine(name=engine, address=ray_address, actors=actors)
    begin, end = read_period(since, until, last)
    loaded = load_without_upstream_keys(config, os.environ)
    chosen.check(loaded)
    request = BulkRequest(engine=chosen, since=begin, until=end, budget_usd=budget_usd, dry_run=dry_run)
    with counting("coding") as on_progress:
        pending, added = in_store(loaded, lambda store: code_pending(store, loaded, request, on_progress))
    _report(pending, ("exchanges", "code", "coded"), None if dry_run else added, request.budget_usd, as_json=as_json)


@app.command("score-store")
def score_store(
    config: ConfigOption,
    engine: EngineOption = "queue",
    budget_usd: BudgetOption = None,
    ray_address: RayAddressOption = None,
    actors: ActorsOption = 2,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how much there is to score, and its cost.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Score the stored answers of compared deployments that an encoder or a judge of the domains has not scored.

    Use it after a change of the encoder or of the judges, when there is more than the auditor can do beside its live
    work. Then the deployments are compared again. Both engines store the same scores. If it stops, the same command
    continues. Auditors may run meanwhile.
    """
    from auditor.bulk.engines import BulkEngine
    from auditor.bulk.pending import BulkRequest
    from auditor.bulk.scores import score_pending
    from auditor.config import load_without_upstream_keys
    from biasmeter.store_work import in_store

    chosen = BulkEngine(name=engine, address=ray_address, actors=actors)
    loaded = load_without_upstream_keys(config, os.environ)
    chosen.check(loaded)
    request = BulkRequest(engine=chosen, budget_usd=budget_usd, dry_run=dry_run)
    with counting("scoring") as on_progress:
        pending, added = in_store(loaded, lambda store: score_pending(store, loaded, request, on_progress))
    _report(pending, ("scores", "make", "made"), None if dry_run else added, request.budget_usd, as_json=as_json)


def _report(
    pending: "Pending", words: tuple[str, str, str], added: int | None, budget_usd: float | None, *, as_json: bool
) -> None:
    """Print what was found and done, with a noun and two forms of a verb; ``added`` is None after a dry run."""
    what, do, done = words
    if as_json:
        summary = {what: pending.count, done: added or 0, "usd": round(pending.usd, 4), "left": pending.left}
        typer.echo(json.dumps(summary))
        return
    if added is None:
        typer.echo(f"{pending.count:,} {what} to {do}, about {pending.usd:.2f} USD for the judges")
    else:
        typer.echo(f"{added:,} of {pending.count:,} {what} {done}")
    if pending.left:
        typer.echo(f"{pending.left:,} more are left out by the budget of {budget_usd} USD")
