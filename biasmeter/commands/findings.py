"""``biasmeter findings``, ``references`` and ``actions``: what monitoring found, and what findings did to routes."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import log
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from auditor.errors import UsageError
from biasmeter.terminal.options import ByOption, ConfigOption, JsonOption, read_day, read_name
from biasmeter.terminal.tables import print_result

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from auditor.config import Config
    from auditor.findings import Person
    from auditor.monitor.policy import Step
    from auditor.store.findings import Finding

app = typer.Typer()

Shown = Mapping[str, Any]

NoteOption = Annotated[str | None, typer.Option(help="A note to keep with it.")]
ReferenceDayOption = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="DAY",
        help="First day of the new reference: 2026-03-01, 14d (ago) or yesterday. "
        "Default: the day of the finding, or today.",
    ),
]
ReleaseOption = Annotated[str | None, typer.Option(help="Name of the accepted release.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the finding, as `findings list` shows it.")]


findings_app = typer.Typer(
    no_args_is_help=True, help="List the findings of drift monitoring, acknowledge them, and accept new references."
)


references_app = typer.Typer(no_args_is_help=True, help="List the references of drift monitoring and accept new ones.")


def _person(by: str | None, note: str | None) -> "Person":
    from auditor.findings import Person

    return Person(by=read_name(by), note=note, now=datetime.now(UTC))


@findings_app.command("list")
def _list(
    config: ConfigOption,
    deployment: Annotated[str | None, typer.Option(help="Show only this deployment.")] = None,
    state: Annotated[
        Literal["open", "acknowledged", "answered"] | None, typer.Option(help="Show only findings in this state.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the findings, the newest first."""
    from msgspec import to_builtins

    from auditor.findings import finding_entry
    from auditor.store.findings import read_findings
    from biasmeter.store_work import in_transaction

    wanted = {name: value for name, value in (("deployment", deployment), ("state", state)) if value is not None}
    findings = in_transaction(config, lambda _, connection: read_findings(connection, **wanted))
    shown = to_builtins([finding_entry(finding) for finding in findings])
    print_result({"findings": shown}, list_lines(shown), as_json=as_json)


@findings_app.command("show")
def _show(config: ConfigOption, finding_id: IdArgument, as_json: JsonOption = False) -> None:
    """Show one finding with its evidence and its history."""
    from biasmeter.store_work import in_transaction

    shown = in_transaction(config, lambda _, connection: _shown(connection, finding_id))
    _print_finding(shown, as_json=as_json)


