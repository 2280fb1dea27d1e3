"""``biasmeter arms list|stop``: how the arms of routes' trials compare, and how to end one by hand."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.errors import UsageError
from biasmeter.terminal.options import ByOption, ConfigOption, JsonOption, read_name
from biasmeter.terminal.tables import print_result, table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.ext.asyncio import AsyncConnection

    from auditor.config import Config
    from auditor.documents.base import Missing
    from auditor.documents.estimates import FlaggedEntry
    from auditor.store.trials import ArmStop
    from auditor.trials.document import TrialEntry
    from auditor.trials.harm import ArmEvidence

app = typer.Typer(no_args_is_help=True, help="Compare the arms of routes' trials (mitigation), and stop one by hand.")

#: Measures that the list shows; --json has all.
_SHOWN = ("ber_union_full", "ber_sel_full", "ber_elab_full", "ir", "dni")


@app.command("list")
def _list(config: ConfigOption, as_json: JsonOption = False) -> None:
    """Compare the arms of each trial: rates, differences to the control, tokens, and the evidence of the stop rule."""
    from msgspec import to_builtins

    from biasmeter.store_work import in_transaction

    compared = in_transaction(config, _compared)
    shown = [
        {**to_builtins(entry), "harm": {arm: _evidence(evidence) for arm, evidence in harm.items()}}
        for entry, harm in compared
    ]
    lines = [line for entry, harm in compared for line in _lines(entry, harm)]
    print_result({"trials": shown}, lines or ["no route has a trial (routes[].mitigation)"], as_json=as_json)


@app.command("stop")
def _stop(
    config: ConfigOption,
    route: Annotated[str, typer.Argument(metavar="ROUTE", help="Model of the route.")],
    arm: Annotated[str, typer.Argument(metavar="ARM", help="Name of the arm.")],
    because: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is written down.")],
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop an arm for the rest of its trial: its requests are forwarded as they are.

    A new trial needs another `run`.
    """
    from auditor.store.trials import ArmStop, add_stop
    from auditor.trials.stopping import stop_line
    from biasmeter.store_work import in_transaction

    async def work(loaded: "Config", connection: "AsyncConnection") -> "ArmStop":
        entry = next((entry for entry in loaded.routes if entry.model == route), None)
        trial = None if entry is None else loaded.trial_of(entry)
        names = [] if entry is None or entry.mitigation is None else [each.name for each in entry.mitigation.arms]
        if trial is None or arm not in names:
            raise UsageError(f"route {route!r} has no arm {arm!r}; arms: {', '.join(names) or 'none'}")
        stop = ArmStop(
            trial=trial, arm=arm, dry_run=False, route=route, at=datetime.now(UTC), by=read_name(by),
            because=because,
        )  # fmt: skip
        if not await add_stop(connection, stop):
            raise UsageError(f"arm {arm!r} of route {route!r} has been stopped already")
        return stop

    stop = in_transaction(config, work)
    stopped = {"trial": stop.trial, "route": route, "arm": arm, "at": stop.at.isoformat(), "by": stop.by}
    print_result(stopped, [stop_line(stop), "Gateways know it within 5 seconds."], as_json=as_json)


async def _compared(
    loaded: "Config", connection: "AsyncConnection"
) -> "list[tuple[TrialEntry, dict[str, ArmEvidence]]]":
    from auditor.coding.coders import open_coders
    from auditor.jobs.estimate import running_trials
    from auditor.trials.comparison import compare_arms, read_counts
    from auditor.trials.stopping import harm_of

    compared = []
    routes = {route.model: route for route in loaded.routes}
    async with open_coders(loaded, asking=False) as coders:
        for coder in coders:
            for trial, route in running_trials(loaded, coder):
                counts = await read_counts(connection, coder.id, coder.rubric, trial, route)
                harm = await harm_of(connection, loaded, routes[route], coder.id)
                compared.append((compare_arms(counts, seed=loaded.seed), harm))
    return compared


def _evidence(evidence: "ArmEvidence") -> dict[str, Any]:
    return {
        "n": evidence.n, "n_control": evidence.n_control, "rise": evidence.rise, "log_evidence": evidence.log_evidence,
        "threshold": evidence.threshold,
    }  # fmt: skip


def _lines(entry: "TrialEntry", harm: "dict[str, ArmEvidence]") -> "Iterator[str]":
    from auditor.metrics.rates import METRICS

    yield f"route {entry.route}, trial {entry.trial}: {entry.n_unassigned:,} requests do not say who asks"
    heads = ("", *(arm.arm for arm in entry.arms))
    body = [
        ("requests", *(f"{arm.n:,}" for arm in entry.arms)),
        ("users or conversations", *(f"{arm.n_units:,}" for arm in entry.arms)),
        ("left as they were", *(f"{sum(arm.untouched.values()):,}" for arm in entry.arms)),
    ]
    for name in _SHOWN:
        label = METRICS[name].label.replace("_", " ")
        body.append((f"{label} %", *(_cell(arm.metrics[name], 100) for arm in entry.arms)))
        body.append(("  minus control", "", *(_cell(arm.differences[name], 100) for arm in entry.arms[1:])))
    for kind in ("prompt", "completion"):
        body.append((f"{kind} tokens", *(_cell(arm.tokens[kind], 1) for arm in entry.arms)))
        body.append(("  minus control", "", *(_cell(arm.token_differences[kind], 1) for arm in entry.arms[1:])))
    yield from table_lines([heads, *body])
    for arm, evidence in harm.items():
        yield f"{arm}: evidence of harm {evidence.log_evidence:.1f}, it stops at {evidence.threshold:.1f}"
    for each in entry.arms:
        for stop in each.stops or ():
            dry = " (dry run)" if stop.dry_run else ""
            yield f"{each.arm}: stopped{dry} {stop.at[:16]} by {stop.by}: {stop.because}"
    yield ""


def _cell(entry: "FlaggedEntry | Missing", scale: float) -> str:
    from auditor.documents.base import Missing

    if isinstance(entry, Missing):
        return "-"
    return f"{scale * entry.value:.1f} [{scale * entry.low:.1f}, {scale * entry.high:.1f}]"
