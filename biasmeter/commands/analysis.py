"""``biasmeter analyze`` and ``items``: offline estimates of a coded file, and its statements as items of a test."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from auditor.errors import UsageError
from biasmeter.terminal.options import JsonOption, read_fields, read_period
from biasmeter.terminal.progress import progress
from biasmeter.terminal.tables import table_lines

if TYPE_CHECKING:
    from auditor.counting.tallies import Tallies
    from auditor.documents.analysis import AnalysisDocument
    from auditor.estimation.analysis import Options

app = typer.Typer()

_HEADLINES: Final = ("ber_union_full", "ir", "dni")
_CORRECTED: Final = "ber_elab_full_corrected"
_COLUMNS: Final = ("deployment", "responses", "both layers", "BER union, all [95 %]", "IR", "DNI", "flags")
_DIRECTION_COLUMNS: Final = (
    "direction, -1 to 1", "selection [95 %]", "elaboration", "union", "union, controlled", "response styles"
)  # fmt: skip


@app.command("analyze")
def analyze(
    coded: Annotated[
        Path,
        typer.Argument(
            metavar="CODED.jsonl", help="Coded rows, .gz or not; with --from parquet a folder of Parquet files."
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the results.")],
    by: Annotated[str, typer.Option(metavar="FIELD,...", help="Fields of the rows to group by.")] = "deployment,task",
    cluster: Annotated[
        str,
        typer.Option(
            metavar="FIELD,...",
            help="Fields of the rows whose values are the clusters, instead of the statement. Several are crossed, "
            "unless one determines another.",
        ),
    ] = "",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    n_boot: Annotated[
        int, typer.Option(min=20, max=100_000, help="Number of bootstrap replicates for ranges and ranks.")
    ] = 2000,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FORMULA",
            help="Also explain an outcome (sel, elab, union) by several fields at once: 'sel ~ deployment + task'. "
            "Writes model.json.",
        ),
    ] = None,
    reviews: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labels by people for some rows. They correct BER_elab, and where they have both layers IR and DNI.",
        ),
    ] = None,
    adjudicator: Annotated[
        str | None, typer.Option(metavar="NAME", help="Reviewer whose label settles what others disagree on.")
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip bad lines and count them.")] = False,
    source: Annotated[
        Literal["jsonl", "parquet"],
        typer.Option("--from", help="What CODED.jsonl is. parquet: the folder of `biasmeter export-parquet`."),
    ] = "jsonl",
    last: Annotated[
        str | None, typer.Option(metavar="SPAN", help="With --from parquet: only days of the last 30d or 4w.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="With --from parquet: memory for counting. Default: 1GB.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate bias from coded responses, across prompts and within responses. Writes analysis.json and report.html.

    The same rows, options and seed give the same bytes, in any order of the rows.

    Example, for statements that are grouped by topic: biasmeter analyze coded.jsonl -o out --cluster topic
    """
    from msgspec import UNSET

    from auditor.documents.analysis import AnalysisDocument
    from auditor.documents.codec import canonical_bytes, decode
    from auditor.documents.output import check_folder, write_files
    from auditor.estimation.analysis import Options, analyse, read_tallies
    from auditor.estimation.formula import parse_formula
    from auditor.report.analysis import render_analysis
    from auditor.report.wording import coarser_text
    from auditor.reviews.labelled_rows import read_reviews

    options = Options(
        by=read_fields(by),
        cluster=read_fields(cluster, "--cluster"),
        seed=seed,
        n_boot=n_boot,
        skip_bad=skip_bad,
        adjudicator=adjudicator,
        model=None if model is None else parse_formula(model),
    )
    check_folder(out)
    labels = None if reviews is None else read_reviews(reviews)
    if source == "parquet":
        tallies = _folder_tallies(coded, options, last=last, memory=memory, reviews=reviews)
    elif last or memory:
        raise UsageError("--last and --memory need --from parquet")
    else:
        with progress(coded, "reading") as on_bytes:
            tallies = read_tallies(coded, options, on_bytes, labels)
    if labels is not None and tallies.reviewed is not None:
        _check_labels(reviews, len(labels), len(tallies.reviewed))
    for complaint in tallies.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    content = canonical_bytes(analyse(tallies, options))
    # The report is made from what the file says, so that it can be made again from the file alone.
    document = decode(content, AnalysisDocument, "analysis.json")
    files = {"analysis.json": content, "report.html": render_analysis(document)}
    write_files(out, files if document.model is UNSET else files | {"model.json": canonical_bytes(document.model)})
    if as_json:
        typer.echo(json.dumps(_summary(document, out), indent=2, sort_keys=True))
    else:
        _print_summary(document, out, options)
    for coarser in () if document.clusters is UNSET else document.clusters.coarser:
        typer.echo(f"warning: {coarser_text(coarser)}", err=True)