@findings_app.command("acknowledge")
def _acknowledge(
    config: ConfigOption,
    finding_id: IdArgument,
    note: NoteOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record that somebody looks into a finding. Monitoring continues, and so does the alert."""
    from auditor.findings import acknowledge
    from biasmeter.store_work import in_transaction

    async def work(loaded: "Config", connection: "AsyncConnection") -> dict[str, Any]:
        await acknowledge(connection, loaded, await _need(connection, finding_id, changing=True), _person(by, note))
        return await _shown(connection, finding_id)

    _print_finding(in_transaction(config, work), as_json=as_json)


@findings_app.command("silence")
def _silence(
    config: ConfigOption,
    finding_id: IdArgument,
    length: Annotated[str | None, typer.Option("--for", metavar="TIME", help="How long: 12h, 3d, at most 90d.")] = None,
    end: Annotated[bool, typer.Option("--end", help="End the silence now.")] = False,
    note: NoteOption = None,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let alerts and webhook posts of a finding wait for a time. Monitoring continues."""
    from auditor.config.values import parse_duration
    from auditor.findings import silence
    from biasmeter.store_work import in_transaction

    if (length is None) != end:
        raise UsageError("say how long with --for, or end the silence with --end")
    try:
        seconds = 0.0 if length is None else parse_duration(length)
    except ValueError as error:
        raise UsageError(f"--for {length}: {error}") from None

    async def work(_: "Config", connection: "AsyncConnection") -> dict[str, Any]:
        who = _person(by, note)
        until = None if end else who.now + timedelta(seconds=seconds)
        await silence(connection, await _need(connection, finding_id, changing=True), until, who)
        return await _shown(connection, finding_id)

    _print_finding(in_transaction(config, work), as_json=as_json)


@findings_app.command("accept-reference")
def _accept(
    config: ConfigOption,
    finding_id: IdArgument,
    note: NoteOption = None,
    by: ByOption = None,
    since: ReferenceDayOption = None,
    release: ReleaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept the deployment's answers from a day on as its new reference. All its findings are then answered."""
    from auditor.findings import AcceptedReference, accept_reference
    from biasmeter.store_work import in_transaction

    day = read_day("--since", since)

    async def work(loaded: "Config", connection: "AsyncConnection") -> dict[str, Any]:
        finding = await _need(connection, finding_id, changing=True)
        accepted = AcceptedReference(since=day, release=release)
        await accept_reference(connection, loaded, finding, accepted, _person(by, note))
        return await _shown(connection, finding_id)

    _print_finding(in_transaction(config, work), as_json=as_json)


async def _need(connection: "AsyncConnection", finding_id: str, *, changing: bool = False) -> "Finding":
    from auditor.store.findings import read_finding

    finding = await read_finding(connection, finding_id, changing=changing)
    if finding is None:
        raise UsageError(f"there is no finding {finding_id!r}; biasmeter findings list shows them")
    return finding


async def _shown(connection: "AsyncConnection", finding_id: str) -> dict[str, Any]:
    from msgspec import to_builtins

    from auditor.findings import event_entry, finding_entry
    from auditor.store.findings import read_events

    finding = await _need(connection, finding_id)
    events = await read_events(connection, finding_id)
    return {**to_builtins(finding_entry(finding)), "events": to_builtins([event_entry(event) for event in events])}


def _print_finding(shown: dict[str, Any], *, as_json: bool) -> None:
    print_result(shown, finding_lines(shown), as_json=as_json)


@references_app.command("list")
def _list_references(
    config: ConfigOption,
    deployment: Annotated[str | None, typer.Option(help="Show only this deployment.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List all references, each deployment's newest first."""
    from msgspec import to_builtins

    from auditor.findings import reference_entries
    from biasmeter.store_work import in_transaction

    entries = in_transaction(config, lambda loaded, connection: reference_entries(connection, loaded, deployment))
    shown = to_builtins(entries)
    lines = [_reference_line(reference) for reference in shown] or ["no deployment is monitored yet"]
    print_result({"references": shown}, lines, as_json=as_json)


@references_app.command("accept")
def _accept_references(
    config: ConfigOption,
    deployment: Annotated[str, typer.Option(help="The deployment.")],
    note: NoteOption = None,
    by: ByOption = None,
    since: ReferenceDayOption = None,
    release: ReleaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept a deployment's answers from a day on as its new reference. If it has findings, they are then answered."""
    from msgspec import to_builtins

    from auditor.findings import AcceptedReference, accept_unasked, reference_entry
    from biasmeter.store_work import in_transaction

    day = read_day("--since", since)

    async def work(loaded: "Config", connection: "AsyncConnection") -> dict[str, Any]:
        accepted = AcceptedReference(since=day, release=release)
        reference = await accept_unasked(connection, loaded, deployment, accepted, _person(by, note))
        return to_builtins(reference_entry(reference, in_force=True))  # type: ignore[no-any-return]

    shown = in_transaction(config, work)
    print_result(shown, [_reference_line(shown)], as_json=as_json)


def _reference_line(reference: Mapping[str, Any]) -> str:
    days = (
        f"{reference['since']} to {reference['until']}"
        if "until" in reference
        else f"since {reference['since']}, not enough days yet"
    )
    parts = [reference["id"], reference["deployment"], days]
    parts += [f"release {reference['release']}"] if "release" in reference else []
    parts += [f"accepted {reference['accepted_at'][:10]} by {reference['by']}" if "by" in reference else "the first"]
    parts += [] if reference["in_force"] else ["no longer in force"]
    return "  ".join(parts) + (f": {reference['note']}" if "note" in reference else "")


def list_lines(shown: Sequence[Shown]) -> list[str]:
    """Return one line for each finding."""
    if not shown:
        return ["no findings"]
    return [
        f"{finding['id']}  {finding['first_seen'][:10]}  {finding['level']:<11}  {finding['state']:<12}  "
        f"{finding['deployment']}  {finding['metric']}  {_change(finding)}"
        for finding in shown
    ]


def finding_lines(shown: Shown) -> list[str]:
    """Return the lines of one finding: change, evidence, reference and history."""
    evidence = shown["evidence"]
    promise, reference = evidence["promise"], evidence["reference"]
    limit = -log(promise["alpha"])
    window = shown["window"]
    detectors = [f"{name} {value:.2f}" for name, value in evidence["detectors"].items()]
    shaken = "; whole days vary more than the statements alone explain (shaken)" if reference["shaken"] else ""
    return [
        f"{shown['id']}: {shown['level']}, {shown['state']}"
        + (f", silenced until {shown['silenced_until'][:16]}" if "silenced_until" in shown else ""),
        f"{shown['deployment']}: {shown['metric']} {_change(shown)}",
        f"over {shown['n']} answers to {shown['n_statements']} statements, {window['since']} to {window['until']}",
        f"log evidence (a detector alarms at {limit:.2f}): {', '.join(detectors)}",
        f"reference: {reference['n_passes']} passes until {reference['until']}{shaken}",
        f"passes since the reference: {evidence['n_passes']}",
        *(_event(event) for event in shown["events"]),
    ]


def _change(finding: Shown) -> str:
    if "value" not in finding:
        return f"{finding['evidence']['direction']}, by an unknown amount"
    return f"{100 * finding['value']:+.1f} points ({100 * finding['low']:+.1f} to {100 * finding['high']:+.1f})"


def _event(event: Shown) -> str:
    parts = [f"{event['at'][:19]}  {event['action']}"]
    parts += [f"until {event['until'][:16]}"] if "until" in event else []
    parts += [f"by {event['by']}"] if "by" in event else []
    parts += [f"with {event['reference']}"] if "reference" in event else []
    return " ".join(parts) + (f": {event['note']}" if "note" in event else "")


@app.command("actions")
def _actions(
    config: ConfigOption,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what the present findings would do now, and change nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List what findings have done to routes, the newest first."""
    from msgspec import to_builtins

    from auditor.jobs.actions import action_entry, preview, step_line
    from auditor.store.actions import read_actions
    from biasmeter.store_work import in_transaction

    async def would(loaded: "Config", connection: "AsyncConnection") -> tuple["Config", list["Step"]]:
        return loaded, await preview(connection, loaded, datetime.now(UTC))

    if dry_run:
        loaded, steps = in_transaction(config, would)
        lines = [step_line(loaded.routes, step) for step in steps]
        print_result({"steps": lines}, lines or ["nothing would change"], as_json=as_json)
        return
    actions = in_transaction(config, lambda _, connection: read_actions(connection))
    shown = to_builtins([action_entry(action) for action in reversed(actions)])
    print_result(
        {"actions": shown}, [_action_line(action) for action in shown] or ["no finding has acted"], as_json=as_json
    )


def _action_line(action: dict[str, Any]) -> str:
    moved = f"  {100 * action['share']:.1f} % to {', '.join(action['to'])}" if "share" in action else ""
    state = (
        f"ended {action['ended'][:16]}: {action['because']}" if "ended" in action else f"until {action['expires'][:16]}"
    )
    dry = "  dry run" if action["dry_run"] else ""
    return (
        f"{action['id']}  {action['began'][:16]}  {action['action']}  {action['route']}  "
        f"{action['deployment']}{moved}{dry}  {action['finding']}  {state}"
    )
