"""``biasmeter erase``: remove exchanges and what was made of each, from the store and from the spool of this host."""

from typing import TYPE_CHECKING, Annotated

import typer

from biasmeter.options import ConfigOption

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncEngine

    from auditor.config import Config
    from auditor.domain.erasure import ErasureSelector
    from gateway.recording.spool_search import SpoolFindings

app = typer.Typer()

_PATIENCE = 60.0  # seconds for the shipper to pass the overwritten records
_POLL = 0.1


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
    import asyncio
    import os

    from auditor.config import load
    from auditor.postgres.embedded import open_store
    from auditor.store.engine import make_engine
    from auditor.store.schema import check_version

    selector = _selector(exchange, key, tag, user)
    loaded = load(config, os.environ)

    async def run(database_url: str) -> None:
        engine = make_engine(database_url)
        try:
            await check_version(engine)
            await _run(engine, loaded, selector, yes=yes)
        finally:
            await engine.dispose()

    with open_store(loaded.data_dir, loaded.database_url(os.environ)) as database_url:
        asyncio.run(run(database_url))


def _selector(exchange: str | None, key: str | None, tag: str | None, user: str | None) -> "ErasureSelector":
    from uuid import UUID

    from auditor.domain.erasure import ErasureSelector, SelectorKind
    from auditor.errors import UsageError

    given = {SelectorKind.EXCHANGE: exchange, SelectorKind.KEY: key, SelectorKind.TAG: tag, SelectorKind.USER: user}
    named = [(kind, value) for kind, value in given.items() if value is not None]
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


async def _run(engine: "AsyncEngine", loaded: "Config", selector: "ErasureSelector", *, yes: bool) -> None:
    import secrets
    from datetime import UTC, datetime

    from auditor.store.erasure import begin_erasure, count_selected, end_erasure, erase, find_selected
    from gateway.bootstrap import folders
    from gateway.recording.spool_search import erase_records, find_records

    spool = folders(loaded).spool
    by_user = [audit.name for audit in loaded.audits if audit.cluster is None]
    ids = await find_selected(engine, selector, by_user)
    found = find_records(spool, selector, ids)
    counts = await count_selected(engine, ids)
    _tell("found", counts, found.count)
    if found.unreadable:
        typer.echo(
            f"{found.unreadable} files in {spool / 'quarantine'} cannot be read; look at them yourself", err=True
        )
    if not counts and not found.count:
        return
    if not yes:
        _ask()
    erasure_id = f"erasure_{secrets.token_hex(6)}"
    await begin_erasure(engine, erasure_id, selector, _person(), datetime.now(UTC))
    erase_records(found)
    await _wait_for_the_shipper(spool, found)
    # Again: some may have arrived meanwhile, and what was in the spool may be in the store now.
    ids = await find_selected(engine, selector, by_user) | found.ids
    removed = await erase(engine, erasure_id, ids)
    await end_erasure(engine, erasure_id, removed | ({"spool": found.count} if found.count else {}))
    _tell("erased", removed, found.count)
    typer.echo(f"recorded as {erasure_id}")


def _tell(what: str, counts: "dict[str, int]", spooled: int) -> None:
    from biasmeter.tables import table_lines

    rows = [(table, f"{count:,}") for table, count in (*counts.items(), ("spool", spooled)) if count]
    typer.echo("\n".join(table_lines([(what, "rows"), *rows], right=(1,))) if rows else f"{what} nothing")


def _ask() -> None:
    import sys

    from auditor.errors import UsageError

    if not sys.stdin.isatty():
        raise UsageError("nothing was erased: there is nobody to ask; --yes erases")
    typer.confirm("Erase them?", abort=True, err=True)


def _person() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


async def _wait_for_the_shipper(spool: "Path", found: "SpoolFindings") -> None:
    """Wait until the shipper has passed the overwritten records: what it had read before is in the store then."""
    import asyncio
    import time

    from auditor.errors import AuditError
    from gateway.recording.spool_search import shipped_past

    deadline = time.monotonic() + _PATIENCE
    while not shipped_past(spool, found):
        if time.monotonic() > deadline:
            raise AuditError(
                "the shipper does not get on with the spool; the spool is erased, the store is not: try again"
            )
        await asyncio.sleep(_POLL)
