"""``tiltmeter compare``: stored traffic whose formats are there already, compared in pairs. No call is sent."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.options import ConfigOption, JsonOption
from auditor.cli.progress import counting

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.analysis.document import Json
    from auditor.config import Config
    from replay.pairing import Pairing
    from replay.selecting import Selection
    from replay.traffic import Traffic

#: Characters of a system prompt that are told on the terminal.
_TOLD = 60


def register(app: typer.Typer) -> None:
    """Add this module's command to ``app``."""
    app.command("compare")(compare_command)


def compare_command(
    config: ConfigOption,
    select: Annotated[
        str,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Which client traffic: deployment, route, from, to, tag.NAME; or 'all'.",
            show_default=False,
        ),
    ],
    by: Annotated[
        str,
        typer.Option(
            metavar="WHAT", help="What tells the sides apart: tag.NAME, route, model or system.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the comparison.")] = Path(
        "tiltmeter-compare"
    ),
    yes: Annotated[bool, typer.Option("--yes", help="Let judges read what is not read yet.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare stored client traffic with itself: the same questions, asked in ways that it has already.

    Answers to the same question of the same deployment are paired over the values of a tag, routes, models or system
    prompts. Nothing is asked again; judges are asked about answers that nobody has read yet, with --yes.
    """
    from auditor.analysis.output import check_folder
    from auditor.cli.audit_store import in_store
    from auditor.config import load
    from replay.outcome import write_outcome
    from replay.pairing import Pairing
    from replay.traffic import read_by

    pairing = Pairing(selection=_selection(select), by=read_by(by))
    check_folder(out)
    loaded = load(config, os.environ)
    with counting("reading") as on_progress:
        document = in_store(loaded, lambda engine: _compare(engine, loaded, pairing, on_progress, yes=yes))
    write_outcome(document, out, as_json=as_json)


def _selection(text: str) -> "Selection":
    """Read a selection of client traffic, all that fits it: a draw would part the pairs."""
    from dataclasses import replace

    from auditor.domain.exchange import Origin
    from auditor.errors import UsageError
    from replay.selecting import read_selection

    selection = read_selection(text)
    if selection.origins == (Origin.PROBE,):
        raise UsageError("--select: compare is of client traffic; what probes are asked in is in the report")
    if selection.limit is not None:
        raise UsageError("--select: compare takes all that fits; a limit would part the pairs")
    return replace(selection, origin=Origin.CLIENT)


async def _compare(
    engine: "AsyncEngine", config: "Config", pairing: "Pairing", on_progress: Callable[[int, int], None], *, yes: bool
) -> "Mapping[str, Json]":
    from auditor.errors import InputError, UsageError
    from auditor.jobs.work import open_work, utc_now
    from replay.outcome import keep_outcome
    from replay.pairing import compare_traffic, count_unread, find_traffic

    async with open_work(engine, config, utc_now) as work:
        traffic = await find_traffic(work, pairing)
        _tell(traffic)
        unread = await count_unread(work, traffic)
        if unread and not yes:
            raise UsageError(f"judges would have to read {unread:,} answers; --yes lets them")
        document = await compare_traffic(work, pairing, traffic, on_progress)
        if not document["groups"]:
            raise InputError(f"--by {pairing.by}: no question was answered on two sides ({_reasons(document)})")
        await keep_outcome(engine, document, work.clock())
    return document


def _tell(traffic: "Traffic") -> None:
    """Say which system prompt is which, to who runs the command: no file has clients' words."""
    for side, words in sorted(traffic.systems.items()):
        shown = " ".join(words.split())
        typer.echo(f"{side}: {shown[:_TOLD]}{'...' if len(shown) > _TOLD else ''}", err=True)


def _reasons(document: "Mapping[str, Json]") -> str:
    left_out = document["left_out"]
    assert isinstance(left_out, Mapping)
    return ", ".join(f"{reason.replace('_', ' ')} {n}" for reason, n in left_out.items()) or "no exchange fits"
