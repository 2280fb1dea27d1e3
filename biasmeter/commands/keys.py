"""``biasmeter key create|list|revoke``: client keys. A key is shown once; only its SHA-256 is stored."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from auditor.domain.keys import Key, KeyRole
from auditor.errors import UsageError
from biasmeter.terminal.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from auditor.documents.service import ClientKeyEntry

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke client keys.")

T = TypeVar("T")

_MOST = (1 << 31) - 1  # what a limit may be; the store holds 32 bits


@app.command("create")
def _create(
    config: ConfigOption,
    name: Annotated[str, typer.Option(help="Name of the key, shown in lists.")],
    models: Annotated[str, typer.Option(help="Models that the key may use, separated by commas. Default: all.")] = "",
    rpm: Annotated[
        int | None, typer.Option(min=1, max=_MOST, help="Limit of requests a minute, over all hosts.")
    ] = None,
    tpm: Annotated[int | None, typer.Option(min=1, max=_MOST, help="Limit of tokens a minute, over all hosts.")] = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0.01, max=_MOST, help="Limit of cost in USD over all hosts, for the lifetime of the key."),
    ] = None,
    expires: Annotated[str | None, typer.Option(help="Lifetime, such as 30d. Default: no end.")] = None,
    allow: Annotated[str, typer.Option(help="Rights, separated by commas: pin, origin, audit-off, audit.")] = "",
    role: Annotated[
        KeyRole | None,
        typer.Option(
            help="Role in the auditor's console and API: viewer reads; reviewer also labels answers and acts on "
            "findings (the right audit); admin also makes keys and starts audits. Default: none."
        ),
    ] = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Create the first key without asking. From then on the gateway refuses requests without a key.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Create a client key. The key is printed once and not stored.

    A gateway on a loopback address serves requests without a key until the first key for applications exists. A key
    that has a role and no other right is not for applications.

    Example: biasmeter key create -c biasmeter.yaml --name ann --role reviewer
    """
    from auditor.access import wait_until_known
    from auditor.keys import KeyRequest, closes_gateway, make_key
    from auditor.store.keys import add_key

    loaded = _load(config)
    now = datetime.now(UTC)
    request = KeyRequest(
        name=name, models=models, allow=allow, role=role, rpm=rpm, tpm=tpm, budget=budget, expires=expires
    )
    try:
        key, secret = make_key(loaded, request, now)
    except UsageError as error:
        raise UsageError(f"--{error}") from None

    async def add(connection: "AsyncConnection") -> None:
        closing = await closes_gateway(connection, loaded, key)
        if closing is not None:
            _announce_closing(closing, yes=yes)
        await add_key(connection, key, now)

    _with_store(loaded, add)
    if json:
        _print_json({"id": key.id, "key": secret})
    else:
        typer.echo(f"{key.id}  {secret}")
    is_known = asyncio.run(wait_until_known(loaded, key))
    if is_known is False:
        typer.echo("The gateway on this host has not confirmed the key yet; its log says why.", err=True)
    elif not json:
        gateways = "The gateway on this host knows it, others do" if is_known else "Gateways know it"
        typer.echo(f"This is the only time the key is shown. {gateways} within 5 seconds.", err=True)


def _announce_closing(warning: str, *, yes: bool) -> None:
    if yes:
        typer.echo(warning, err=True)
    elif not sys.stdin.isatty():
        raise UsageError(f"{warning}; --yes creates it")
    else:
        typer.confirm(f"{warning[0].upper()}{warning[1:]}. Create it?", abort=True, err=True)


@app.command("list")
def _list(config: ConfigOption, json: JsonOption = False) -> None:
    """List all keys, also revoked ones, with the spending of those that have a budget."""
    from msgspec import to_builtins

    from auditor.keys import key_entry
    from auditor.store.keys import list_keys, spent_by_keys

    async def read(connection: "AsyncConnection") -> tuple[list[tuple[Key, datetime]], dict[str, int]]:
        return await list_keys(connection), await spent_by_keys(connection)

    keys, spent = _with_store(_load(config), read)
    rows = [(key, key_entry(key, created, spent.get(key.id))) for key, created in keys]
    if json:
        _print_json(to_builtins([row for _, row in rows]))
    elif keys:
        _print_table(rows)
    else:
        typer.echo("no keys yet; make one with: biasmeter key create --name NAME")


def _print_table(keys: list[tuple[Key, "ClientKeyEntry"]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for heading in ("id", "name", "state", "models", "rights", "rpm", "tpm", "budget", "spent", "expires", "made"):
        table.add_column(heading, min_width=16 if heading == "id" else None)
    for key, row in keys:
        table.add_row(
            key.id,
            key.name,
            "revoked" if key.revoked else ("usable" if key.usable(datetime.now(UTC)) else "expired"),
            ", ".join(key.models) or "all",
            ", ".join(sorted(key.rights)) or "-",
            *("-" if limit is None else str(limit) for limit in (row.rpm, row.tpm, row.budget)),
            "-" if row.spent_usd is None else f"{row.spent_usd:.4f}",
            key.expires_at.date().isoformat() if key.expires_at else "-",
            row.created_at[:10],
        )
    Console().print(table)


@app.command("revoke")
def _revoke(
    config: ConfigOption,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `key list` shows it.")],
) -> None:
    """Revoke a key. Gateways refuse it within 5 seconds."""
    from auditor.store.keys import revoke_key

    if not _with_store(_load(config), lambda connection: revoke_key(connection, key_id, datetime.now(UTC))):
        raise UsageError(f"there is no key {key_id!r}; `biasmeter key list` shows them")
    typer.echo(f"{key_id} is revoked")


def _load(config: Path) -> Any:
    from auditor.config import load_without_upstream_keys

    return load_without_upstream_keys(config, os.environ)


def _with_store(loaded: Any, work: Callable[["AsyncConnection"], Awaitable[T]]) -> T:
    from auditor.store.engine import transaction
    from biasmeter.store_work import in_store

    async def run(engine: "AsyncEngine") -> T:
        async with transaction(engine) as connection:
            return await work(connection)

    return in_store(loaded, run)


def _print_json(value: object) -> None:
    import json

    typer.echo(json.dumps(value))
