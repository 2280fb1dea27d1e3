"""``biasmeter replay`` and ``compare``: ask stored exchanges again, or pair what is stored, and compare the answers."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from auditor.errors import AuditError, UsageError
from biasmeter.terminal.options import ActorsOption, ConfigOption, EngineOption, JsonOption, RayAddressOption
from biasmeter.terminal.progress import bars, counting, resumable

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.bulk.engines import BulkEngine
    from auditor.config import Config
    from auditor.probes.run import RunLimits
    from auditor.work import Work
    from replay.plan import PreparedReplay, ReplaySpec
    from replay.progress import OnProgress
    from replay.sending import CallCost, ReplayCost, SendResult

app = typer.Typer()


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """The options of a run that do not change what is asked."""

    out: Path
    concurrency: int | None
    budget_calls: int | None
    budget_usd: float | None
    yes: bool
    as_json: bool
    show_edits: Path | None
    engine: "BulkEngine | None"  #: where answers are coded; None: in this process


@app.command("replay")
def replay_command(
    config: ConfigOption,
    select: Annotated[
        str,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Which exchanges, by deployment, origin (probe, client), task, plan, route, from, to, last, tag.NAME, "
            "limit, seed, draw (even, traffic); or 'all'.",
            show_default=False,
        ),
    ],
    formats: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT,...",
            help="Formats to ask in: levels joined by + (BJ, CTO+others, ai_ethicist, skeptical), or again, which "
            "changes nothing. Default: CTO,SC; with --swap none.",
        ),
    ] = None,
    swap: Annotated[
        list[str] | None,
        typer.Option(
            "--swap",
            metavar="AXIS:A<>B",
            help="Ask clients' own requests about another group, such as gender:male<>female. Repeatable.",
        ),
    ] = None,
    lexicon: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Your own words and names for --swap; they are used before the built-in ones."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="DEPLOYMENT", help="The deployment to ask. Default: the one that gave the stored answer."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for comparison.json and comparison.html.")
    ] = Path("biasmeter-replay"),
    name: Annotated[str, typer.Option(help="Start another replay of the same selection under this name.")] = "",
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Calls in flight to each deployment. Default: a tenth of its declared concurrency."),
    ] = None,
    budget_calls: Annotated[int | None, typer.Option(min=0, help="Stop this run after this many calls.")] = None,
    budget_usd: Annotated[
        float | None,
        typer.Option(min=0, help="Stop this run before its calls cost more than this. Default: twice the estimate."),
    ] = None,
    show_edits: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the changes of --swap to this file as JSONL, and send nothing."),
    ] = None,
    engine: EngineOption = "queue",
    ray_address: RayAddressOption = None,
    actors: ActorsOption = 2,
    yes: Annotated[bool, typer.Option("--yes", help="Send without asking.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask stored exchanges again in other formats, through the gateway, and compare the answers in pairs.

    The command shows the cost first and sends nothing without --yes. Run it again to continue where it stopped.
    --engine says where the answers are coded.

    Example: biasmeter replay --select origin=probe,task=BJ --formats CTO,again --yes

    Documentation: docs/replay.md
    """
    from auditor.bulk.engines import BulkEngine
    from auditor.config import load_without_upstream_keys
    from auditor.documents.output import check_folder
    from biasmeter.store_work import in_store
    from replay.plan import read_spec

    chosen = BulkEngine(name=engine, address=ray_address, actors=actors)
    spec = read_spec(select, formats, swap or [], lexicon, to, name)
    options = RunOptions(
        out=out,
        concurrency=concurrency,
        budget_calls=budget_calls,
        budget_usd=budget_usd,
        yes=yes,
        as_json=as_json,
        show_edits=show_edits,
        engine=chosen if engine == "ray" else None,
    )
    _check_edits(spec, options)
    check_folder(out)
    loaded = load_without_upstream_keys(config, os.environ)
    chosen.check(loaded)
    with resumable():
        message = in_store(loaded, lambda store: _prepare_and_run(loaded, store, spec, options))
    if message is not None:
        raise AuditError(message)


def _check_edits(spec: "ReplaySpec", options: RunOptions) -> None:
    if options.show_edits is None:
        return
    if spec.lexicon is None:
        raise UsageError("--show-edits needs --swap")
    if options.yes:
        raise UsageError("--show-edits sends nothing: leave out --yes")
    if not options.show_edits.parent.is_dir():
        raise UsageError(f"--show-edits: the folder {options.show_edits.parent} does not exist")


async def _prepare_and_run(
    config: "Config", store: "AsyncEngine", spec: "ReplaySpec", options: RunOptions
) -> str | None:
    """Prepare and run the replay; return why sending stopped, unless the budget was reached."""
    from auditor.work import open_work, utc_now
    from replay.files.edits import write_edits
    from replay.plan import prepare

    async with open_work(store, config, utc_now) as work:
        with bars() as on_progress:
            prepared = await prepare(work, spec, on_progress)
        if options.show_edits is not None:
            write_edits(prepared, options.show_edits)
            typer.echo(options.show_edits)
            return None
        return await _replay(work, prepared, options)


