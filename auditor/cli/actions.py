"""``biasmeter actions``: what findings do to routes, what they did, and what they would do now."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biasmeter.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from auditor.config import Config
    from auditor.monitor.policy import Step

app = typer.Typer()


@app.command("actions")
def _actions(
    config: ConfigOption,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what the present findings would do now, and change nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List what findings have done to routes, the newest first."""
    from auditor.cli.findings import say
    from auditor.cli.store import in_transaction
    from auditor.jobs.actions import action_json, preview, step_line
    from auditor.store.actions import read_actions

    async def would(loaded: "Config", connection: "AsyncConnection") -> tuple["Config", list["Step"]]:
        return loaded, await preview(connection, loaded, datetime.now(UTC))

    if dry_run:
        loaded, steps = in_transaction(config, would)
        lines = [step_line(loaded.routes, step) for step in steps]
        say({"steps": lines}, lines or ["nothing would change"], as_json=as_json)
        return
    found = in_transaction(config, lambda _, connection: read_actions(connection))
    shown = [action_json(one) for one in reversed(found)]
    say({"actions": shown}, [_line(one) for one in shown] or ["no finding has acted"], as_json=as_json)


def _line(one: dict[str, Any]) -> str:
    moved = f"  {100 * one['share']:.1f} % to {', '.join(one['to'])}" if "share" in one else ""
    state = f"ended {one['ended'][:16]}: {one['because']}" if "ended" in one else f"until {one['expires'][:16]}"
    dry = "  dry run" if one["dry_run"] else ""
    return (
        f"{one['id']}  {one['began'][:16]}  {one['action']}  {one['route']}  {one['deployment']}{moved}{dry}  "
        f"{one['finding']}  {state}"
    )
