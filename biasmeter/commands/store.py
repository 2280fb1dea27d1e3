"""``biasmeter migrate``, ``retention`` and ``erase``: the schema of the store, and what it no longer keeps."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import typer

from auditor.errors import AuditError, UsageError
from biasmeter.terminal.options import ConfigOption, user_name
from biasmeter.terminal.tables import table_lines

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.config import Config
    from auditor.domain.erasure import ErasureSelector
    from auditor.store.retention import Expired
    from gateway.recording.spool_search import SpoolFindings

app = typer.Typer()

#: Seconds for the shipper to pass the overwritten records, and between two looks at how far it is.
_PATIENCE: Final = 60.0
_POLL: Final = 0.1


@app.command("migrate")
def _migrate(config: ConfigOption) -> None:
    """Migrate the store to the schema of this release. No other command changes the schema."""
    from auditor.config import load_without_upstream_keys
    from auditor.postgres.embedded import open_store
    from auditor.store.engine import make_engine
    from auditor.store.schema import migrate

    async def run(database_url: str) -> tuple[str | None, str]:
        engine = make_engine(database_url)
        try:
            return await migrate(engine)
        finally:
            await engine.dispose()

    loaded = load_without_upstream_keys(config, os.environ)
    with open_store(loaded.data_dir, loaded.database_url(os.environ)) as database_url:
        before, after = asyncio.run(run(database_url))
    typer.echo(f"the store has schema {after} already" if before == after else f"the store now has schema {after}")


@app.command("retention")
def _retention(
    config: ConfigOption,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what is due, and remove nothing.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="PostgreSQL's clock is right: remove all that is due by it, however much.")
    ] = False,
) -> None:
    """Remove content and facts that are older than the configuration keeps them, as the auditor does every hour.

    Prints a line for each partition, and for each table whose rows are removed one by one. What may be due only because
    a clock is wrong is kept and named, unless --yes confirms its removal.
    """
    from auditor.config import load_without_upstream_keys
    from auditor.store.engine import transaction
    from auditor.store.expiry import Expiry, find_expiry
    from auditor.store.retention import find_expired, remove_expired
    from biasmeter.store_work import in_store

    loaded = load_without_upstream_keys(config, os.environ)
    content, facts = loaded.retention.content, loaded.retention.facts

    async def run(engine: "AsyncEngine") -> tuple[Expiry, list["Expired"]]:
        async with transaction(engine) as connection:
            expiry = await find_expiry(connection, content, facts, confirmed=yes)
        return expiry, await (find_expired if dry_run else remove_expired)(engine, expiry.bounds)

    expiry, expired = in_store(loaded, run)
    bounds = expiry.bounds
    for held in expiry.held:
        typer.echo(f"biasmeter: {held}", err=True)
    if expired:
        typer.echo("\n".join(table_lines(_expired_rows(loaded, expired), right=(1, 2))))
    else:
        typer.echo(f"nothing is due: content is kept from {bounds.content} on, facts from {bounds.facts} on")


def _expired_rows(config: "Config", expired: Sequence["Expired"]) -> Iterator[tuple[str, ...]]:
    from auditor.config import format_duration
    from auditor.store.lifetimes import Lifetime

    kept = {Lifetime.CONTENT: config.retention.content, Lifetime.FACTS: config.retention.facts}
    yield ("what", "rows", "bytes", "why")
    for entry in expired:
        why = f"{entry.lifetime} older than {format_duration(kept[entry.lifetime])} (before {entry.before})"
        if entry.blocked:
            why += "; in use, left for the next run"
        yield (entry.what, f"{entry.rows:,}", f"{entry.bytes:,}", why)


@app.command("erase")
def _erase(
    config: ConfigOption,
    exchange: Annotated[str | None, typer.Option(metavar="ID", help="Erase one exchange.")] = None,
    key: Annotated[str | None, typer.Option(metavar="ID", help="Erase all exchanges of a client key.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="K=V", help="Erase all exchanges with this tag.")] = None,
    user: Annotated[
        str | None,
        typer.Option(help="Erase all exchanges whose request names this end user (user, safety_identifier)."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase exchanges and what was made of each of them, in the store and in the spool of this host.

    Lists the rows by table and asks before it removes them. Numbers that counted them are counted again.
    """
    from auditor.config import load_without_upstream_keys
    from biasmeter.store_work import in_store

    selector = _selector(exchange, key, tag, user)
    loaded = load_without_upstream_keys(config, os.environ)
    in_store(loaded, lambda engine: _erase_selected(engine, loaded, selector, yes=yes))


