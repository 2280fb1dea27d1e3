"""``biasmeter pool``: what a statement pool holds, how it is balanced, and whether it passes the checks."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from auditor.errors import AuditError, UsageError
from biasmeter.options import JsonOption
from biasmeter.tables import table_lines

if TYPE_CHECKING:
    from auditor.domain.condition import Task
    from auditor.domain.statement import Statement

app = typer.Typer()


#: Findings of a check that are printed.
_FINDINGS: Final = 5
_CATEGORIES: Final = ("category", "statements", "intersectional", "regional", "named first", "blank", "longer by")


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

    claims = [counter_claim(one) for one in pool if one.completion and one.counter_option]
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


def read_statements(path: Path, tasks: "Collection[Task]") -> "tuple[Statement, ...]":
    """Read the statements that can be asked in every task; say on standard error what was left out.

    Raises
    ------
    InputError
        The file cannot be read as one of the formats.
    UsageError
        There is no such file, or none of its statements can be asked in every task.
    """
    from auditor.instrument.loaders import load

    loaded = load(path)
    chosen = loaded.for_tasks(tasks)
    if not chosen.statements:
        each = ", ".join(f"{task} {len(loaded.for_tasks((task,)).statements):,}" for task in tasks)
        whole = f"of {len(loaded.statements):,} statements none can be asked in every task of the plan"
        raise UsageError(f"{path}: {whole} ({each}); name tasks with --task")
    for reason, count in chosen.left_out.items():
        typer.echo(f"{path}: {count:,} left out: {reason}", err=True)
    return chosen.statements
