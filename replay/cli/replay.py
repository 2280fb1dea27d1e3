"""``biasmeter replay``: ask stored exchanges again in other formats, and compare the answers in pairs."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import typer

from auditor.errors import AuditError, UsageError
from biasmeter.options import ActorsOption, ConfigOption, EngineOption, JsonOption, RayAddressOption
from biasmeter.progress import bars, resumable

if TYPE_CHECKING:
    from auditor.bulk.engines import BulkEngine
    from auditor.config import Config
    from auditor.probes.run import RunLimits
    from auditor.work import Work
    from replay.plan import PreparedReplay, ReplaySpec
    from replay.progress import OnProgress
    from replay.sending import ReplayCost

app = typer.Typer()

_USUAL: Final = "CTO,SC"


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
    from auditor.config import load
    from auditor.documents.output import check_folder
    from auditor.postgres.embedded import open_store

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
    loaded = load(config, os.environ)
    chosen.check(loaded)
    with resumable(), open_store(loaded.data_dir, loaded.database_url(os.environ)) as url:
        message = asyncio.run(_in_store(loaded, url, spec, options))
    if message is not None:
        raise AuditError(message)


def read_spec(
    select: str, formats: str | None, swaps: Sequence[str], lexicon: Path | None, to: str | None, name: str
) -> "ReplaySpec":
    """Read what is asked again, and how.

    Raises
    ------
    UsageError
        An option cannot be read.
    """
    from replay.counterfactual.lexicon import read_lexicon
    from replay.counterfactual.swap import read_swap
    from replay.formats import read_formats
    from replay.plan import ReplaySpec
    from replay.selection import read_selection

    if lexicon is not None and not swaps:
        raise UsageError("--lexicon needs --swap")
    words = read_lexicon(*([lexicon] if lexicon is not None else [])) if swaps else None
    written = [str(read_swap(swap, words)) for swap in swaps] if words is not None else []
    listed = formats if formats is not None else ("" if swaps else _USUAL)
    return ReplaySpec(
        selection=read_selection(select), formats=read_formats(listed, written), lexicon=words, to=to, name=name.strip()
    )


def _check_edits(spec: "ReplaySpec", options: RunOptions) -> None:
    if options.show_edits is None:
        return
    if spec.lexicon is None:
        raise UsageError("--show-edits needs --swap")
    if options.yes:
        raise UsageError("--show-edits sends nothing: leave out --yes")
    if not options.show_edits.parent.is_dir():
        raise UsageError(f"--show-edits: the folder {options.show_edits.parent} does not exist")


async def _in_store(config: "Config", database_url: str, spec: "ReplaySpec", options: RunOptions) -> str | None:
    """Prepare and run the replay; return why sending stopped, unless the budget was reached."""
    from auditor.store.engine import make_engine
    from auditor.store.schema import check_version
    from auditor.work import open_work, utc_now
    from replay.cli.output import write_edits
    from replay.plan import prepare

    engine = make_engine(database_url)
    try:
        await check_version(engine)
        async with open_work(engine, config, utc_now) as work:
            with bars() as on_progress:
                prepared = await prepare(work, spec, on_progress)
            if options.show_edits is not None:
                write_edits(prepared, options.show_edits)
                typer.echo(options.show_edits)
                return None
            return await _replay(work, prepared, options)
    finally:
        await engine.dispose()


async def _replay(work: "Work", prepared: "PreparedReplay", options: RunOptions) -> str | None:
    from replay.cli.output import cost_json, print_cost, write_comparison
    from replay.sending import estimate_cost

    cost = await estimate_cost(work, prepared)
    print_cost(prepared, cost)
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
    from replay.cli.output import stop_message
    from replay.plan import store_plan
    from replay.sending import send

    if len(prepared.answered) == len(prepared.calls):
        return prepared.answered, None
    access = gateway_access(work.config)
    if not prepared.resumed:
        await store_plan(work, prepared)
    sent = await send(work, prepared, access, on_progress, _limits(options, cost), options.concurrency)
    message = stop_message(sent, len(prepared.calls))
    if message is not None and sent.budget_ended:
        typer.echo(message, err=True)
        message = None
    return sent.answered, message


def _limits(options: RunOptions, cost: "ReplayCost") -> "RunLimits":
    from auditor.probes.run import RunLimits

    usd = 2 * sum(one.usd or 0.0 for one in cost.calls) or None
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
