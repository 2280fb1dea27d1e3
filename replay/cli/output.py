"""Print and write what the ``replay`` and ``compare`` commands produce: costs, edits, the comparison and its tables.

Costs go to standard error, the result to standard output.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import typer

from auditor.documents.base import Missing
from auditor.documents.codec import canonical_bytes, decode, json_object
from auditor.documents.comparison import ChangeEntry, ComparisonDocument, ComparisonGroupEntry
from auditor.documents.output import write_files
from auditor.domain.exchange import Origin
from auditor.errors import UsageError
from auditor.report.wording import DASH, estimate_text
from biasmeter.tables import table_lines
from replay.calls import block_reason, read_object, rewrite_own_request
from replay.comparison.pairs import ERROR
from replay.counterfactual import RefusedSwap
from replay.page.arms import side_names
from replay.page.pairs import PairRows, difference_parts, split_pairs
from replay.page.render import group_title, is_within_noise
from replay.plan import PreparedReplay
from replay.rewriting import RewrittenRequest
from replay.sending import CallCost, ReplayCost, SendResult

_SUMMARY: Final = ("replay", "parents", "calls", "left_out", "groups")


def print_cost(prepared: PreparedReplay, cost: ReplayCost) -> None:
    """Print on standard error what is left to do; standard output is for the result."""
    state = "continues" if prepared.resumed else "is new"
    typer.echo(
        f"replay {prepared.id} {state}: {len(prepared.parents):,} exchanges, {len(prepared.calls):,} calls", err=True
    )
    for one in cost.calls:
        typer.echo(f"  {one.calls:,} calls to {one.deployment}: {_taking(one)}", err=True)
    for one in cost.judging:
        typer.echo(f"  up to {one.calls:,} answers read by the judge at {one.deployment}: {_taking(one)}", err=True)
    if prepared.left_out:
        typer.echo(f"  not asked again: {_reasons(prepared.left_out)}", err=True)
    for each, reasons in prepared.count_blocked().items():
        typer.echo(f"  not asked as {each.key}: {_reasons(reasons)}", err=True)
    if len(prepared.answered) == len(prepared.calls):
        typer.echo("  all calls are answered", err=True)


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason.replace('_', ' ')} {n:,}" for reason, n in counts.items())


def _taking(cost: CallCost) -> str:
    tokens = f"about {cost.usage.prompt:,} + {cost.usage.completion:,} tokens"
    return f"{tokens}, {cost.usd:.2f} USD" if cost.usd is not None else f"{tokens}, no price declared"


def cost_json(prepared: PreparedReplay, cost: ReplayCost) -> dict[str, Any]:
    """Return the same as JSON values."""
    return {
        "replay": prepared.id,
        "resumed": prepared.resumed,
        "parents": len(prepared.parents),
        "calls": len(prepared.calls),
        "answered": len(prepared.answered),
        "left_out": dict(prepared.left_out),
        "not_asked": {each.key: reasons for each, reasons in prepared.count_blocked().items()},
        "to_send": [_cost_json(one) for one in cost.calls],
        "to_judge": [_cost_json(one) for one in cost.judging],
    }


def _cost_json(one: CallCost) -> dict[str, Any]:
    return {
        "deployment": one.deployment,
        "calls": one.calls,
        "prompt_tokens": one.usage.prompt,
        "completion_tokens": one.usage.completion,
        "usd": one.usd,
    }


def stop_message(sent: SendResult, planned: int) -> str | None:
    """Return how many calls are left after a stop, and why it stopped; ``None`` if nothing stopped it."""
    if not sent.stopped:
        return None
    whys = {*sent.stopped.values()}
    shown = [*whys] if len(whys) == 1 else [f"{name}: {why}" for name, why in sorted(sent.stopped.items())]
    missing = planned - len(sent.answered)
    return f"{missing:,} calls have no answer ({'; '.join(shown)}); run the same command again to continue"


def write_edits(prepared: PreparedReplay, path: Path) -> None:
    """Write one line for each client's request and swap: every edit, or why there is none.

    Parameters
    ----------
    prepared
        The replay; none of its calls needs to have been sent.
    path
        The file; it is overwritten. A line has ``parent``, ``format``, and ``edits`` (each with ``part``, the
        number of the text among those of the messages, ``start`` and ``end`` in its characters, ``old``, ``new``,
        ``rule``) or ``refused`` with ``what``, the words that prevent the swap.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    lines = (json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in _rows(prepared))
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def _rows(prepared: PreparedReplay) -> Iterator[dict[str, Any]]:
    swaps = [each for each in prepared.spec.formats if each.swap]
    clients = (parent for parent in prepared.parents.values() if parent.origin is Origin.CLIENT)
    for parent in clients:
        request = read_object(prepared.requests.get(parent.id))
        for each in swaps:
            outcome = rewrite_own_request(parent, each, request, prepared.context)
            row: dict[str, Any] = {"parent": str(parent.id), "format": each.key}
            if isinstance(outcome, RewrittenRequest):
                yield row | {"edits": [asdict(edit) for edit in outcome.edits]}
            else:
                yield row | {
                    "refused": block_reason(outcome),
                    "what": outcome.what if isinstance(outcome, RefusedSwap) else "",
                }


