"""``tiltmeter replay``: stored traffic asked again in other prompt formats, compared in pairs."""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.cli.options import ConfigOption, JsonOption
from replay import exchange_commands

if TYPE_CHECKING:
    from auditor.config import Config
    from replay.run import Begun, OnProgress, Order, Price

app = typer.Typer()
exchange_commands.register(app)


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
        str, typer.Option(metavar="TASK,...", help="Formats to ask in: BJ, SC, CTO, Explain, Judge, Rate.")
    ] = "CTO,SC",
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the comparison.")] = Path(
        "tiltmeter-replay"
    ),
    name: Annotated[str, typer.Option(help="Begin another replay of the same selection under this name.")] = "",
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
    from replay.run import Order
    from replay.selecting import read_selection

    order = Order(selection=read_selection(select), formats=_formats(formats), name=name.strip())
    check_folder(out)
    loaded = load(config, os.environ)
    with opened(loaded.data_dir, loaded.database_url(os.environ)) as url, _progress() as on_progress:
        told = asyncio.run(_replay(loaded, url, order, out, yes=yes, as_json=as_json, on_progress=on_progress))
    if told is not None:
        raise AuditError(told)


def _formats(listed: str) -> "tuple[Any, ...]":
    from auditor.domain.condition import Task
    from auditor.errors import UsageError
    from replay.selecting import read_task

    given = [read_task("--formats", one.strip()) for one in listed.split(",") if one.strip()]
    if not given:
        raise UsageError(f"--formats names none; there are {', '.join(Task)}")
    if len(set(given)) < len(given):
        raise UsageError(f"--formats {listed}: a format is named twice")
    # In one order, so that the same formats are the same replay.
    return tuple(task for task in Task if task in given)


async def _replay(
    config: "Config",
    database_url: str,
    order: "Order",
    out: Path,
    *,
    yes: bool,
    as_json: bool,
    on_progress: "OnProgress",
) -> str | None:
    """Do all of it; give what stopped the sending, if anything did."""
    from auditor.access import gateway_access
    from auditor.jobs.work import open_work, utc_now
    from auditor.store.engine import make_engine
    from auditor.store.schema import check_version
    from replay.run import begin, conclude, keep, price, send

    engine = make_engine(database_url)
    try:
        await check_version(engine)
        async with open_work(engine, config, utc_now) as work:
            begun = await begin(work, order)
            cost = await price(work, begun)
            _show_price(begun, cost)
            if not cost.nothing and not yes:
                if as_json:
                    typer.echo(json.dumps(_price_json(begun, cost), indent=2, sort_keys=True))
                _agree()
            answered, told = begun.answered, None
            if len(answered) < len(begun.calls):
                access = gateway_access(config)
                if not begun.resumed:
                    await keep(work, begun)
                sent = await send(work, begun, access, on_progress)
                answered, told = sent.answered, _stopped(sent.stopped, len(begun.calls) - len(sent.answered))
            document = await conclude(work, begun, answered, on_progress)
    finally:
        await engine.dispose()
    _write(document, out, as_json=as_json)
    return told


def _agree() -> None:
    """Ask before anything is spent; where nobody can be asked, nothing is."""
    from auditor.errors import UsageError

    if not sys.stdin.isatty():
        raise UsageError("nothing was sent and nothing judged; --yes does it")
    typer.confirm("Do it?", abort=True, err=True)


def _stopped(stopped: Mapping[str, str], missing: int) -> str | None:
    if not stopped:
        return None
    reasons = "; ".join(f"{deployment}: {why}" for deployment, why in sorted(stopped.items()))
    return f"{missing} calls have no answer ({reasons}); run the same command again to go on"


def _show_price(begun: "Begun", cost: "Price") -> None:
    """Tell on standard error what is left to be done; standard output is for the result."""
    again = "goes on" if begun.resumed else "is new"
    typer.echo(f"replay {begun.id} {again}: {len(begun.parents):,} exchanges, {len(begun.calls):,} calls", err=True)
    for one in cost.calls:
        typer.echo(f"  {one.calls:,} calls to {one.deployment}: {_taking(one)}", err=True)
    for one in cost.judging:
        typer.echo(f"  up to {one.calls:,} answers read by the judge at {one.deployment}: {_taking(one)}", err=True)
    if begun.left_out:
        reasons = ", ".join(f"{reason.replace('_', ' ')} {n:,}" for reason, n in begun.left_out.items())
        typer.echo(f"  not asked again: {reasons}", err=True)
    if len(begun.answered) == len(begun.calls):
        typer.echo("  all of it is answered", err=True)


def _taking(cost: Any) -> str:
    tokens = f"about {cost.usage.prompt:,} + {cost.usage.completion:,} tokens"
    return f"{tokens}, {cost.usd:.2f} USD" if cost.usd is not None else f"{tokens}, no price declared"


def _price_json(begun: "Begun", cost: "Price") -> dict[str, Any]:
    def rows(costs: Any) -> list[dict[str, Any]]:
        return [
            {
                "deployment": one.deployment,
                "calls": one.calls,
                "prompt_tokens": one.usage.prompt,
                "completion_tokens": one.usage.completion,
                "usd": one.usd,
            }
            for one in costs
        ]

    return {
        "replay": begun.id,
        "resumed": begun.resumed,
        "parents": len(begun.parents),
        "calls": len(begun.calls),
        "answered": len(begun.answered),
        "left_out": dict(begun.left_out),
        "to_send": rows(cost.calls),
        "to_judge": rows(cost.judging),
    }


def _write(document: Mapping[str, Any], out: Path, *, as_json: bool) -> None:
    from auditor.analysis.document import canonical_bytes
    from auditor.analysis.output import write_files
    from replay.page import render, table

    content = canonical_bytes(dict(document))
    # The page is made from what the file says, so that it can be made again from the file alone.
    shown = json.loads(content)
    write_files(out, {"comparison.json": content, "comparison.html": render(shown)})
    paths = [str(out / "comparison.html"), str(out / "comparison.json")]
    if as_json:
        summary = {name: shown[name] for name in ("replay", "parents", "calls", "left_out", "groups")}
        typer.echo(json.dumps(summary | {"comparison": paths[1], "report": paths[0]}, indent=2, sort_keys=True))
        return
    for line in table(shown):
        typer.echo(line)
    typer.echo("\n".join(paths))


@contextmanager
def _progress() -> "Iterator[OnProgress]":
    """Give a function that moves a bar on a terminal's standard error; elsewhere it does nothing."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def on_progress(what: str, done: int, total: int) -> None:
            task = tasks.setdefault(what, None)
            if task is None:
                task = tasks[what] = bar.add_task(what, total=total)
            bar.update(task, completed=done, total=total)

        yield on_progress
