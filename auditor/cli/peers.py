"""``biasmeter peers``: offline Relative Bias of a scores file, as ``peers.json`` and ``report.html``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from auditor.errors import UsageError
from biasmeter.progress import progress
from biasmeter.tables import table_lines

if TYPE_CHECKING:
    from auditor.documents.peers import PeersDocument
    from auditor.report.peers import Result

app = typer.Typer()

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


@app.command("peers")
def peers(
    scores: Annotated[Path, typer.Argument(metavar="SCORES.jsonl", help="Scored answers, .gz or not.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the results.")],
    target: Annotated[list[str], typer.Option(metavar="NAME", help="Deployment to compare; may be repeated.")],
    compared: Annotated[
        str | None,
        typer.Option("--peers", metavar="NAME,...", help="Deployments to compare with. Default: all in the file."),
    ] = None,
    blocked: Annotated[
        Literal["answer", "drop"],
        typer.Option(help="Count a content filter's block as an answer, or drop the question."),
    ] = "answer",
    margin: Annotated[
        list[str] | None,
        typer.Option(metavar="D|INSTRUMENT=D", help="Largest difference that counts as equivalent; may be repeated."),
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option(metavar="WEIGHTS=A,B", help="Deployments that serve the same weights; may be repeated."),
    ] = None,
    k: Annotated[
        float, typer.Option(help="Without --margin: the margin in standard deviations of the peers' means.")
    ] = 2.81,
    alpha: Annotated[float, typer.Option(help="Level of each one-sided test.")] = 0.05,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip bad lines and count them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
) -> None:
    """Compare deployments with their peers on the same questions. Writes peers.json and report.html to the folder -o.

    The same rows and options give the same bytes, in whatever order the rows stand.
    """
    from auditor.documents.codec import canonical_bytes, decode
    from auditor.documents.output import check_folder, write_files
    from auditor.documents.peers import PeersDocument
    from auditor.peers.comparison import PeerOptions
    from auditor.peers.run import analyse
    from auditor.peers.score_table import read_scores
    from auditor.report.peers import render_peers

    for_all, by_instrument = _margins(margin or ())
    options = PeerOptions(
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
    document = decode(content, PeersDocument, "peers.json")
    write_files(out, {"peers.json": content, "report.html": render_peers(document)})
    if as_json:
        typer.echo(json.dumps(_summary(document, out), indent=2, sort_keys=True))
        return
    for line in _lines(document):
        typer.echo(line)
    typer.echo(f"\n{out / 'report.html'}\n{out / 'peers.json'}")


def _names(option: str, text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise UsageError(f"{option} {text!r}: an empty name")
    return names


def _hosts(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read ``r1=official,elsewhere``: who serves the same weights."""
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


def _summary(document: "PeersDocument", out: Path) -> dict[str, Any]:
    import msgspec

    names = ("mean_target", "mean_baseline", "diff", "delta", "equivalent", "conclusion", "verdict", "missing")
    hosts = [
        {
            "weights": pair.weights,
            "deployments": pair.deployments,
            "instruments": _results(pair.instruments, ("means", "delta", "verdict", "missing")),
        }
        for pair in document.hosts
    ]
    targets = [
        {"target": entry.target, "instruments": _results(entry.instruments, names), "excluded": entry.excluded}
        for entry in document.targets
    ]
    files = {"peers": str(out / "peers.json"), "report": str(out / "report.html")}
    sizes = {"n_rows": document.n_rows, "n_skipped": document.n_skipped}
    made: dict[str, Any] = msgspec.to_builtins(files | sizes | {"targets": targets, "hosts": hosts})
    return made


def _results(instruments: "Mapping[str, Result]", names: Sequence[str]) -> dict[str, dict[str, object]]:
    return {
        instrument: {name: getattr(found, name) for name in names if hasattr(found, name)}
        for instrument, found in instruments.items()
    }


def _lines(document: "PeersDocument") -> Iterator[str]:
    from auditor.documents.peers import InstrumentEntry
    from auditor.report.peers import result_cells
    from auditor.report.wording import DASH, reason_text, word_text

    table: list[Sequence[str]] = [_COLUMNS]
    notes = []
    for entry in document.targets:
        for name, found in entry.instruments.items():
            reasons, published = [reason_text(found)], DASH
            if isinstance(found, InstrumentEntry):
                reasons = [reason_text(found.verdict), *(one.text for one in found.warnings)]
                published = word_text(found.conclusion)
            table.append((entry.target, name, *result_cells(name, found), published))
            notes += [f"{entry.target}, {name}: {text}" for text in reasons if text]
    yield from table_lines(table)
    pairs = [
        (" / ".join(pair.deployments), name, *result_cells(name, found))
        for pair in document.hosts
        for name, found in pair.instruments.items()
    ]
    if pairs:
        yield from ("", *table_lines([_HOST_COLUMNS, *pairs]))
    yield from ("", *notes) if notes else ()
