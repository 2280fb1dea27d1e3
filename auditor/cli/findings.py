"""``tiltmeter findings``: what the watch has found, and what people say to it."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from auditor.cli.answers import ByOption, NoteOption, ReleaseOption, SinceOption, in_store, person, say
from auditor.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from auditor.config import Config
    from auditor.store.findings import Finding

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Of the finding, as `list` shows it.")]


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    findings = typer.Typer(no_args_is_help=True, help="What the watch has found, and what people say to it.")
    findings.command("list")(_list)
    findings.command("show")(_show)
    findings.command("acknowledge")(_acknowledge)
    findings.command("accept-reference")(_accept)
    app.add_typer(findings, name="findings")


def _list(
    config: ConfigOption,
    deployment: Annotated[str | None, typer.Option(help="Only of this deployment.")] = None,
    state: Annotated[
        Literal["open", "acknowledged", "answered"] | None, typer.Option(help="Only those that stand so.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the findings, the newest first."""
    from auditor.cli.finding_words import list_lines
    from auditor.jobs.findings import finding_json
    from auditor.store.findings import read_findings

    wanted = {name: value for name, value in (("deployment", deployment), ("state", state)) if value is not None}
    found = in_store(config, lambda _, connection: read_findings(connection, **wanted))
    shown = [finding_json(one) for one in found]
    say({"findings": shown}, list_lines(shown), as_json=as_json)


def _show(config: ConfigOption, finding_id: IdArgument, as_json: JsonOption = False) -> None:
    """Show one finding with its evidence, and what happened to it."""
    shown = in_store(config, lambda _, connection: _shown(connection, finding_id))
    _say_one(shown, as_json=as_json)


def _acknowledge(
    config: ConfigOption,
    finding_id: IdArgument,
    note: NoteOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that somebody looks into a finding. The watch goes on as before."""
    from auditor.jobs.findings import acknowledge

    async def work(loaded: "Config", connection: "AsyncConnection") -> dict[str, Any]:
        await acknowledge(connection, loaded, await _need(connection, finding_id, changing=True), person(by, note))
        return await _shown(connection, finding_id)

    _say_one(in_store(config, work), as_json=as_json)


def _accept(
    config: ConfigOption,
    finding_id: IdArgument,
    note: NoteOption = None,
    by: ByOption = None,
    since: SinceOption = None,
    release: ReleaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept what the deployment is like since a day as its reference: that answers all that is found of it."""
    from auditor.jobs.acceptance import Accepted, accept_reference

    async def work(loaded: "Config", connection: "AsyncConnection") -> dict[str, Any]:
        finding = await _need(connection, finding_id, changing=True)
        accepted = Accepted(since=since.date() if since is not None else None, release=release)
        await accept_reference(connection, loaded, finding, accepted, person(by, note))
        return await _shown(connection, finding_id)

    _say_one(in_store(config, work), as_json=as_json)


async def _need(connection: "AsyncConnection", finding_id: str, *, changing: bool = False) -> "Finding":
    from auditor.errors import UsageError
    from auditor.store.findings import read_finding

    found = await read_finding(connection, finding_id, changing=changing)
    if found is None:
        raise UsageError(f"there is no finding {finding_id!r}; tiltmeter findings list shows them")
    return found


async def _shown(connection: "AsyncConnection", finding_id: str) -> dict[str, Any]:
    from auditor.jobs.findings import event_json, finding_json
    from auditor.store.findings import read_events

    found = await _need(connection, finding_id)
    events = await read_events(connection, finding_id)
    return {**finding_json(found), "events": [event_json(one) for one in events]}


def _say_one(shown: dict[str, Any], *, as_json: bool) -> None:
    from auditor.cli.finding_words import finding_lines

    say(shown, finding_lines(shown), as_json=as_json)