def _folder_tallies(
    folder: Path, options: "Options", *, last: str | None, memory: str | None, reviews: Path | None
) -> "Tallies":
    """Count a folder of Parquet files. It has no ids to match labels to, and its clusters are those of the store."""
    from auditor.export.parquet.counts import MEMORY, folder_tallies

    for option, value in (("--reviews", reviews), ("--cluster", options.cluster), ("--skip-bad", options.skip_bad)):
        if value:
            raise UsageError(f"{option} does not work with --from parquet")
    begin, _ = read_period(None, None, last)
    since = None if begin is None else begin.date()
    return folder_tallies(folder, options.by, since=since, memory=memory or MEMORY)


def _check_labels(reviews: Path | None, labelled: int, matched: int) -> None:
    """Warn about labels without a row. Fail if no label has a row."""
    if labelled and not matched:
        raise UsageError(f"{reviews}: none of its {labelled} ids is the id of a row")
    if matched < labelled:
        typer.echo(f"warning: {reviews}: {labelled - matched} of {labelled} ids are not in the rows", err=True)


def _summary(document: "AnalysisDocument", out: Path) -> dict[str, Any]:
    import msgspec

    rows: list[dict[str, Any]] = [
        {
            "deployment": entry.by["deployment"],
            "rubric": entry.rubric,
            "n": entry.n,
            "coverage": entry.coverage,
            "cancellation_trap": entry.cancellation_trap,
            "flags": entry.flags,
        }
        | {name: entry.metrics[name] for name in (*_HEADLINES, _CORRECTED) if name in entry.metrics}
        for entry in document.deployments
    ]
    return {
        "analysis": str(out / "analysis.json"),
        "report": str(out / "report.html"),
        "n_rows": document.n_rows,
        "n_skipped": document.n_skipped,
        "n_groups": len(document.groups),
        "deployments": msgspec.to_builtins(rows),
        "direction": msgspec.to_builtins([entry for entry in document.direction if len(entry.by) == 1]),
        "response_styles": msgspec.to_builtins([entry for entry in document.response_styles if "task" not in entry.by]),
    }


def _print_summary(document: "AnalysisDocument", out: Path, options: "Options") -> None:
    from auditor.counting.rows import CONTROLS
    from auditor.documents.base import Missing
    from auditor.documents.estimates import EstimateEntry
    from auditor.report.document import readers_refusal
    from auditor.report.wording import DASH, estimate_text, percent

    table: list[Sequence[str]] = [_COLUMNS]
    reasons: dict[str, list[str]] = {}
    for entry in document.deployments:
        if entry.rubric in CONTROLS:  # their answers are set against those to the statements
            continue
        name = str(entry.by["deployment"])
        if entry.rubric != "statement":
            name += f" ({entry.rubric})"
        metrics = [entry.metrics[metric] for metric in _HEADLINES]
        for reason in dict.fromkeys(each.missing for each in metrics if isinstance(each, Missing)):
            reasons.setdefault(reason, []).append(name)
        union, trap = metrics[0], entry.cancellation_trap
        flags = [*entry.flags, *(union.flags if isinstance(union, EstimateEntry) else ())]
        if isinstance(trap, str) and trap != "excluded":
            flags.append(f"cancellation trap {trap}")
        written = map(estimate_text, _HEADLINES, metrics)
        covered = percent(entry.coverage.eligible)
        table.append((name, f"{entry.n:,}", covered, *written, ", ".join(dict.fromkeys(flags))))
    for line in table_lines(table):
        typer.echo(line)
    for reason, names in reasons.items():
        typer.echo(f"{DASH} {reason}: {', '.join(names)}")
    if refused := readers_refusal(document):
        typer.echo(f"{DASH} {refused}")
    _print_standardised(document)
    _print_direction(document)
    _print_corrected(document)
    _print_model(document)
    if options.skip_bad:
        typer.echo(f"\n{document.n_skipped} bad lines skipped")
    typer.echo(f"\n{out / 'report.html'}\n{out / 'analysis.json'}")


def _print_direction(document: "AnalysisDocument") -> None:
    from msgspec import UNSET

    from auditor.report.wording import DASH, direction_interval, flagged_styles

    by_deployment = {(entry.by["deployment"], entry.layer): entry for entry in document.direction if len(entry.by) == 1}
    styles = [entry for entry in document.response_styles if "task" not in entry.by]
    table: list[Sequence[str]] = [_DIRECTION_COLUMNS]
    for name in dict.fromkeys(deployment for deployment, _ in by_deployment):
        scores = [direction_interval(by_deployment[name, layer].score) for layer in ("sel", "elab", "union")]
        controlled = by_deployment[name, "union"].controlled
        text = DASH if controlled is UNSET else direction_interval(controlled)
        flagged = flagged_styles(entry for entry in styles if entry.by["deployment"] == name)
        table.append((str(name), *scores, text, flagged))
    if len(table) > 1:
        typer.echo("")
    for line in table_lines(table) if len(table) > 1 else ():
        typer.echo(line)


