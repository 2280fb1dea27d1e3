"""Store the exchanges of a file as client traffic of the deployments that the user names.

JSONL and CSV are read row by row, a JSON document as a whole. ``exchange_line`` and ``spend_log`` read the rows; this
module decides which are stored. Imported exchanges have the tag ``imported`` and no configuration of ours, and are read
and counted like any other traffic of their route.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import Config
from auditor.documents.input_files import BOM, csv_rows, opened, read_all
from auditor.documents.jsonl import BadRow, Record, Rows, parse
from auditor.domain.exchange import Capture, Exchange, Origin
from auditor.domain.ids import id_time
from auditor.errors import InputError
from auditor.store.exchanges import add_exchanges
from replay.files import spend_log
from replay.files.exchange_line import ExcludedRow, exchange_of
from replay.files.trace_rows import line_of_observation, line_of_span

#: The maximum size of a batch: rows, and bytes of content.
_ROWS: Final = 500
_BYTES: Final = 8 << 20
IMPORTED: Final = "imported"
ANY: Final = "*"


class ImportFormat(StrEnum):
    """The program that wrote the rows; also the value of the tag."""

    BIASMETER = "biasmeter"
    LITELLM = "litellm"
    LANGFUSE = "langfuse"
    SPANS = "spans"


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportOptions:
    """How rows are imported."""

    form: ImportFormat
    deployments: Mapping[str, str]  #: ours, by the name of a deployment or a model in the file; ``*`` for all others
    content: bool  #: whether to store requests and answers, or only their hashes
    now: datetime


@dataclass(kw_only=True, slots=True)
class ImportCounts:
    """How many of a file's rows were stored, and why the others were not."""

    stored: int = 0
    known: int = 0  #: already stored, and not changed
    left_out: Counter[str] = field(default_factory=Counter)
    skipped: int = 0  #: bad rows
    complaints: list[str] = field(default_factory=list)


async def import_exchanges(
    engine: AsyncEngine,
    config: Config,
    path: Path,
    terms: ImportOptions,
    *,
    skip_bad: bool,
    on_bytes: Callable[[int], None],
) -> ImportCounts:
    """Store a file's exchanges in batches. Batches before an error stay stored and are skipped the next time.

    Raises
    ------
    InputError
        A row is bad and bad rows are not skipped, or the file cannot be read.
    StoreUnavailable
        PostgreSQL does not answer.
    """
    taken, admit = ImportCounts(), admission(config, terms)
    batch: list[Exchange] = []
    size = 0
    rows = Rows(path, skip_bad=skip_bad, on_bytes=on_bytes)
    make = _MAKERS[terms.form]
    for _, made in read_rows(rows, lambda record: _unless_left_out(make, record), on_bytes):
        result = admit(made) if isinstance(made, Exchange) else made
        if isinstance(result, str):
            taken.left_out[result] += 1
            continue
        batch.append(result)
        size += len(result.request or b"") + len(result.response or b"")
        if len(batch) >= _ROWS or size >= _BYTES:
            await _store(engine, batch, taken)
            batch, size = [], 0
    await _store(engine, batch, taken)
    taken.skipped, taken.complaints = rows.skipped, rows.complaints
    return taken


async def _store(engine: AsyncEngine, batch: list[Exchange], taken: ImportCounts) -> None:
    new = await add_exchanges(engine, batch)
    taken.stored += new
    taken.known += len(batch) - new


_MAKERS: Final[Mapping[ImportFormat, Callable[[Record], Exchange]]] = {
    ImportFormat.BIASMETER: exchange_of,
    ImportFormat.LITELLM: lambda record: exchange_of(spend_log.line_of(record)),
    ImportFormat.LANGFUSE: lambda record: exchange_of(line_of_observation(record)),
    ImportFormat.SPANS: lambda record: exchange_of(line_of_span(record)),
}


def _unless_left_out(make: Callable[[Record], Exchange], record: Record) -> Exchange | str:
    try:
        return make(record)
    except ExcludedRow as reason:
        return str(reason)


