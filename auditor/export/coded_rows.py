"""Write stored codings as rows of ``coded.jsonl``, which ``analyze`` counts as the store does."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.coding.coders import open_coders
from auditor.coding.exchanges import UnreadExchange, answer_of, planned_answer, stored_text
from auditor.config import Config
from auditor.counting.conditions import TRAFFIC
from auditor.documents.dataset import DatasetCard, data_file, write_card
from auditor.documents.row_files import writing_rows
from auditor.store.answers import CodedSelection, read_coded
from auditor.store.codings import StoredAnswer, read_again
from auditor.store.engine import transaction

#: The options of a closed question, as they were asked.
OPTIONS: Final = ("stereotype_option", "counter_option", "option_a", "option_b")
#: Fields of a row, in the order of their columns.
COLUMNS: Final = (
    "id", "at", "deployment", "origin", "rubric", "audit", "claim", "task", "perspective", "role", "sentiment",
    "category", "statement_id", "statement", *OPTIONS, "template_id", "draw", "inclusion", "completion_tokens", "sel",
    "sel_reason", "sel_via", "elab", "elab_reason", "votes", "coder", "response",
)  # fmt: skip
#: Types of the columns that are not text, for Parquet.
_TYPES: Final = {"draw": "int64", "inclusion": "float64", "completion_tokens": "int64", "votes": "votes"}
_COPIED: Final = ("deployment", "origin", "audit", "perspective", "role", "sentiment", "category", "claim", "rubric")
_CODED: Final = ("sel", "sel_reason", "sel_via", "elab", "elab_reason", "inclusion", "coder")


async def coded_rows(
    engine: AsyncEngine, config: Config, selection: CodedSelection, *, content: bool = True, templates: bool = False
) -> AsyncIterator[dict[str, Any]]:
    """Yield a row for each exchange that the configuration's coders have coded, the oldest first.

    Parameters
    ----------
    content
        Whether rows have the statement and the response, where they are stored.
    templates
        Whether rows have ``template_id``. ``analyze`` then takes the wordings for a sample; the stored estimates, which
        do not know them, hold for these wordings.

    Yields
    ------
    dict
        The fields of ``COLUMNS`` that have a value. The id is that of the exchange. ``statement_id`` is the cluster of
        the interval: the statement of a planned call, and for client traffic who asked; its ``task`` is ``traffic``.

    Raises
    ------
    StoreUnavailable
        PostgreSQL does not answer.
    """
    async with open_coders(config, asking=False) as coders:
        ids = [coder.id for coder in coders]
    async with transaction(engine) as connection:
        await connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        async for page in read_coded(connection, ids, selection):
            answers = await read_again(connection, [coding["exchange_id"] for coding, _ in page])
            stored = {each.facts["id"]: each for each in answers}
            for coding, votes in page:
                row = _row(coding, votes, stored.get(coding["exchange_id"]), content=content)
                if not templates:
                    row.pop("template_id", None)
                yield row


#: What the README of exported codings says of them.
_CARD: Final = DatasetCard(
    name="coded",
    description="Answers of deployed language models, coded by Biasmeter on two layers: the selection and the "
    "elaboration.",
    text="**Content warning.** Statements and answers can hold stereotypes. Labels: E endorses, QE endorses with a "
    "reservation, N neutral, D disagrees, R refuses, Abstain no label. `votes` are the labels of the judges. "
    "`biasmeter.analyze(rows)` estimates from the rows.",
    license="other",
    license_text="none is given; ask those who made the data",
    tags=("bias", "evaluation"),
)


async def export_dataset(
    engine: AsyncEngine,
    config: Config,
    selection: CodedSelection,
    folder: Path,
    *,
    content: bool,
    templates: bool,
    on_row: Callable[[int], None],
) -> int:
    """Write the rows as a data set folder, as `auditor.documents.dataset` makes it; otherwise as `export_coded`."""
    file = data_file(folder, _CARD.name)
    count = await export_coded(engine, config, selection, file, content=content, templates=templates, on_row=on_row)
    write_card(folder, _CARD, COLUMNS, _TYPES, count)
    return count


async def export_coded(
    engine: AsyncEngine,
    config: Config,
    selection: CodedSelection,
    out: Path,
    *,
    content: bool,
    templates: bool,
    on_row: Callable[[int], None],
) -> int:
    """Write the rows of ``coded_rows`` to a file, and return their number.

    Raises
    ------
    UsageError, InputError
        The name of the file has no known ending; the file cannot be written.
    StoreUnavailable
        PostgreSQL does not answer.
    """
    count = 0
    with writing_rows(out, COLUMNS, _TYPES) as write:
        async for row in coded_rows(engine, config, selection, content=content, templates=templates):
            write(row)
            count += 1
            on_row(count)
    return count


def _row(
    coding: Mapping[str, Any], votes: Sequence[Mapping[str, Any]], stored: StoredAnswer | None, *, content: bool
) -> dict[str, Any]:
    row = {
        "id": str(coding["exchange_id"]),
        "task": coding["task"] or TRAFFIC,
        "statement_id": coding["cluster"],
        **{name: coding[name] for name in (*_COPIED, *_CODED)},
        "votes": [{"judge": vote["judge"], "label": vote["label"]} for vote in votes],
    }
    if stored is not None:
        call = stored.planned_call or {}
        row["at"] = stored.facts["at"].isoformat()
        row |= {name: call.get(name) for name in ("template_id", "draw")}
        row["completion_tokens"] = stored.facts["completion_tokens"]
        if content:
            row |= _question(stored)
            row["response"] = stored_text(stored)
    return {name: row[name] for name in COLUMNS if row.get(name) is not None}


def _question(stored: StoredAnswer) -> dict[str, Any]:
    """Return what a reader of the answer must know, so that the row can be coded again."""
    try:
        question = planned_answer(stored, None, answer_of(stored)).question if stored.planned_call is not None else None
    except UnreadExchange:
        question = None
    if question is None:
        return {"statement": (stored.statement or {}).get("statement")}
    return {name: getattr(question, name) for name in ("statement", *OPTIONS)}
