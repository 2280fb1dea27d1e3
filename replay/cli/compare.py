"""``biasmeter compare``: compare stored traffic in pairs, without sending anything."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.domain.exchange import Origin
from auditor.errors import InputError, UsageError
from biasmeter.options import ConfigOption, JsonOption
from biasmeter.progress import counting

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.config import Config
    from auditor.documents.comparison import ComparisonDocument
    from replay.pairing import PairingSpec
    from replay.selection import ExchangeSelection
    from replay.traffic import Traffic

app = typer.Typer()

#: Characters of a system prompt that are printed.
_TOLD = 60


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
    from auditor.cli.store import in_store
    from auditor.config import load
    from auditor.documents.output import check_folder
    from replay.cli.output import write_comparison
    from replay.pairing import PairingSpec
    from replay.traffic import read_grouping

    pairing = PairingSpec(selection=client_selection(select), by=read_grouping(by))
    check_folder(out)
    loaded = load(config, os.environ)
    with counting("reading") as on_progress:
        document = in_store(loaded, lambda engine: compare_stored(engine, loaded, pairing, on_progress, yes=yes))
    write_comparison(document, out, as_json=as_json)


def client_selection(text: str) -> "ExchangeSelection":
    """Read a selection of client traffic without a limit: a draw would separate the pairs.

    Raises
    ------
    UsageError
        It cannot be read, selects probes, or has a limit.
    """
    from dataclasses import replace

    from replay.selection import read_selection

    selection = read_selection(text)
    if selection.origins == (Origin.PROBE,):
        raise UsageError("--select: compare reads client traffic only; the report compares the formats of probes")
    if selection.limit is not None:
        raise UsageError("--select: compare allows no limit, because a draw would separate the pairs")
    return replace(selection, origin=Origin.CLIENT)


async def compare_stored(
    engine: "AsyncEngine",
    config: "Config",
    pairing: "PairingSpec",
    on_progress: Callable[[int, int], None],
    *,
    yes: bool,
) -> "ComparisonDocument":
    """Compare stored traffic, and store the exposures that were found.

    Raises
    ------
    UsageError
        Judges would have to read answers, and ``yes`` does not allow it.
    InputError
        No question was answered on two sides.
    """
    from auditor.work import open_work, utc_now
    from replay.pairing import compare_traffic, count_unread, find_traffic
    from replay.results import store_exposures

    async with open_work(engine, config, utc_now) as work:
        traffic = await find_traffic(work, pairing)
        _tell(traffic)
        unread = await count_unread(work, traffic)
        if unread and not yes:
            raise UsageError(f"judges would have to read {unread:,} answers; add --yes to allow it")
        document = await compare_traffic(work, pairing, traffic, on_progress)
        if not document.groups:
            raise InputError(f"--by {pairing.by}: no question was answered on two sides ({_reasons(document)})")
        await store_exposures(engine, document, work.clock())
    return document


def _tell(traffic: "Traffic") -> None:
    """Print the system prompts with their digests on standard error, because files must not contain clients' words."""
    for side, words in sorted(traffic.systems.items()):
        shown = " ".join(words.split())
        typer.echo(f"{side}: {shown[:_TOLD]}{'...' if len(shown) > _TOLD else ''}", err=True)


def _reasons(document: "ComparisonDocument") -> str:
    return ", ".join(f"{reason.replace('_', ' ')} {n}" for reason, n in document.left_out.items()) or "no exchange fits"