def _selector(exchange: str | None, key: str | None, tag: str | None, user: str | None) -> "ErasureSelector":
    from auditor.domain.erasure import ErasureSelector, SelectorKind

    options = {SelectorKind.EXCHANGE: exchange, SelectorKind.KEY: key, SelectorKind.TAG: tag, SelectorKind.USER: user}
    named = [(kind, value) for kind, value in options.items() if value is not None]
    if len(named) != 1 or not named[0][1]:
        raise UsageError("name what to erase by exactly one of --exchange, --key, --tag and --user")
    kind, value = named[0]
    name = ""
    if kind is SelectorKind.TAG:
        name, separator, value = value.partition("=")
        if not separator or not name:
            raise UsageError(f"--tag: {tag!r} is not NAME=VALUE")
    if kind is SelectorKind.EXCHANGE:
        try:
            value = str(UUID(value))
        except ValueError:
            raise UsageError(f"--exchange: {exchange!r} is not the id of an exchange") from None
    if "\0" in value or "\0" in name:
        raise UsageError("a value with a NUL character is in no exchange")
    return ErasureSelector(kind=kind, value=value, tag=name)


async def _erase_selected(engine: "AsyncEngine", loaded: "Config", selector: "ErasureSelector", *, yes: bool) -> None:
    import secrets

    from auditor.store.erasure import begin_erasure, count_selected, end_erasure, erase, find_selected
    from gateway.bootstrap import folders
    from gateway.recording.spool_search import erase_records, find_records

    spool = folders(loaded).spool
    by_user = [audit.name for audit in loaded.audits if audit.cluster is None]
    ids = await find_selected(engine, selector, by_user)
    findings = find_records(spool, selector, ids)
    counts = await count_selected(engine, ids)
    _print_counts("found", counts, findings.count)
    if findings.unreadable:
        typer.echo(
            f"{findings.unreadable} files in {spool / 'quarantine'} cannot be read; look at them yourself", err=True
        )
    if not counts and not findings.count:
        return
    if not yes:
        _confirm()
    erasure_id = f"erasure_{secrets.token_hex(6)}"
    await begin_erasure(engine, erasure_id, selector, user_name() or "unknown", datetime.now(UTC))
    erase_records(findings)
    await _wait_for_the_shipper(spool, findings)
    # Again: some may have arrived meanwhile, and what was in the spool may be in the store now.
    ids = await find_selected(engine, selector, by_user) | findings.ids
    removed = await erase(engine, erasure_id, ids)
    await end_erasure(engine, erasure_id, removed | ({"spool": findings.count} if findings.count else {}))
    _print_counts("erased", removed, findings.count)
    typer.echo(f"recorded as {erasure_id}")


def _print_counts(what: str, counts: Mapping[str, int], spooled: int) -> None:
    rows = [(table, f"{count:,}") for table, count in (*counts.items(), ("spool", spooled)) if count]
    typer.echo("\n".join(table_lines([(what, "rows"), *rows], right=(1,))) if rows else f"{what} nothing")


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise UsageError("nothing was erased: there is nobody to ask; --yes erases")
    typer.confirm("Erase them?", abort=True, err=True)


async def _wait_for_the_shipper(spool: Path, findings: "SpoolFindings") -> None:
    """Wait until the shipper has passed the overwritten records: what it had read before is in the store then."""
    from gateway.recording.spool_search import shipped_past

    deadline = time.monotonic() + _PATIENCE
    while not shipped_past(spool, findings):
        if time.monotonic() > deadline:
            raise AuditError(
                "the shipper does not get on with the spool; the spool is erased, the store is not: try again"
            )
        await asyncio.sleep(_POLL)
