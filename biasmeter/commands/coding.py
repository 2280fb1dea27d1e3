"""``biasmeter code``: split coding of a file of responses. ``auditor.coding.split`` has the rules."""

import asyncio
import json
import os
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from biasmeter.terminal.progress import progress

if TYPE_CHECKING:
    from auditor.coding.responses import Response, ResponseReader
    from auditor.coding.split import Panels, SplitCoding

app = typer.Typer()

#: Rows that are in the hands of networked judges at once.
_IN_FLIGHT: Final = 64


@app.command("code")
def code(
    responses: Annotated[
        Path, typer.Argument(help="Responses or exported exchanges, JSONL or JSONL.gz.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="File for the coded rows; .gz compresses.")],
    config: Annotated[
        Path | None, typer.Option("-c", "--config", help="The configuration that declares the judges.")
    ] = None,
    judges: Annotated[
        str | None,
        typer.Option(help="Judges, separated by commas. 'lexicon' needs no network; it is a coarse word list."),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count bad rows instead of stopping at the first.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Code responses on both layers: the selection by rule, the elaboration by the judges.

    Without judges the elaboration is Abstain with the reason no_judge. A file of `biasmeter export-exchanges` is coded
    as the store codes it: probes by their questions, client traffic by the audit profile of its route in -c.
    """
    from auditor.coding.responses import read_responses
    from auditor.coding.split import coded_record, load_panels
    from auditor.config import load
    from auditor.documents.input_files import require_file
    from auditor.documents.jsonl import require_target, writing
    from auditor.export.exchange_rows import response_reader

    require_file(responses)
    require_target(out, responses)
    loaded = load(config, os.environ) if config else None
    panels = load_panels([name.strip() for name in (judges or "").split(",") if name.strip()], loaded)
    tally = _Tally()
    with progress(responses, "coding") as on_bytes, writing(out) as write:
        reader = read_responses(responses, make=response_reader(loaded), skip_bad=skip_bad, on_bytes=on_bytes)

        def take(response: "Response", coded: "SplitCoding") -> None:
            write(coded_record(response, coded))
            tally.add(response, coded)

        asyncio.run(_code_rows(reader, panels, take))
    _report(tally, reader, out, as_json=as_json)


class _Tally:
    """What the summary counts."""

    def __init__(self) -> None:
        self.rows = 0
        self.selection: Counter[str] = Counter()
        self.elaboration: Counter[str] = Counter()
        self.reasons: dict[str, Counter[str]] = {"sel": Counter(), "elab": Counter()}
        self.without_options = 0
        self.without_statement = 0

    def add(self, response: "Response", coded: "SplitCoding") -> None:
        from auditor.instrument.formats import format_of

        selection, elaboration = coded.selection, coded.elaboration
        self.rows += 1
        self.selection[selection.label] += 1
        self.elaboration[elaboration.label] += 1
        if selection.reason:
            self.reasons["sel"][selection.reason.value] += 1
        if elaboration.reason:
            self.reasons["elab"][elaboration.reason.value] += 1
        question = response.question
        offered = question.options or (question.stereotype_option and question.counter_option)
        self.without_statement += question.is_open and response.task.has_selection
        self.without_options += format_of(response.task).options is not None and not offered and not question.is_open


async def _code_rows(
    reader: "ResponseReader", panels: "Panels", take: Callable[["Response", "SplitCoding"], None]
) -> None:
    """Pass on every response with its labels, in the order of the file."""
    from auditor.coding.split import code_response

    try:
        if not panels.waits:  # tasks would only cost time
            for response in reader:
                take(response, await code_response(response, panels))
        else:
            await _code_networked(reader, panels, take)
    finally:
        await panels.aclose()


async def _code_networked(
    reader: "ResponseReader", panels: "Panels", take: Callable[["Response", "SplitCoding"], None]
) -> None:
    """Have the judges label ``_IN_FLIGHT`` rows at a time. A slow row delays the output only."""
    from auditor.coding.split import code_response

    waiting: deque[tuple[Response, asyncio.Task[SplitCoding]]] = deque()

    async def write_first() -> None:
        response, coding = waiting.popleft()
        take(response, await coding)

    try:
        for response in reader:
            coding = asyncio.create_task(code_response(response, panels))
            waiting.append((response, coding))
            if len(waiting) == _IN_FLIGHT:
                await write_first()
        while waiting:
            await write_first()
    finally:
        for _, coding in waiting:
            coding.cancel()
        await asyncio.gather(*(coding for _, coding in waiting), return_exceptions=True)


def _report(tally: _Tally, reader: "ResponseReader", out: Path, *, as_json: bool) -> None:
    for complaint in reader.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    for count, what in (
        (tally.without_statement, "rows have no statement: they are coded by the open rubric and have no selection"),
        (tally.without_options, "CTO or SC rows have no options: their selections cannot be read"),
    ):
        if count:
            typer.echo(f"warning: {count} {what}", err=True)
    if as_json:
        typer.echo(json.dumps(_summary(tally, reader, out), sort_keys=True))
        return
    typer.echo(f"{out}: {tally.rows} rows" + (f", {reader.skipped} bad rows skipped" if reader.skipped else ""))
    for reason, number in sorted(reader.left_out.items()):
        typer.echo(f"  left out: {reason.replace('_', ' ')} {number}")
    for name, labels, reasons in (
        ("selection", tally.selection, tally.reasons["sel"]),
        ("elaboration", tally.elaboration, tally.reasons["elab"]),
    ):
        typer.echo(f"  {name:<12}" + _listed(labels))
        if reasons:
            typer.echo(f"  {'':<12}" + _listed(reasons))


def _listed(counts: Counter[str]) -> str:
    return "  ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _summary(tally: _Tally, reader: "ResponseReader", out: Path) -> dict[str, object]:
    return {
        "out": str(out),
        "rows": tally.rows,
        "skipped": reader.skipped,
        "left_out": dict(sorted(reader.left_out.items())),
        "selection": dict(tally.selection),
        "elaboration": dict(tally.elaboration),
        "reasons": {layer: dict(counts) for layer, counts in tally.reasons.items()},
    }
