"""``biasmeter pool`` and ``leaks``: check a statement pool, and whether deployments have learned it by heart."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from auditor.errors import AuditError
from biasmeter.terminal.options import ConfigOption, JsonOption
from biasmeter.terminal.plan_options import DeploymentOption, load_deployments, read_statements
from biasmeter.terminal.progress import counting
from biasmeter.terminal.tables import table_lines

if TYPE_CHECKING:
    from auditor.domain.statement import Statement
    from auditor.instrument.leaks import LeakFinding
    from auditor.judges.endpoint import JudgeEndpoint
    from auditor.probes.forecast import CallTokens

app = typer.Typer()

#: Findings of a check that are printed.
_FINDINGS: Final = 5
_CATEGORIES: Final = ("category", "statements", "intersectional", "regional", "named first", "blank", "longer by")
#: Tokens of an answer, for the estimate of the cost.
_ANSWER_TOKENS: Final = 40


@app.command("pool")
def _pool(
    statements: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A file of your own statements or a public data set. Default: the shipped pool."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Write pool.html and pool.json here.")
    ] = None,
    counter: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the same claims about the counter groups here (JSONL), for a control."
        ),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the pool as a data set for Hugging Face's datasets here."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a statement pool: sizes, tasks it can be asked in, balance, duplicates, leaks.

    Ends with status 1 where a check failed. pool.html quotes the statements, which can offend.

    Example: biasmeter pool --dataset pool, and then in Python: datasets.load_dataset("pool", split="test")
    """
    from auditor.documents.codec import canonical_bytes
    from auditor.documents.output import check_folder, write_files
    from auditor.instrument.pool import shipped_pool
    from auditor.instrument.pool_dataset import write_pool_dataset
    from auditor.instrument.pool_report import pool_document
    from auditor.report.pool import render_pool

    for folder in (out, dataset):
        if folder is not None:
            check_folder(folder)
    pool = shipped_pool() if statements is None else read_statements(statements, ())
    name = pool[0].source or "shipped" if statements is None else statements.name
    content = canonical_bytes(pool_document(pool, name, shipped=statements is None))
    document = json.loads(content)
    typer.echo(content.decode() if as_json else "\n".join(_lines(document)), nl=not as_json)
    if counter is not None:
        _write_counter_claims(counter, pool)
    if dataset is not None:
        write_pool_dataset(dataset, None if statements is None else pool)
        typer.echo(f"{dataset}: {len(pool)} statements", err=True)
    if out is not None:
        write_files(out, {"pool.json": content, "pool.html": render_pool(document)})
        if not as_json:
            typer.echo(f"\n{out / 'pool.html'}\n{out / 'pool.json'}")
    failed = [check["name"] for check in document["checks"] if check["outcome"] == "failed"]
    if failed:
        raise AuditError(
            f"{statements or name}: {len(failed)} of {len(document['checks'])} checks failed: {', '.join(failed)}"
        )


def _write_counter_claims(path: Path, pool: Sequence["Statement"]) -> None:
    """Write the counter claims of the statements that have one."""
    from auditor.documents.jsonl import writing
    from auditor.instrument.asking import counter_claim
    from auditor.instrument.pool import record_of

    claims = [counter_claim(statement) for statement in pool if statement.completion and statement.counter_option]
    with writing(path) as write:
        for claim in claims:
            write(record_of(claim))
    typer.echo(f"{path}: {len(claims)} claims about the counter groups", err=True)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    regional = sum(document["regions"].values())
    yield f"{document['pool']}: {document['n']:,} statements in {len(document['categories'])} categories"
    yield f"{document['n_intersectional']} intersectional, {regional} leaning on a region"
    yield ""
    yield from table_lines([_CATEGORIES, *map(_category, document["categories"])])
    yield ""
    tasks = [
        (
            entry["task"],
            f"{entry['n']:,}",
            ", ".join(
                f"{name} ({n})" for name, n in sorted(entry["missing"].items(), key=lambda item: (-item[1], item[0]))
            ),
        )
        for entry in document["tasks"]
    ]
    yield from table_lines([("task", "can be asked", "missing"), *tasks])
    yield ""
    checks = [(check["name"], check["outcome"], check["value"]) for check in document["checks"]]
    yield from table_lines([("check", "outcome", "found"), *checks])
    for check in document["checks"]:
        yield from _findings(check)


