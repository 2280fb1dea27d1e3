"""``biasmeter review export|import``: random samples for people to label, and their labels back."""

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from auditor.domain.exchange import Origin
from auditor.errors import InputError, UsageError
from auditor.reviews.opinions import AnswerView, BadOpinion, Layer, opinion_of
from biasmeter.terminal.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from auditor.documents.jsonl import Record
    from auditor.reviews.label_file import ReviewFile
    from auditor.reviews.samples import DrawnSample, ReviewRequest, ShownText
    from auditor.store.reviews import Added, Review

app = typer.Typer(
    no_args_is_help=True, help="Export samples of coded answers for people to label, and import the labels."
)


@app.command("export")
def _export(
    config: ConfigOption,
    out: Annotated[Path, typer.Option("-o", "--out", help="File for the texts: .jsonl, .jsonl.gz or .csv.")],
    n: Annotated[int, typer.Option("--n", min=1, max=100_000, help="Number of texts.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    deployment: Annotated[
        list[str] | None, typer.Option(help="Draw only from this deployment; may be repeated.")
    ] = None,
    stratify: Annotated[
        str,
        typer.Option(metavar="FIELD,...", help="Draw equally from each kind: task, label, deployment, category, ..."),
    ] = "",
    origin: Annotated[
        str, typer.Option(help="Origin of the answers: probe or replay; with --audit: client.")
    ] = "probe",
    audit: Annotated[str | None, typer.Option(help="Draw from the traffic that this audit reads.")] = None,
    layers: Annotated[
        str,
        typer.Option(
            metavar="LAYER,...",
            help="Ask for these layers of the same answers: elab (the text), sel (the selected option), or both.",
        ),
    ] = "elab,sel",
    view: Annotated[
        str, typer.Option(help="Show what the coder of each layer reads (split), or the whole answer for both (whole).")
    ] = "split",
    draw: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Export this stored draw, such as a queue of the console, and draw nothing."),
    ] = None,
    show_deployment: Annotated[
        bool, typer.Option("--show-deployment", help="Show the deployment of each text. The labels are then not blind.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Draw a random sample of coded answers for people to label: the statement and the text the judges read.

    The file does not contain the judges' labels. Fill in the label of each line (E QE N D R Abstain) from the top, and
    import the file with `biasmeter review import`. The texts come first (layer elab), then the same answers as a whole
    (layer sel: which option was selected? E N D R Abstain). Labels of both layers correct IR and DNI.

    Example: biasmeter review export -c biasmeter.yaml -o sample.jsonl --n 300
    With whole answers: biasmeter review export -c biasmeter.yaml -o whole.jsonl --n 300 --view whole
    """
    from auditor.documents.jsonl import require_target
    from auditor.reviews.samples import draw_sample, read_sample
    from biasmeter.store_work import in_store

    loaded = _load(config)
    require_target(out, config)
    if view not in list(AnswerView):
        raise UsageError(f"--view: {view!r} is none of {', '.join(AnswerView)}")
    request, wanted = _request(n, seed, deployment, stratify, origin, audit), _layers(layers)
    if draw is None:
        sample = in_store(loaded, lambda engine: draw_sample(engine, loaded, request, datetime.now(UTC)))
    else:
        sample = in_store(loaded, lambda engine: read_sample(engine, loaded, draw))
    lines = [
        _record(sample, shown, layer, AnswerView(view), named=show_deployment)
        for layer in wanted
        for shown in sample.texts
        if (layer is Layer.ELAB or shown.has_selection)
        and ((layer, view) == (Layer.ELAB, AnswerView.SPLIT) or shown.passage.answer is not None)
    ]
    _write(out, lines)
    summary = {
        "out": str(out),
        "draw": sample.draw.id,
        "texts": len(sample.texts),
        "lines": len(lines),
        "of": sample.frame,
        "gone": sample.gone,
    }
    if as_json:
        typer.echo(json.dumps(summary))
        return
    typer.echo(
        f"{out}: {summary['lines']} lines of {summary['texts']} texts, of {summary['of']} coded answers, "
        f"{sample.draw.rubric}, {sample.draw.id}"
    )
    if sample.gone:
        typer.echo(
            f"warning: {sample.gone} more were drawn, but their text was removed or is not what the judges read",
            err=True,
        )


def _request(
    n: int, seed: int, deployments: list[str] | None, stratify: str, origin: str, audit: str | None
) -> "ReviewRequest":
    from auditor.reviews.samples import ReviewRequest
    from auditor.store.review_draws import STRATA

    strata = tuple(dict.fromkeys(name.strip() for name in stratify.split(",") if name.strip()))
    for name in strata:
        if name not in STRATA:
            raise UsageError(f"--stratify: {name!r} is not one of {', '.join(STRATA)}")
    planned = (Origin.PROBE.value, Origin.REPLAY.value)
    if origin not in planned and audit is None:
        raise UsageError(f"--origin: {origin!r} is not one of {', '.join(planned)}; for client traffic use --audit")
    return ReviewRequest(
        n=n,
        seed=seed,
        origin=origin if audit is None else Origin.CLIENT.value,
        audit=audit,
        deployments=tuple(deployments) if deployments else None,
        strata=strata,
    )


def _layers(text: str) -> list[Layer]:
    """Read ``--layers``; texts come first, so that they are read without the answer's selection."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in list(Layer):
            raise UsageError(f"--layers: {name!r} is none of {', '.join(Layer)}")
    return [layer for layer in (Layer.ELAB, Layer.SEL) if layer in names]


def _record(sample: "DrawnSample", shown: "ShownText", layer: Layer, view: AnswerView, *, named: bool) -> "Record":
    passage, selects = shown.passage, layer is Layer.SEL
    whole = selects or view is AnswerView.WHOLE
    return {
        "id": str(shown.exchange_id),
        "layer": layer.value,
        "view": view.value,
        "rubric": sample.draw.rubric,
        **({"deployment": shown.deployment} if named else {}),
        "statement": _encodable(passage.statement or ""),
        "question": _encodable(passage.question or "") if selects else None,
        "text": _encodable((passage.answer or "") if whole else passage.text),
        "label": None,
        "note": None,
    }


def _encodable(text: str) -> str:
    """Replace halves of surrogate pairs: a model can return them, but UTF-8 cannot encode them."""
    return text.encode("utf-8", "replace").decode()


def _write(out: Path, records: "Iterable[Record]") -> None:
    from auditor.documents.jsonl import writing
    from auditor.documents.row_files import writing_rows

    made = list(records)
    columns = list(made[0]) if made else ["id", "label"]
    with writing_rows(out, columns, {}) if out.suffix.lower() == ".csv" else writing(out) as write:
        for record in made:
            write(record)


@app.command("import")
def _import(
    config: ConfigOption,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `review export` with labels filled in.")],
    reviewer: Annotated[str, typer.Option(help="Name of the person who gave the labels.")],
    as_json: JsonOption = False,
) -> None:
    """Import people's labels: the whole file or nothing. Importing a file again changes nothing.

    A label that differs from an earlier one of the same reviewer replaces it; both are kept.
    """
    from auditor.reviews.label_file import read_review_file
    from biasmeter.store_work import in_store

    loaded = _load(config)
    try:
        opinion_of(reviewer=reviewer, layer="elab", label="E")
    except BadOpinion as bad:
        raise UsageError(f"--{bad}") from None
    read = read_review_file(file, reviewer)
    added = in_store(loaded, lambda engine: _store(engine, file, read))
    summary = {"new": added.new, "superseding": added.superseding, "unchanged": added.unchanged}
    if as_json:
        typer.echo(json.dumps({**summary, "unlabelled": read.unlabelled}))
        return
    typer.echo(
        f"{file}: {added.new} labels are new ({added.superseding} replace an earlier one), "
        f"{added.unchanged} are unchanged, {read.unlabelled} lines have no label"
    )


async def _store(engine: "AsyncEngine", file: Path, read: "ReviewFile") -> "Added":
    from auditor.store.engine import transaction
    from auditor.store.queue import ESTIMATE, ask_for
    from auditor.store.reviews import add_reviews

    async with transaction(engine) as connection:
        added = await add_reviews(connection, await _reviews(connection, file, read), datetime.now(UTC))
        if added.new:
            await ask_for(connection, ESTIMATE, "estimate:asked")
    return added


async def _reviews(connection: "AsyncConnection", file: Path, read: "ReviewFile") -> "list[Review]":
    """Find the exchanges and the rubric of each line.

    Raises
    ------
    InputError
        A line is of no exchange, or of one that no judge has read and names no rubric itself.
    """
    from auditor.judges.rubric import RUBRICS
    from auditor.store.reviews import Review, find_exchanges, find_rubrics

    ids = [_uuid(file, line.line, line.id) for line in read.lines]
    known, rubrics = await find_exchanges(connection, ids), await find_rubrics(connection, ids)
    made = []
    for line, key in zip(read.lines, ids, strict=True):
        if key not in known:
            raise InputError(f"{file}:{line.line}: there is no exchange {line.id}")
        rubric = line.rubric or rubrics.get(key)
        if line.rubric is not None and line.rubric not in RUBRICS:
            raise InputError(f"{file}:{line.line}: rubric must be one of {', '.join(RUBRICS)}")
        if rubric is None:
            raise InputError(f"{file}:{line.line}: no judge has read exchange {line.id}; name the line's rubric")
        made.append(Review(exchange_id=key, rubric=rubric, opinion=line.opinion))
    return made


def _uuid(file: Path, line: int, text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InputError(f"{file}:{line}: id {text!r} is not the id of an exchange") from None


def _load(config: Path) -> Any:
    from auditor.config import load_without_upstream_keys

    return load_without_upstream_keys(config, os.environ)
