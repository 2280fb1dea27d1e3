"""Exchanges from a file into the store, as clients' traffic of the deployments that the user names.

``exchange_file`` and ``spend_log`` say what a row means; here is decided what of it is taken. What came in so is marked
by the tag ``imported``, has no configuration of ours, and is read and counted like any other traffic of its route.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import Config
from auditor.domain.exchange import Capture, Exchange, Origin
from auditor.domain.ids import id_time
from auditor.rows import Record, Rows
from auditor.store.arrivals import add_exchanges
from replay.files import spend_log
from replay.files.exchange_file import LeftOut, exchange_of
from replay.files.row_files import read_rows

#: What a batch holds at most: rows, and bytes of content.
_ROWS: Final = 500
_BYTES: Final = 8 << 20
IMPORTED: Final = "imported"
ANY: Final = "*"


class Form(StrEnum):
    """Whose rows they are; also the value of the tag."""

    TILTMETER = "tiltmeter"
    LITELLM = "litellm"


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """On what terms rows are taken."""

    form: Form
    deployments: Mapping[str, str]  #: ours, by the name of a deployment or a model in the file; ``*`` for all others
    content: bool  #: whether request and answer are kept, or only their hashes
    now: datetime


@dataclass(kw_only=True, slots=True)
class Taken:
    """What became of a file's rows."""

    stored: int = 0
    known: int = 0  #: were there already, and stay as they are
    left_out: Counter[str] = field(default_factory=Counter)
    skipped: int = 0  #: bad rows
    complaints: list[str] = field(default_factory=list)


async def import_exchanges(
    engine: AsyncEngine,
    config: Config,
    path: Path,
    terms: Terms,
    *,
    skip_bad: bool,
    on_bytes: Callable[[int], None],
) -> Taken:
    """Store a file's exchanges, in batches: after an error, what came before it is there and is known the next time.

    Raises
    ------
    InputError
        At the first bad row, unless they are skipped; for a file that cannot be read.
    StoreUnavailable
        PostgreSQL does not answer.
    """
    taken, admit = Taken(), admission(config, terms)
    batch: list[Exchange] = []
    size = 0
    rows = Rows(path, skip_bad=skip_bad, on_bytes=on_bytes)
    make = _MAKERS[terms.form]
    for _, made in read_rows(rows, lambda record: _unless_left_out(make, record), on_bytes):
        one = admit(made) if isinstance(made, Exchange) else made
        if isinstance(one, str):
            taken.left_out[one] += 1
            continue
        batch.append(one)
        size += len(one.request or b"") + len(one.response or b"")
        if len(batch) >= _ROWS or size >= _BYTES:
            await _store(engine, batch, taken)
            batch, size = [], 0
    await _store(engine, batch, taken)
    taken.skipped, taken.complaints = rows.skipped, rows.complaints
    return taken


async def _store(engine: AsyncEngine, batch: list[Exchange], taken: Taken) -> None:
    new = await add_exchanges(engine, batch)
    taken.stored += new
    taken.known += len(batch) - new


_MAKERS: Final[Mapping[Form, Callable[[Record], Exchange]]] = {
    Form.TILTMETER: exchange_of,
    Form.LITELLM: lambda record: exchange_of(spend_log.line_of(record)),
}


def _unless_left_out(make: Callable[[Record], Exchange], record: Record) -> Exchange | str:
    try:
        return make(record)
    except LeftOut as reason:
        return str(reason)


def admission(config: Config, terms: Terms) -> Callable[[Exchange], Exchange | str]:
    """Make the rule that gives an exchange as it is stored, or why it is not."""
    declared = {one.name for one in config.deployments}
    routes = {route.model for route in config.routes}
    kept_for = config.retention.content if terms.content else config.retention.facts
    oldest = terms.now - timedelta(seconds=kept_for)

    def admit(one: Exchange) -> Exchange | str:
        if one.origin is not Origin.CLIENT:
            # A probe or a replay means nothing without its plan, and no metric mixes origins.
            return f"origin {one.origin}"
        if not oldest <= id_time(one.id) <= terms.now:
            return "older_than_retention" if id_time(one.id) < oldest else "in_the_future"
        names = (one.deployment, one.model, ANY)
        deployment = next((terms.deployments[name] for name in names if name in terms.deployments), one.deployment)
        if deployment not in declared:
            return f"deployment {deployment[:60]} not declared"
        route = next((name for name in (one.route, one.model, ANY) if name in routes), None)
        if route is None:
            return f"no route for model {one.model[:60]}"
        tags = {**one.tags, IMPORTED: str(terms.form)}
        admitted = one._replace(deployment=deployment, route=route, tags=tags)
        return admitted if terms.content else _hashed(admitted)

    return admit


def _hashed(one: Exchange) -> Exchange:
    return one._replace(
        capture=Capture.HASHED,
        request_hash=one.request_hash or _digest(one.request),
        response_hash=one.response_hash or _digest(one.response),
        request=None,
        response=None,
    )


def _digest(body: bytes | None) -> bytes | None:
    return sha256(body).digest() if body is not None else None
