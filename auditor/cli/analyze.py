"""``tiltmeter analyze``: offline estimates of a coded file, as ``analysis.json`` and ``report.html``."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from auditor.cli.progress import progress

if TYPE_CHECKING:
    from auditor.analysis.run import Options

_HEADLINES: Final = ("ber_union_full", "ir", "dni")
_CORRECTED: Final = "ber_elab_full_corrected"
_COLUMNS: Final = ("deployment", "responses", "both layers", "BER union, all [95 %]", "IR", "DNI", "flags")


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    app.command("analyze")(analyze)


def analyze(
    coded: Annotated[Path, typer.Argument(metavar="CODED.jsonl", help="Coded rows, .gz or not.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the results.")],
    by: Annotated[str, typer.Option(metavar="FIELD,...", help="Fields of the rows to group by.")] = "deployment,task",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    n_boot: Annotated[int, typer.Option(min=20, max=100_000, help="Replicates, for ranges and ranks.")] = 2000,
    reviews: Annotated[
        Path | None, typer.Option(metavar="FILE", help="People's labels of some rows: BER_elab is corrected by them.")
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave bad lines out, and count them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
) -> None:
    """Estimate bias on two axes from coded responses: analysis.json and report.html in the folder -o.

    The same rows, options and seed give the same bytes, in whatever order the rows stand.
    """
    from auditor.analysis.document import canonical_bytes
    from auditor.analysis.output import check_folder, write_files
    from auditor.analysis.reviews import read_reviews
    from auditor.analysis.run import Options, analyse, read_tallies
    from auditor.report.render import render

    options = Options(by=fields(by), seed=seed, n_boot=n_boot, skip_bad=skip_bad)
    check_folder(out)
    labels = None if reviews is None else read_reviews(reviews)
    with progress(coded, "reading") as on_bytes:
        tallies = read_tallies(coded, options, on_bytes, labels)
    if labels is not None and tallies.reviewed is not None:
        _check_found(reviews, len(labels), len(tallies.reviewed))
    for complaint in tallies.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    content = canonical_bytes(analyse(tallies, options))
    # The report is made from what the file says, so that it can be made again from the file alone.
    document = json.loads(content)
    write_files(out, {"analysis.json": content, "report.html": render(document)})
    if as_json:
        typer.echo(json.dumps(_summary(document, out), indent=2, sort_keys=True))
    else:
        _print_summary(document, out, options)


def _check_found(reviews: Path | None, labelled: int, found: int) -> None:
    """Say how many labels are of no row; none that is would be a mistake."""
    from auditor.errors import UsageError

    if labelled and not found:
        raise UsageError(f"{reviews}: none of its {labelled} ids is a row's")
    if found < labelled:
        typer.echo(f"warning: {reviews}: {labelled - found} of {labelled} ids are no row's", err=True)


def fields(by: str) -> tuple[str, ...]:
    """Read the names of ``--by``."""
    from auditor.errors import UsageError

    names = tuple(name.strip() for name in by.split(",")) if by.strip() else ()
    if "" in names:
        raise UsageError(f"--by {by!r}: an empty field name")
    if len(set(names)) < len(names):
        raise UsageError(f"--by {by}: a field is named twice")
    return names


def _summary(document: Mapping[str, Any], out: Path) -> dict[str, Any]:
    rows = [
        {
            "deployment": entry["by"]["deployment"],
            "rubric": entry["rubric"],
            "n": entry["n"],
            "coverage": entry["coverage"],
            "cancellation_trap": entry["cancellation_trap"],
            "flags": entry["flags"],
        }
        | {name: entry["metrics"][name] for name in (*_HEADLINES, _CORRECTED) if name in entry["metrics"]}
        for entry in document["deployments"]
    ]
    return {
        "analysis": str(out / "analysis.json"),
        "report": str(out / "report.html"),
        "n_rows": document["n_rows"],
        "n_skipped": document["n_skipped"],
        "n_groups": len(document["groups"]),
        "deployments": rows,
    }


def _print_summary(document: Mapping[str, Any], out: Path, options: "Options") -> None:
    from auditor.report.words import DASH, estimate_text, percent

    table: list[Sequence[str]] = [_COLUMNS]
    reasons: dict[str, list[str]] = {}
    for entry in document["deployments"]:
        name = str(entry["by"]["deployment"])
        if entry["rubric"] != "statement":
            name += f" ({entry['rubric']})"
        metrics = [estimate_text(metric, entry["metrics"][metric]) for metric in _HEADLINES]
        for reason in dict.fromkeys(entry["metrics"][metric].get("missing") for metric in _HEADLINES):
            if reason:
                reasons.setdefault(reason, []).append(name)
        trap = entry["cancellation_trap"]
        flags = [*entry["flags"], *entry["metrics"]["ber_union_full"].get("flags", ())]
        if isinstance(trap, str) and trap != "excluded":
            flags.append(f"cancellation trap {trap}")
        covered = percent(entry["coverage"]["eligible"])
        table.append((name, f"{entry['n']:,}", covered, *metrics, ", ".join(dict.fromkeys(flags))))
    widths = [max(len(row[column]) for row in table) for column in range(len(_COLUMNS))]
    for row in table:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for reason, names in reasons.items():
        typer.echo(f"{DASH} {reason}: {', '.join(names)}")
    if "reviews" in document:
        _print_corrected(document)
    if options.skip_bad:
        typer.echo(f"\n{document['n_skipped']} bad lines skipped")
    typer.echo(f"\n{out / 'report.html'}\n{out / 'analysis.json'}")


def _print_corrected(document: Mapping[str, Any]) -> None:
    from auditor.report.words import by_text, estimate_text

    typer.echo(f"\nBER of the elaboration, corrected by {document['reviews']['n']} people's labels [95 %]:")
    for entry in document["deployments"]:
        metric = entry["metrics"][_CORRECTED]
        typer.echo(f"  {by_text(entry['by'])}: {metric.get('missing') or estimate_text(_CORRECTED, metric)}")