def admission(config: Config, terms: ImportOptions) -> Callable[[Exchange], Exchange | str]:
    """Return a function that returns an exchange as it is stored, or the reason why it is not stored."""
    declared = {entry.name for entry in config.deployments}
    routes = {route.model for route in config.routes}
    kept_for = config.retention.content if terms.content else config.retention.facts
    oldest = terms.now - timedelta(seconds=kept_for)

    def admit(exchange: Exchange) -> Exchange | str:
        if exchange.origin is not Origin.CLIENT:
            # A probe or a replay cannot be read without its plan, and no metric mixes origins.
            return f"origin {exchange.origin}"
        if not oldest <= id_time(exchange.id) <= terms.now:
            return "older_than_retention" if id_time(exchange.id) < oldest else "in_the_future"
        names = (exchange.deployment, exchange.model, ANY)
        deployment = next((terms.deployments[name] for name in names if name in terms.deployments), exchange.deployment)
        if deployment not in declared:
            return f"deployment {deployment[:60]} not declared"
        route = next((name for name in (exchange.route, exchange.model, ANY) if name in routes), None)
        if route is None:
            return f"no route for model {exchange.model[:60]}"
        tags = {**exchange.tags, IMPORTED: str(terms.form)}
        admitted = exchange._replace(deployment=deployment, route=route, tags=tags)
        return admitted if terms.content else _hashed(admitted)

    return admit


def _hashed(exchange: Exchange) -> Exchange:
    return exchange._replace(
        capture=Capture.HASHED,
        request_hash=exchange.request_hash or _sha256(exchange.request),
        response_hash=exchange.response_hash or _sha256(exchange.response),
        request=None,
        response=None,
    )


def _sha256(body: bytes | None) -> bytes | None:
    return sha256(body).digest() if body is not None else None


_Made = TypeVar("_Made")
#: A row's first line, and a function that reads the row.
_Row = tuple[int, Callable[[], Record]]


class _Page(msgspec.Struct):
    """A document that is an object."""

    data: list[msgspec.Raw]


def read_rows(
    rows: Rows, make: Callable[[Record], _Made], on_bytes: Callable[[int], None]
) -> Iterator[tuple[int, _Made]]:
    """Yield the line number and the result of ``make`` for each row of a file of any of these formats.

    Raises
    ------
    InputError
        A row is bad and ``rows`` does not skip it, or the file cannot be read or has no rows.
    """
    with opened(rows.path) as (raw, plain):
        if rows.path.name.removesuffix(".gz").endswith(".csv"):
            parsed_rows = _csv_rows(rows, plain)
        elif _is_document(plain):
            parsed_rows = _document_rows(rows, plain)
        else:
            yield from rows.read(make)
            return
        count = 0
        with closing(parsed_rows):
            for line, read in parsed_rows:
                count += 1
                on_bytes(raw.tell())
                try:
                    made = make(read())
                except BadRow as bad:
                    rows.complain(line, str(bad))
                    continue
                yield line, made
    if count == 0:
        raise InputError(f"{rows.path}: holds no rows")
    if rows.skipped == count:
        raise InputError(f"{rows.path}: every row is bad; the first: {rows.complaints[0]}")


def _is_document(plain: BufferedReader) -> bool:
    """Return whether the file is one JSON document and not JSONL."""
    start = plain.peek()[:4096].removeprefix(BOM).lstrip()
    if not start.startswith(b"{"):
        return start.startswith(b"[")
    # An object of many lines, or a whole page on the first.
    return start[1:].lstrip(b" \t\r").startswith(b"\n") or start[1:].lstrip().startswith(b'"data"')


def _document_rows(rows: Rows, plain: BufferedReader) -> Generator[_Row]:
    body = read_all(rows.path, plain)
    try:
        document = msgspec.json.decode(body, type=list[msgspec.Raw] | _Page)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{rows.path}: is neither a JSON list of rows nor an object with data: {reason}") from None
    line, place = 1, 0
    for part in document.data if isinstance(document, _Page) else document:
        row = bytes(part)
        start = body.index(row, place)
        line, place = line + body.count(b"\n", place, start), start
        yield line, lambda row=row: parse(row)  # type: ignore[misc]
        line, place = line + row.count(b"\n"), start + len(row)


def _csv_rows(rows: Rows, plain: BufferedReader) -> Generator[_Row]:
    with closing(csv_rows(rows.path, plain)) as table:
        _, header = next(table, (1, []))
        for line, values in table:
            yield line, lambda values=values: _named(header, values)  # type: ignore[misc]


def _named(header: list[str], values: list[str]) -> Record:
    if len(values) != len(header):
        raise BadRow(f"has {len(values)} fields, and the header {len(header)}")
    # PostgreSQL writes NULL as nothing.
    return {name: value for name, value in zip(header, values, strict=True) if value}
