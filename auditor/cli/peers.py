"""``tiltmeter peers``: offline Relative Bias of a scores file, as ``peers.json`` and ``report.html``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from auditor.cli.progress import progress

_COLUMNS: Final = (
    "target",
    "instrument",
    "target's mean",
    "peers' mean",
    "difference [95 %]",
    "margin",
    "verdict",
    "as published",
)

_HOST_COLUMNS: Final = ("same weights", "instrument", "first's mean", "second's mean", *_COLUMNS[4:7])


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    app.command("peers")(peers)


def peers(
    scores: Annotated[Path, typer.Argument(metavar="SCORES.jsonl", help="Scored answers, .gz or not.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the results.")],
    target: Annotated[list[str], typer.Option(metavar="NAME", help="Deployment to compare; may be repeated.")],
    compared: Annotated[
        str | None, typer.Option("--peers", metavar="NAME,...", help="All deployments compared; default everybody.")
    ] = None,
    blocked: Annotated[
        Literal["answer", "drop"], typer.Option(help="Whether a content filter's block is an answer.")
    ] = "answer",
    margin: Annotated[
        list[str] | None,
        typer.Option(metavar="D|INSTRUMENT=D", help="Largest difference that does not matter; may be repeated."),
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option(metavar="WEIGHTS=A,B", help="Deployments that serve the same weights; may be repeated."),
    ] = None,
    k: Annotated[float, typer.Option(help="Without --margin: standard deviations of the peers' means.")] = 2.81,
    alpha: Annotated[float, typer.Option(help="Level of each one-sided test.")] = 0.05,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave bad lines out, and count them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
) -> None:
    """Compare deployments with their peers on the same questions: peers.json and report.html in the folder -o.

    The same rows and options give the same bytes, in whatever order the rows stand.
    """
    from auditor.analysis.document import canonical_bytes
    from auditor.analysis.output import check_folder, write_files
    from auditor.peers.options import Options
    from auditor.peers.run import analyse
    from auditor.peers.score_file import read_scores
    from auditor.report.peers import render_peers

    for_all, by_instrument = _margins(margin or ())
    options = Options(
        targets=tuple(target),
        peers=None if compared is None else _names("--peers", compared),
        blocked=blocked,
        k=k,
        alpha=alpha,
        margin=for_all,
        margins=by_instrument,
        hosts=_hosts(hosts or ()),
    )
    check_folder(out)
    with progress(scores, "reading") as on_bytes:
        found = read_scores(scores, skip_bad=skip_bad, on_bytes=on_bytes)
    for complaint in found.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    content = canonical_bytes(analyse(found.table, options, skipped=found.skipped))
    # The report is made from what the file says, so that it can be made again from the file alone.
    document = json.loads(content)
    write_files(out, {"peers.json": content, "report.html": render_peers(document)})
    if as_json:
        typer.echo(json.dumps(_summary(document, out), indent=2, sort_keys=True))
        return
    for line in _lines(document):
        typer.echo(line)
    typer.echo(f"\n{out / 'report.html'}\n{out / 'peers.json'}")


def _names(option: str, text: str) -> tuple[str, ...]:
    from auditor.errors import UsageError

    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise UsageError(f"{option} {text!r}: an empty name")
    return names


def _hosts(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read ``r1=official,elsewhere``: who serves the same weights."""
    from auditor.errors import UsageError

    hosts: dict[str, tuple[str, ...]] = {}
    for text in given:
        weights, _, names = text.partition("=")
        weights = weights.strip()
        if not weights or not names:
            raise UsageError(f"--hosts {text!r}: must be WEIGHTS=A,B")
        if weights in hosts:
            raise UsageError(f"--hosts {text!r}: {weights!r} is given twice")
        hosts[weights] = _names("--hosts", names)
    return hosts


def _margins(given: Sequence[str]) -> tuple[float | None, dict[str, float]]:
    """Read ``0.5`` and ``judge:a=0.5``: a margin for all, and those of single instruments."""
    from auditor.errors import UsageError

    margins: dict[str, float] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise UsageError(f"--margin {text!r}: must be a number, or INSTRUMENT=number") from None
        if name.strip() in margins:
            raise UsageError(f"--margin {text!r}: given twice")
        margins[name.strip()] = value
    return margins.pop("", None), margins


def _summary(document: Mapping[str, Any], out: Path) -> dict[str, Any]:
    names = ("mean_target", "mean_baseline", "diff", "delta", "equivalent", "conclusion", "verdict", "missing")
    targets = [
        {
            "target": entry["target"],
            "instruments": {
                name: {key: found[key] for key in names if key in found} for name, found in entry["instruments"].items()
            },
            "excluded": entry["excluded"],
        }
        for entry in document["targets"]
    ]
    return {
        "peers": str(out / "peers.json"),
        "report": str(out / "report.html"),
        "n_rows": document["n_rows"],
        "n_skipped": document["n_skipped"],
        "targets": targets,
        "hosts": [
            {
                "weights": pair["weights"],
                "deployments": pair["deployments"],
                "instruments": {
                    name: {key: found[key] for key in ("means", "delta", "verdict", "missing") if key in found}
                    for name, found in pair["instruments"].items()
                },
            }
            for pair in document["hosts"]
        ],
    }


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    from auditor.report.peer_words import reason_text, word_text
    from auditor.report.peers import host_cells, result_cells

    table: list[Sequence[str]] = [_COLUMNS]
    notes = []
    for entry in document["targets"]:
        for name, found in entry["instruments"].items():
            table.append((entry["target"], name, *result_cells(name, found), word_text(found.get("conclusion"))))
            reasons = [reason_text(found), reason_text(found.get("verdict"))]
            reasons += [one["text"] for one in found.get("warnings", ())]
            notes += [f"{entry['target']}, {name}: {text}" for text in reasons if text]
    yield from _laid_out(table)
    pairs = [
        (" / ".join(pair["deployments"]), name, *host_cells(name, found))
        for pair in document["hosts"]
        for name, found in pair["instruments"].items()
    ]
    if pairs:
        yield from ("", *_laid_out([_HOST_COLUMNS, *pairs]))
    yield from ("", *notes) if notes else ()


def _laid_out(table: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
