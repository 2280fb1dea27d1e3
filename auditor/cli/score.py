"""``biasmeter score``: score a file of answers with the embedder and the judges of a domain. ``peers`` compares."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.errors import UsageError
from biasmeter.options import ConfigOption, JsonOption
from biasmeter.progress import progress

if TYPE_CHECKING:
    from auditor.config import Config, PeerDomain
    from auditor.documents.jsonl import Rows
    from auditor.peers.scoring import PeerAnswer, Scored, Scorers

app = typer.Typer()


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
    from auditor.documents.jsonl import Rows, require_file, require_target, writing
    from auditor.peers.domains import configured_domain
    from auditor.peers.scoring import answer_reader, load_scorers, score_fields

    require_file(answers)
    require_target(out, answers)
    loaded = load(config, os.environ)
    settings = _find(loaded, domain)
    asked = configured_domain(settings)
    scorers = load_scorers(
        loaded,
        embedding=settings.embedding,
        instruction=asked.instruction,
        judges=settings.judges,
        target=asked.target,
    )
    tally = _Tally()
    with progress(answers, "scoring") as on_bytes, writing(out) as write:
        rows = Rows(answers, skip_bad=skip_bad, on_bytes=on_bytes)
        read = rows.read(answer_reader({one.id: one.text for one in asked.questions}))

        def take(scored: "Scored") -> None:
            write({**scored.answer.fields, **score_fields(scored, scorers)})
            tally.add(scored)

        asyncio.run(_score((answer for _, answer in read), scorers, take))
    _report(tally, rows, scorers, out, as_json=as_json)


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
        for one in scored.scores:
            self.judges.setdefault(one.judge, Counter())[one.reason or "scored"] += 1


async def _score(answers: Iterator["PeerAnswer"], scorers: "Scorers", take: Callable[["Scored"], None]) -> None:
    from auditor.peers.scoring import score as score_all

    try:
        async for scored in score_all(answers, scorers):
            take(scored)
    finally:
        await scorers.aclose()


def _find(config: "Config", name: str | None) -> "PeerDomain":
    """Find the entry of ``peers`` for a name."""
    known = [one.domain for one in config.peers]
    found = [one for one in config.peers if name in {None, one.domain}]
    if len(found) == 1:
        return found[0]
    if not known:
        raise UsageError("the configuration has no peers: there is no domain to score for")
    wanted = "name one" if name is None else f"there is no {name!r}"
    raise UsageError(f"--domain: {wanted}; known: {', '.join(known)}")


def _report(tally: _Tally, rows: "Rows", scorers: "Scorers", out: Path, *, as_json: bool) -> None:
    for complaint in rows.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    if len(scorers.judges) == 1:
        typer.echo(
            "warning: with one judge, a bias of the judge cannot be distinguished from a bias of the answers", err=True
        )
    if as_json:
        typer.echo(json.dumps(_summary(tally, rows, scorers, out), sort_keys=True))
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


def _summary(tally: _Tally, rows: "Rows", scorers: "Scorers", out: Path) -> dict[str, object]:
    embedder = scorers.embedder
    return {
        "out": str(out),
        "skipped": rows.skipped,
        **{name: tally.counts[name] for name in ("rows", "errors", "blocked", "embedded", "truncated")},
        "embedding": None if embedder is None else embedder.encoding.describe(),
        "judges": [{**judge.describe(), **tally.judges.get(judge.name, {})} for judge in scorers.judges],
    }