def write_comparison(document: ComparisonDocument, out: Path, *, as_json: bool) -> None:
    """Write the document and its page into a folder, and print its main numbers."""
    # Imported late: a run that only shows the cost needs neither the statistics nor the drawing library.
    from replay.page.render import render

    content = canonical_bytes(document)
    # Rendered from the content of the file, so that the page can be made again from the file.
    shown = decode(content, ComparisonDocument, "comparison.json")
    write_files(out, {"comparison.json": content, "comparison.html": render(shown)})
    paths = [str(out / "comparison.html"), str(out / "comparison.json")]
    if as_json:
        written = json_object(document)
        summary = {name: written[name] for name in _SUMMARY}
        typer.echo(json.dumps(summary | {"comparison": paths[1], "report": paths[0]}, indent=2, sort_keys=True))
        return
    for line in table(shown):
        typer.echo(line)
    typer.echo("\n".join(paths))


#: The measures of the table in the terminal. The page and the file contain all measures.
_HEADLINES: Final = {
    "ber_union_full": "union, all",
    "ber_sel_full": "selection, all",
    "ber_elab_full": "elaboration, all",
    "ir": "IR",
    "dni": "DNI",
}


def table(document: ComparisonDocument) -> Iterator[str]:
    """Return the main numbers as lines of text: the range of each score, then the differences from the first arm."""
    for group in document.groups:
        rubric = "" if group.rubric == "statement" else f" ({group.rubric})"
        yield f"{group_title(group)}{rubric}"
        yield from _indented(_exposure_lines(group))
        yield ""
        yield from _indented(_pair_lines(split_pairs(group)[0]))
        yield f"  * holds after adjusting for all {group.comparisons:,} comparisons of the group (comparison.json)"
        yield ""


def _exposure_lines(group: ComparisonGroupEntry) -> Iterator[tuple[str, ...]]:
    yield "score", "lowest", "at", "highest", "at", "range", ""
    names = side_names(group)
    for name, heading in _HEADLINES.items():
        found = group.exposure[name]
        if isinstance(found, Missing):
            yield heading, DASH, "", "", "", "", found.missing
            continue
        ends = [(estimate_text(name, end), names[end.side]) for end in (found.lowest, found.highest)]
        spread, noted = found.range, "not shown to be wider than repetition" if is_within_noise(found) else ""
        width = f"{100 * spread.value:.1f} pp [{100 * spread.low:.1f}, {100 * spread.high:.1f}]"
        yield heading, *ends[0], *ends[1], width, noted


def _pair_lines(own: PairRows) -> Iterator[tuple[str, ...]]:
    yield own.heading, "pairs", *_HEADLINES.values()
    for name, pair in own.named():
        yield name, f"{pair.n_pairs:,}", *(_difference(pair.metrics[measure]) for measure in _HEADLINES)


def _difference(entry: ChangeEntry | Missing) -> str:
    if isinstance(entry, Missing):
        return DASH
    return " ".join(difference_parts(entry)) + (" *" if entry.p_adjusted <= ERROR else "")


def _indented(rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    return (f"  {line}" for line in table_lines(rows))
