"""Write and print what ``biasmeter replay`` and ``compare`` found."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import typer

from auditor.documents.base import Missing
from auditor.documents.codec import canonical_bytes, decode, json_object
from auditor.documents.comparison import ChangeEntry, ComparisonDocument, ComparisonGroupEntry
from auditor.documents.output import write_files
from auditor.report.wording import DASH, estimate_text
from biasmeter.terminal.tables import table_lines
from replay.comparison.pairs import ERROR
from replay.page.arms import side_names
from replay.page.pairs import PairRows, difference_parts, split_pairs
from replay.page.render import group_title, is_within_noise
from replay.traffic import Traffic

#: Characters of a system prompt that are printed.
_PROMPT: Final = 60
_SUMMARY: Final = ("replay", "parents", "calls", "left_out", "groups")
#: The measures of the table in the terminal. The page and the file contain all measures.
_HEADLINES: Final = {
    "ber_union_full": "union, all",
    "ber_sel_full": "selection, all",
    "ber_elab_full": "elaboration, all",
    "ir": "IR",
    "dni": "DNI",
}


def print_systems(traffic: Traffic) -> None:
    """Print the system prompts with their digests on standard error, because files must not contain clients' words."""
    for side, words in sorted(traffic.systems.items()):
        shown = " ".join(words.split())
        typer.echo(f"{side}: {shown[:_PROMPT]}{'...' if len(shown) > _PROMPT else ''}", err=True)


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
        exposure = group.exposure[name]
        if isinstance(exposure, Missing):
            yield heading, DASH, "", "", "", "", exposure.missing
            continue
        ends = [(estimate_text(name, end), names[end.side]) for end in (exposure.lowest, exposure.highest)]
        spread, noted = exposure.range, "not shown to be wider than repetition" if is_within_noise(exposure) else ""
        width = f"{100 * spread.value:.1f} pp [{100 * spread.low:.1f}, {100 * spread.high:.1f}]"
        yield heading, *ends[0], *ends[1], width, noted


def _pair_lines(pairs: PairRows) -> Iterator[tuple[str, ...]]:
    yield pairs.heading, "pairs", *_HEADLINES.values()
    for name, pair in pairs.named():
        yield name, f"{pair.n_pairs:,}", *(_difference(pair.metrics[measure]) for measure in _HEADLINES)


def _difference(entry: ChangeEntry | Missing) -> str:
    if isinstance(entry, Missing):
        return DASH
    return " ".join(difference_parts(entry)) + (" *" if entry.p_adjusted <= ERROR else "")


def _indented(rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    return (f"  {line}" for line in table_lines(rows))
