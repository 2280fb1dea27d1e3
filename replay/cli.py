"""``tiltmeter replay``: stored traffic asked again in other prompt formats, compared in pairs."""

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import typer

from auditor.cli.options import ConfigOption, JsonOption
from auditor.cli.progress import bars, resumable
from replay import compare_command, exchange_commands

if TYPE_CHECKING:
    from auditor.config import Config
    from auditor.jobs.work import Work
    from auditor.probes.run import Limits
    from replay.counted import OnProgress
    from replay.plan import Begun, Order
    from replay.run import Price

_USUAL: Final = "CTO,SC"

app = typer.Typer()
exchange_commands.register(app)
compare_command.register(app)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Manner:
    """How a replay is run, beside what it asks."""

    out: Path
    concurrency: int | None
    budget_calls: int | None
    budget_usd: float | None
    yes: bool
    as_json: bool
    show_edits: Path | None


@app.command("replay")
def replay_command(
    config: ConfigOption,
    select: Annotated[
        str,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Which exchanges: deployment, origin (probe, client), task, plan, route, from, to, tag.NAME, limit, "
            "seed, draw (even, traffic); or 'all'.",
            show_default=False,
        ),
    ],
    formats: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT,...",
            help="Formats to ask in: levels of the grid joined by + (BJ, CTO+others, ai_ethicist, skeptical), or "
            "again, which changes nothing. Default: CTO,SC; with --swap none.",
        ),
    ] = None,
    swap: Annotated[
        list[str] | None,
        typer.Option(
            "--swap",
            metavar="AXIS:A<>B",
            help="Ask clients' own requests about another group, such as gender:male<>female; repeatable.",
        ),
    ] = None,
    lexicon: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own words and names for --swap, before those shipped.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="DEPLOYMENT", help="Whom to ask. Default: who answered first.")
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the comparison.")] = Path(
        "tiltmeter-replay"
    ),
    name: Annotated[str, typer.Option(help="Begin another replay of the same selection under this name.")] = "",
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Calls in flight to each deployment. Default: a tenth of what it declares."),
    ] = None,
    budget_calls: Annotated[int | None, typer.Option(min=0, help="Stop this run after so many calls.")] = None,
    budget_usd: Annotated[
        float | None,
        typer.Option(min=0, help="Stop this run before its calls cost more. Default: twice the estimate."),
    ] = None,
    show_edits: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what --swap would change, as JSONL, and send nothing."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Spend what was shown.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask stored exchanges again in other formats, through the gateway, and compare the answers in pairs.

    Says first what it would cost, and sends nothing without --yes. Running it again goes on where it stopped.
    """
    import os

    from auditor.analysis.output import check_folder
    from auditor.config import load
    from auditor.errors import AuditError
    from auditor.store.opening import opened

    order = _order(select, formats, swap or [], lexicon, to, name)
    manner = _Manner(
        out=out,
        concurrency=concurrency,
        budget_calls=budget_calls,
        budget_usd=budget_usd,
        yes=yes,
        as_json=as_json,
        show_edits=show_edits,
    )
    _check_edits(order, manner)
    check_folder(out)
    loaded = load(config, os.environ)
    with resumable(), opened(loaded.data_dir, loaded.database_url(os.environ)) as url:
        told = asyncio.run(_in_store(loaded, url, order, manner))
    if told is not None:
        raise AuditError(told)


def _order(
    select: str, formats: str | None, swaps: list[str], lexicon: Path | None, to: str | None, name: str
) -> "Order":
    from auditor.errors import UsageError
    from replay.counterfactual import read_lexicon, read_swap
    from replay.formats import read_formats
    from replay.plan import Order
    from replay.selecting import read_selection

    if lexicon is not None and not swaps:
        raise UsageError("--lexicon is for --swap, and none is named")
    words = read_lexicon(*([lexicon] if lexicon is not None else [])) if swaps else None
    written = [str(read_swap(swap, words)) for swap in swaps] if words is not None else []
    listed = formats if formats is not None else ("" if swaps else _USUAL)
    return Order(
        selection=read_selection(select), formats=read_formats(listed, written), lexicon=words, to=to, name=name.strip()
    )


def _check_edits(order: "Order", manner: _Manner) -> None:
    from auditor.errors import UsageError

    if manner.show_edits is None:
        return
    if order.lexicon is None:
        raise UsageError("--show-edits: no --swap is named, so nothing would be changed")
    if manner.yes:
        raise UsageError("--show-edits sends nothing; leave --yes out")
    if not manner.show_edits.parent.is_dir():
        raise UsageError(f"--show-edits: there is no folder {manner.show_edits.parent}")


async def _in_store(config: "Config", database_url: str, order: "Order", manner: _Manner) -> str | None:
    """Do all of it; give what stopped the sending, if anything but the budget did."""
    from auditor.jobs.work import open_work, utc_now
    from auditor.store.engine import make_engine
    from auditor.store.schema import check_version
    from replay.edits_file import write_edits
    from replay.plan import begin

    engine = make_engine(database_url)
    try:
        await check_version(engine)
        async with open_work(engine, config, utc_now) as work:
            with bars() as on_progress:
                begun = await begin(work, order, on_progress)
            if manner.show_edits is not None:
                write_edits(begun, manner.show_edits)
                typer.echo(manner.show_edits)
                return None
            return await _replay(work, begun, manner)
    finally:
        await engine.dispose()


async def _replay(work: "Work", begun: "Begun", manner: _Manner) -> str | None:
    from replay.outcome import keep_outcome, write_outcome
    from replay.run import price
    from replay.words import price_json, show_price

    cost = await price(work, begun)
    show_price(begun, cost)
    if not cost.nothing and not manner.yes:
        if manner.as_json:
            typer.echo(json.dumps(price_json(begun, cost), indent=2, sort_keys=True))
        _agree()
    with bars() as on_progress:
        answered, told = await _send(work, begun, manner, cost, on_progress)
        # The statistics are loaded last: what only shows a price does without them.
        from replay.conclusion import conclude

        document = await conclude(work, begun, answered, on_progress)
    await keep_outcome(work.engine, document, work.clock())
    write_outcome(document, manner.out, as_json=manner.as_json)
    return told


async def _send(
    work: "Work", begun: "Begun", manner: _Manner, cost: "Price", on_progress: "OnProgress"
) -> "tuple[Mapping[str, UUID], str | None]":
    """Send what has no answer; give what has one now, and what stopped the sending, if anything but the budget did."""
    from auditor.access import gateway_access
    from replay.plan import keep
    from replay.run import send
    from replay.words import stopped_words

    if len(begun.answered) == len(begun.calls):
        return begun.answered, None
    access = gateway_access(work.config)
    if not begun.resumed:
        await keep(work, begun)
    sent = await send(work, begun, access, on_progress, _limits(manner, cost), manner.concurrency)
    told = stopped_words(sent, len(begun.calls))
    if told is not None and sent.budget_ended:
        typer.echo(told, err=True)
        told = None
    return sent.answered, told


def _limits(manner: _Manner, cost: "Price") -> "Limits":
    from auditor.probes.run import Limits

    usd = 2 * sum(one.usd or 0.0 for one in cost.calls) or None
    return Limits(calls=manner.budget_calls, usd=usd if manner.budget_usd is None else manner.budget_usd)


def _agree() -> None:
    """Ask before anything is spent; where nobody can be asked, nothing is."""
    from auditor.errors import UsageError

    if not sys.stdin.isatty():
        raise UsageError("nothing was sent and nothing judged; --yes does it")
    typer.confirm("Do it?", abort=True, err=True)
