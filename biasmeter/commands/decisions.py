"""``biasmeter decisions``: compare favourable decisions between groups, as ``decisions.json`` and ``report.html``."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.errors import UsageError
from biasmeter.terminal.options import JsonOption, LastOption, SinceOption, UntilOption, read_period
from biasmeter.terminal.progress import progress
from biasmeter.terminal.tables import table_lines

if TYPE_CHECKING:
    from auditor.documents.decisions import DecisionsDocument

app = typer.Typer()


@app.command("decisions")
def decisions(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the results.")],
    rows: Annotated[
        Path | None, typer.Argument(metavar="DECISIONS", help="One row a decision: .jsonl, .jsonl.gz or .csv.")
    ] = None,
    preset: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="The rule: ll144, eeoc, or a YAML file with the same keys.")
    ] = "eeoc",
    group: Annotated[
        str | None, typer.Option(metavar="FIELD,...", help="Fields with the groups, in place of the rule's.")
    ] = None,
    decision: Annotated[str, typer.Option(metavar="FIELD", help="Field with yes or no.")] = "decision",
    score: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Field with a score, with -c its path in an answer; over the median counts as favourable.",
        ),
    ] = None,
    favourable: Annotated[
        str | None, typer.Option(metavar="VALUE", help="The decision that is favourable, if it is no common word.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Field of decisions that belong together, such as the person.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("-c", "--config", metavar="FILE", help="Take the decisions from this store.")
    ] = None,
    audit: Annotated[
        str | None, typer.Option(metavar="NAME", help="With -c: the audit profile whose rule reads the decision.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    last: LastOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare favourable decisions between groups: rates, and their ratios to the highest rate. Writes decisions.json.

    With -c the selection of each answer of a route with the audit is the decision: E is favourable, unless --favourable
    names another label; or --score names the place of a number in the answers. Groups are tags of the requests.
    """
    from msgspec import structs

    from auditor.documents.codec import canonical_bytes, decode
    from auditor.documents.decisions import DecisionsDocument
    from auditor.documents.output import check_folder, write_files
    from auditor.estimation.decisions import DecisionOptions, compare_decisions, load_rule
    from auditor.report.decisions import render_decisions

    check_folder(out)
    rule = load_rule(preset)
    if group is not None:
        rule = structs.replace(rule, fields=[name.strip() for name in group.split(",") if name.strip()])
    if config is not None:
        if cluster is not None or decision != "decision":
            raise UsageError("--decision and --cluster are for files: with -c the audit profile says both")
        begin, end = read_period(since, until, last)
        records: Iterable[Mapping[str, Any]] = _stored(
            config, rows, audit, rule.fields, favourable or "E", score, begin, end
        )
        options = DecisionOptions(rule=rule, cluster="cluster", score=score and "score")
    else:
        if audit or since or until or last:
            raise UsageError("--audit, --from, --to and --last need -c")
        records = _read(rows)
        options = DecisionOptions(rule=rule, decision=decision, score=score, favourable=favourable, cluster=cluster)
    content = canonical_bytes(compare_decisions(records, options))
    document = decode(content, DecisionsDocument, "decisions.json")
    write_files(out, {"decisions.json": content, "report.html": render_decisions(document)})
    if as_json:
        typer.echo(content.decode(), nl=False)
    else:
        _print(document, out)


def _read(path: Path | None) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a file."""
    from auditor.documents.input_files import csv_records
    from auditor.documents.jsonl import Rows

    if path is None:
        raise UsageError("name a file with decisions, or a store with -c")
    if path.suffix != ".csv":
        with progress(path, "reading") as on_bytes:
            for _, row in Rows(path, on_bytes=on_bytes).read(lambda record: record):
                yield row
        return
    for _, record in csv_records(path):
        yield record


def _stored(
    config: Path,
    rows: Path | None,
    audit: str | None,
    fields: Sequence[str],
    favourable: str,
    score: str | None,
    since: datetime | None,
    until: datetime | None,
) -> list[dict[str, Any]]:
    """Read the decisions of an audit from the store of a configuration."""
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.coding.coders import open_coders
    from auditor.coding.paths import parse_path
    from auditor.coding.scores import with_scores
    from auditor.config import load_without_upstream_keys
    from auditor.store.decisions import read_decisions
    from auditor.store.engine import transaction
    from biasmeter.store_work import in_store

    loaded = load_without_upstream_keys(config, os.environ)
    path = None if score is None else parse_path(score, "--score")
    names = [profile.name for profile in loaded.audits if profile.selection is not None or score is not None]
    if rows is not None or audit not in names:
        known = ", ".join(names) or "none"
        needed = "a profile that has a selection rule" if score is None else "a profile"
        raise UsageError(f"-c needs --audit with {needed} (there: {known}), and no file")

    async def run(engine: AsyncEngine) -> list[dict[str, Any]]:
        async with open_coders(loaded, asking=False) as coders, transaction(engine) as connection:
            ids = [coder.id for coder in coders]
            decided = await read_decisions(connection, ids, audit, fields, favourable, since, until)
            return decided if path is None else await with_scores(connection, decided, path)

    records = in_store(loaded, run)
    if len({row["inclusion"] for row in records}) > 1:
        raise UsageError("the answers were stored with different probabilities: choose a period with one `sample`")
    return records


def _print(document: "DecisionsDocument", out: Path) -> None:
    from auditor.report.decisions import category_lines, table_title

    for table in document.tables:
        typer.echo(f"{table_title(table)}: {table.n:,} decisions, {table.n_unknown:,} of an unknown group")
        heads = ("group", "favourable", "rate [95 %]", "impact ratio [95 %]", "note")
        lines = [(line.name, line.n, line.rate, line.ratio, line.finding) for line in category_lines(table)]
        for text in table_lines([heads, *lines]):
            typer.echo(text)
        typer.echo("")
    typer.echo(f"{out / 'report.html'}\n{out / 'decisions.json'}")