async def _replay(work: "Work", prepared: "PreparedReplay", options: RunOptions) -> str | None:
    from biasmeter.terminal.comparison_output import write_comparison
    from replay.sending import cost_json, forecast_cost

    cost = await forecast_cost(work, prepared)
    _print_cost(prepared, cost)
    if not cost.nothing and not options.yes:
        if options.as_json:
            typer.echo(json.dumps(cost_json(prepared, cost), indent=2, sort_keys=True))
        _confirm()
    with bars() as on_progress:
        answered, message = await _send(work, prepared, options, cost, on_progress)
        # Imported late: a run that only shows the cost does not need the statistics.
        from replay.results import conclude, store_exposures

        document = await conclude(work, prepared, answered, on_progress, options.engine)
    await store_exposures(work.engine, document, work.clock())
    write_comparison(document, options.out, as_json=options.as_json)
    return message


async def _send(
    work: "Work", prepared: "PreparedReplay", options: RunOptions, cost: "ReplayCost", on_progress: "OnProgress"
) -> "tuple[Mapping[str, UUID], str | None]":
    """Send the calls without an answer; return all answers, and why sending stopped unless the budget was reached."""
    from auditor.access import gateway_access
    from replay.plan import store_plan
    from replay.sending import send

    if len(prepared.answered) == len(prepared.calls):
        return prepared.answered, None
    access = gateway_access(work.config)
    if not prepared.resumed:
        await store_plan(work, prepared)
    sent = await send(work, prepared, access, on_progress, _limits(options, cost), options.concurrency)
    message = _stop_message(sent, len(prepared.calls))
    if message is not None and sent.budget_ended:
        typer.echo(message, err=True)
        message = None
    return sent.answered, message


def _limits(options: RunOptions, cost: "ReplayCost") -> "RunLimits":
    from auditor.probes.run import RunLimits

    usd = 2 * sum(call_cost.usd or 0.0 for call_cost in cost.calls) or None
    return RunLimits(calls=options.budget_calls, usd=usd if options.budget_usd is None else options.budget_usd)


def _confirm() -> None:
    """Ask before anything is spent.

    Raises
    ------
    UsageError
        Standard input is no terminal.
    """
    if not sys.stdin.isatty():
        raise UsageError("nothing was sent and nothing was judged; add --yes to do it")
    typer.confirm("Continue?", abort=True, err=True)


def _print_cost(prepared: "PreparedReplay", cost: "ReplayCost") -> None:
    """Print on standard error what is left to do; standard output is for the result."""
    state = "continues" if prepared.resumed else "is new"
    typer.echo(
        f"replay {prepared.id} {state}: {len(prepared.parents):,} exchanges, {len(prepared.calls):,} calls", err=True
    )
    for call_cost in cost.calls:
        typer.echo(f"  {call_cost.calls:,} calls to {call_cost.deployment}: {_taking(call_cost)}", err=True)
    for call_cost in cost.judging:
        typer.echo(
            f"  up to {call_cost.calls:,} answers read by the judge at {call_cost.deployment}: {_taking(call_cost)}",
            err=True,
        )
    if prepared.left_out:
        typer.echo(f"  not asked again: {_reasons(prepared.left_out)}", err=True)
    for each, reasons in prepared.count_blocked().items():
        typer.echo(f"  not asked as {each.key}: {_reasons(reasons)}", err=True)
    if len(prepared.answered) == len(prepared.calls):
        typer.echo("  all calls are answered", err=True)


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason.replace('_', ' ')} {n:,}" for reason, n in counts.items())


def _taking(cost: "CallCost") -> str:
    tokens = f"about {cost.usage.prompt:,} + {cost.usage.completion:,} tokens"
    return f"{tokens}, {cost.usd:.2f} USD" if cost.usd is not None else f"{tokens}, no price declared"


def _stop_message(sent: "SendResult", planned: int) -> str | None:
    """Return how many calls are left after a stop, and why it stopped; ``None`` if nothing stopped it."""
    if not sent.stopped:
        return None
    whys = {*sent.stopped.values()}
    shown = [*whys] if len(whys) == 1 else [f"{name}: {why}" for name, why in sorted(sent.stopped.items())]
    missing = planned - len(sent.answered)
    return f"{missing:,} calls have no answer ({'; '.join(shown)}); run the same command again to continue"


@app.command("compare")
def compare_command(
    config: ConfigOption,
    select: Annotated[
        str,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Which client traffic, by deployment, route, from, to, last, tag.NAME; or 'all'.",
            show_default=False,
        ),
    ],
    by: Annotated[
        str,
        typer.Option(metavar="WHAT", help="What is compared: tag.NAME, route, model or system.", show_default=False),
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for comparison.json and comparison.html.")
    ] = Path("biasmeter-compare"),
    yes: Annotated[bool, typer.Option("--yes", help="Ask judges about answers that have not been read yet.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare stored client traffic in pairs, by tag, route, model or system prompt.

    A pair is two answers of one deployment to the same question. Nothing is sent to the deployments. With --yes, judges
    read answers that have not been read yet.

    Example: biasmeter compare --select route=desk,from=2026-03-01 --by tag.prompt

    Documentation: docs/replay.md
    """
    from auditor.config import load_without_upstream_keys
    from auditor.documents.output import check_folder
    from biasmeter.store_work import in_store
    from biasmeter.terminal.comparison_output import print_systems, write_comparison
    from replay.pairing import PairingSpec, compare_stored
    from replay.selection import client_selection
    from replay.traffic import read_grouping

    pairing = PairingSpec(selection=client_selection(select), by=read_grouping(by))
    check_folder(out)
    loaded = load_without_upstream_keys(config, os.environ)
    with counting("reading") as on_progress:
        document = in_store(
            loaded, lambda engine: compare_stored(engine, loaded, pairing, print_systems, on_progress, yes=yes)
        )
    write_comparison(document, out, as_json=as_json)