def _category(entry: Mapping[str, Any]) -> tuple[str, ...]:
    shown_first = sum(entry["first"].values())
    first = f"{entry['first']['stereotype']} of {shown_first}" if shown_first else ""
    longer = f"{entry['longer_by']['characters']:+.1f}" if entry["longer_by"] else ""
    blank = "/".join(str(entry["blank"][place]) for place in ("start", "middle", "end"))
    counts = (str(entry[name]) for name in ("n", "n_intersectional", "n_regional"))
    return (entry["category"], *counts, first, blank, longer)


def _findings(check: Mapping[str, Any]) -> Iterator[str]:
    if not check["findings"]:
        return
    yield f"\n{check['name']}: {check['asks']}"
    for name, finding in list(check["findings"].items())[:_FINDINGS]:
        yield f"  {name}: {finding}"
    if len(check["findings"]) > _FINDINGS:
        yield f"  and {len(check['findings']) - _FINDINGS} more: -o DIR writes them all"


@app.command("leaks")
def _leaks(
    config: ConfigOption,
    deployment: DeploymentOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before money is spent.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask deployments to continue first halves of the shipped scenes, beside controls that they cannot know.

    Sends 84 short calls to each deployment, through the gateway; only first halves are sent. Ends with status 1 where a
    deployment has learned the pool: its rates are then no measurement. Statements appear by their ids only.

    Example: biasmeter leaks -c biasmeter.yaml --deployment claude
    """
    from auditor.access import gateway_access
    from auditor.peers.generate import endpoint_of
    from biasmeter.terminal.spending import ask_leave

    loaded, chosen = load_deployments(config, deployment)
    if not yes:
        usd = {target.name: _usage().price_at(target) for target in chosen}
        ask_leave(sum(filter(None, usd.values())), [name for name, price in usd.items() if price is None])
    endpoints = {target.name: endpoint_of(loaded, target, gateway_access(loaded)) for target in chosen}
    findings = asyncio.run(_find_leaks(endpoints))
    if as_json:
        typer.echo(json.dumps({name: asdict(finding) for name, finding in findings.items()}))
    else:
        for line in _leak_lines(findings):
            typer.echo(line)
    leaked = [name for name, finding in findings.items() if finding.leaked]
    if leaked:
        raise AuditError(f"{', '.join(leaked)} completed texts of the pool word for word (docs/pool.md, Leaks)")


def _usage() -> "CallTokens":
    """Estimate the tokens for one deployment, at four characters a token; answers are as long as what is asked for."""
    from auditor.instrument.leaks import pieces
    from auditor.probes.forecast import CallTokens

    prompt_tokens = sum(len(piece.prompt) for piece in pieces()) // 4
    return CallTokens(prompt=prompt_tokens, completion=_ANSWER_TOKENS * len(pieces()))


async def _find_leaks(endpoints: "Mapping[str, JudgeEndpoint]") -> "dict[str, LeakFinding]":
    from auditor.instrument.leaks import leak_finding, pieces
    from auditor.probes.leaks import ask_pieces

    findings = {}
    total, done = len(pieces()) * len(endpoints), 0
    with counting("asking") as on_progress:

        def on_answer() -> None:
            nonlocal done
            done += 1
            on_progress(done, total)

        for name, endpoint in endpoints.items():
            replies = await ask_pieces(endpoint, on_answer)
            try:
                findings[name] = leak_finding(replies)
            except ValueError as error:
                raise AuditError(f"{name}: {error}") from error
    return findings


def _leak_lines(findings: "Mapping[str, LeakFinding]") -> Iterator[str]:
    head = ("deployment", "pairs", "scenes completed", "controls completed", "canaries", "p", "leaked")
    rows: list[tuple[Any, ...]] = [
        (
            name,
            str(finding.n),
            str(len(finding.statements)),
            str(finding.controls),
            str(len(finding.canaries)),
            f"{finding.p:.2g}",
            "yes" if finding.leaked else "not shown",
        )
        for name, finding in findings.items()
    ]
    yield from table_lines([head, *rows], right=(1, 2, 3, 4, 5))
    for name, finding in findings.items():
        if finding.statements or finding.canaries:
            yield f"{name} completed: {', '.join((*finding.statements, *finding.canaries))}"
