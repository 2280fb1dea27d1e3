"""``biasmeter score`` and ``peers``: score answers to the questions of a domain, and compare deployments with peers."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from auditor.errors import UsageError
from biasmeter.terminal.options import ConfigOption, JsonOption
from biasmeter.terminal.progress import progress
from biasmeter.terminal.tables import table_lines

if TYPE_CHECKING:
    from auditor.config import Config, PeerDomain
    from auditor.documents.jsonl import Rows
    from auditor.documents.peers import PeersDocument
    from auditor.peers.scoring import PeerAnswer, Scored, Scorers
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
    as_json: JsonOption = False,
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
        scored = read_scores(scores, skip_bad=skip_bad, on_bytes=on_bytes)
    for complaint in scored.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    content = canonical_bytes(analyse(scored.table, options, skipped=scored.skipped))
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


def _hosts(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read ``r1=official,elsewhere``: who serves the same weights."""
    hosts: dict[str, tuple[str, ...]] = {}
    for text in texts:
        weights, _, names = text.partition("=")
        weights = weights.strip()
        if not weights or not names:
            raise UsageError(f"--hosts {text!r}: must be WEIGHTS=A,B")
        if weights in hosts:
            raise UsageError(f"--hosts {text!r}: {weights!r} is given twice")
        hosts[weights] = _names("--hosts", names)
    return hosts


def _margins(texts: Sequence[str]) -> tuple[float | None, dict[str, float]]:
    """Read ``0.5`` and ``judge:a=0.5``: a margin for all, and those of single instruments."""
    margins: dict[str, float] = {}
    for text in texts:
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
        instrument: {name: getattr(result, name) for name in names if hasattr(result, name)}
        for instrument, result in instruments.items()
    }


def _lines(document: "PeersDocument") -> Iterator[str]:
    from auditor.documents.peers import InstrumentEntry
    from auditor.report.peers import result_cells
    from auditor.report.wording import DASH, reason_text, word_text

    table: list[Sequence[str]] = [_COLUMNS]
    notes = []
    for entry in document.targets:
        for name, result in entry.instruments.items():
            reasons, published = [reason_text(result)], DASH
            if isinstance(result, InstrumentEntry):
                reasons = [reason_text(result.verdict), *(warning.text for warning in result.warnings)]
                published = word_text(result.conclusion)
            table.append((entry.target, name, *result_cells(name, result), published))
            notes += [f"{entry.target}, {name}: {text}" for text in reasons if text]
    yield from table_lines(table)
    pairs = [
        (" / ".join(pair.deployments), name, *result_cells(name, result))
        for pair in document.hosts
        for name, result in pair.instruments.items()
    ]
    if pairs:
        yield from ("", *table_lines([_HOST_COLUMNS, *pairs]))
    yield from ("", *notes) if notes else ()


@app.command("score")
def score(
    answers: Annotated[Path, typer.Argument(help="Answers, JSONL or JSONL.gz.", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", help="File for the scores; .gz compresses.")],
    config: ConfigOption,
    domain: Annotated[
        str | None, typer.Option(help="Name of the domain in 'peers'. Required if there are several.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count bad rows instead of stopping at the first.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Score answers to the questions of a domain: a vector by its embedder, and 1 to 10 by each of its judges."""
    from auditor.config import load
    from auditor.documents.input_files import require_file
    from auditor.documents.jsonl import Rows, require_target, writing
    from auditor.peers.domains import configured_domain
    from auditor.peers.scoring import answer_reader, load_scorers, score_fields

    require_file(answers)
    require_target(out, answers)
    loaded = load(config, os.environ)
    settings = _find_domain(loaded, domain)
    configured = configured_domain(settings)
    scorers = load_scorers(
        loaded,
        embedding=settings.embedding,
        instruction=configured.instruction,
        judges=settings.judges,
        target=configured.target,
    )
    tally = _Tally()
    with progress(answers, "scoring") as on_bytes, writing(out) as write:
        rows = Rows(answers, skip_bad=skip_bad, on_bytes=on_bytes)
        read = rows.read(answer_reader({question.id: question.text for question in configured.questions}))

        def take(scored: "Scored") -> None:
            write({**scored.answer.fields, **score_fields(scored, scorers)})
            tally.add(scored)

        asyncio.run(_score((answer for _, answer in read), scorers, take))
    _report_scores(tally, rows, scorers, out, as_json=as_json)


class _Tally:
    """What the summary counts."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.judges: dict[str, Counter[str]] = {}

    def add(self, scored: "Scored") -> None:
        answer = scored.answer
        facts = {
            "rows": True,
            "errors": not answer.came,
            "blocked": answer.blocked,
            "embedded": scored.vector is not None,
            "truncated": scored.truncated,
        }
        self.counts.update(name for name, holds in facts.items() if holds)
        for judge_score in scored.scores:
            self.judges.setdefault(judge_score.judge, Counter())[judge_score.reason or "scored"] += 1


async def _score(answers: Iterator["PeerAnswer"], scorers: "Scorers", take: Callable[["Scored"], None]) -> None:
    from auditor.peers.scoring import score as score_all

    try:
        async for scored in score_all(answers, scorers):
            take(scored)
    finally:
        await scorers.aclose()


def _find_domain(config: "Config", name: str | None) -> "PeerDomain":
    """Find the entry of ``peers`` for a name."""
    known = [entry.domain for entry in config.peers]
    matching = [entry for entry in config.peers if name in {None, entry.domain}]
    if len(matching) == 1:
        return matching[0]
    if not known:
        raise UsageError("the configuration has no peers: there is no domain to score for")
    wanted = "name one" if name is None else f"there is no {name!r}"
    raise UsageError(f"--domain: {wanted}; known: {', '.join(known)}")


def _report_scores(tally: _Tally, rows: "Rows", scorers: "Scorers", out: Path, *, as_json: bool) -> None:
    for complaint in rows.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    if len(scorers.judges) == 1:
        typer.echo(
            "warning: with one judge, a bias of the judge cannot be distinguished from a bias of the answers", err=True
        )
    if as_json:
        typer.echo(json.dumps(_score_summary(tally, rows, scorers, out), sort_keys=True))
        return
    skipped = f", {rows.skipped} bad rows skipped" if rows.skipped else ""
    counts = tally.counts
    typer.echo(f"{out}: {counts['rows']} rows ({counts['errors']} errors, {counts['blocked']} blocked){skipped}")
    if scorers.embedder is not None:
        coder = scorers.embedder.encoding.coder
        typer.echo(f"  embedding   {counts['embedded']} by {coder}, {counts['truncated']} cut to fit")
    for judge in scorers.judges:
        listed = "  ".join(f"{name} {count}" for name, count in sorted(tally.judges.get(judge.name, {}).items()))
        typer.echo(f"  {judge.name:<11} {listed or 'nothing to score'}")


def _score_summary(tally: _Tally, rows: "Rows", scorers: "Scorers", out: Path) -> dict[str, object]:
    embedder = scorers.embedder
    return {
        "out": str(out),
        "skipped": rows.skipped,
        **{name: tally.counts[name] for name in ("rows", "errors", "blocked", "embedded", "truncated")},
        "embedding": None if embedder is None else embedder.encoding.describe(),
        "judges": [{**judge.describe(), **tally.judges.get(judge.name, {})} for judge in scorers.judges],
    }