def _print_model(document: "AnalysisDocument") -> None:
    from msgspec import UNSET

    from auditor.report.model import difference_lines

    if document.model is UNSET:
        return
    typer.echo(f"\n{document.model.formula}")
    for line in table_lines(difference_lines(document.model)):
        typer.echo(line)


def _print_standardised(document: "AnalysisDocument") -> None:
    """Print the rates with equal weights of the conditions, where the pooled ones cannot be compared."""
    from auditor.report.wording import estimate_text

    entries = [entry for entry in document.standardised if entry.flags]
    if not entries:
        return
    heads = ("same weight for each condition", "BER union, all [95 %]", "IR", "DNI")
    lines = [
        (str(entry.by["deployment"]), *(estimate_text(name, entry.metrics[name]) for name in _HEADLINES))
        for entry in entries
    ]
    typer.echo("")
    for line in table_lines([heads, *lines]):
        typer.echo(line)
    typer.echo("is one worse than another? biasmeter difference compares them on the same questions")


def _print_corrected(document: "AnalysisDocument") -> None:
    from msgspec import UNSET

    from auditor.documents.estimates import EstimateEntry
    from auditor.report.wording import by_text, estimate_text, reason_text

    if document.reviews is UNSET:
        return
    typer.echo(f"\nBER of the elaboration, corrected by {document.reviews.n} people's labels [95 %]:")
    for entry in document.deployments:
        metric = entry.metrics[_CORRECTED]
        typer.echo(f"  {by_text(entry.by)}: {reason_text(metric) or estimate_text(_CORRECTED, metric)}")
    paired = {
        by_text(entry.by): [(name, entry.metrics[f"{name}_corrected"]) for name in ("ir", "dni")]
        for entry in document.deployments
        if isinstance(entry.metrics["ir_corrected"], EstimateEntry)
    }
    if paired:
        typer.echo("\nIR and DNI, corrected by people's labels of both layers [95 %]:")
    for name, (ir, dni) in paired.items():
        typer.echo(f"  {name}: {estimate_text(*ir)}; {estimate_text(*dni)}")


@app.command("items")
def items(
    coded: Annotated[Path, typer.Argument(help="Coded responses, JSONL or JSONL.gz.", show_default=False)],
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write the analysis as JSON.")] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count bad rows instead of stopping at the first.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Analyse statements as items of a test: difficulty, discrimination, bias by deployment, duplicates, a short form.

    Statements appear by their ids only, because their texts can offend.
    """
    from auditor.documents.input_files import require_file
    from auditor.documents.jsonl import Rows, require_target
    from auditor.estimation.items import analyse_items, item_answer

    require_file(coded)
    if out is not None:
        require_target(out, coded)
    with progress(coded, "reading") as on_bytes:
        rows = Rows(coded, skip_bad=skip_bad, on_bytes=on_bytes)
        analysis = analyse_items([answer for _, answer in rows.read(item_answer) if answer is not None])
    for complaint in rows.complaints:
        typer.echo(f"skipped {complaint}", err=True)
    if out is not None:
        out.write_text(json.dumps(analysis, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(analysis, sort_keys=True))
        return
    for line in _item_lines(analysis):
        typer.echo(line)


def _item_lines(analysis: Mapping[str, Any]) -> Iterator[str]:
    every, deployments = analysis["items"], analysis["deployments"]
    yield f"{len(every)} statements, {analysis['n_respondents']} respondents, {len(deployments)} deployments"
    dead = [item["statement"] for item in every if item["dead"]]
    weak = [item["statement"] for item in every if item.get("discrimination", 1.0) < 0]
    pairs = [" = ".join(duplicate["statements"]) for duplicate in analysis["duplicates"]]
    for name, listed in (("dead", dead), ("negative discrimination", weak), ("duplicates", pairs)):
        yield f"{name}: {', '.join(listed) or 'none'}"
    yield from table_lines(
        [
            ("works differently", "deployment", "log odds ratio", "p (Holm)"),
            *(
                (entry["statement"], entry["deployment"], f"{entry['log_odds_ratio']:+.2f}", f"{entry['p_holm']:.4f}")
                for entry in analysis["differential"]
            ),
        ],
        right=(2, 3),
    )
    short = analysis["short_form"]
    if "reason" in short:
        yield f"no short form: {short['reason']}"
    else:
        yield (
            f"short form: {len(short['statements'])} statements keep the ranks on the half that did not choose them "
            f"(rho {short['rank_correlation']:.2f})"
        )
        between = {"short form": "independent_correlation", "all items": "whole_correlation"}
        known = [f"{name} {short[key]:.2f}" for name, key in between.items() if key in short]
        if known:
            yield f"with all items on the other half: {', '.join(known)}"
