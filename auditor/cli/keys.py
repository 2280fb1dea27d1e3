"""``biasmeter key create|list|revoke``: client keys. A key is shown once; only its SHA-256 is stored."""

import os
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from auditor.domain.keys import Key, Right, hash_secret, new_key_id, new_secret
from auditor.errors import UsageError
from biasmeter.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke client keys.")

T = TypeVar("T")

_MOST = (1 << 31) - 1  # what a limit may be; the store holds 32 bits


@app.command("create")
def _create(
    config: ConfigOption,
    name: Annotated[str, typer.Option(help="Name of the key, shown in lists.")],
    models: Annotated[str, typer.Option(help="Models that the key may use, separated by commas. Default: all.")] = "",
    rpm: Annotated[int | None, typer.Option(min=1, max=_MOST, help="Limit of requests a minute on each host.")] = None,
    tpm: Annotated[int | None, typer.Option(min=1, max=_MOST, help="Limit of tokens a minute on each host.")] = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0.01, max=_MOST, help="Limit of cost in USD over all hosts, for the lifetime of the key."),
    ] = None,
    expires: Annotated[str | None, typer.Option(help="Lifetime, such as 30d. Default: no end.")] = None,
    allow: Annotated[str, typer.Option(help="Rights, separated by commas: pin, origin, audit-off, audit.")] = "",
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
    whose only right is audit is not for applications.
    """
    from auditor.store.keys import add_key, list_keys

    loaded = _load(config)
    asked_for = _names(models)
    _check_models(asked_for, [route.model for route in loaded.routes])
    now = datetime.now(UTC)
    secret = new_secret()
    key = Key(
        id=new_key_id(),
        name=_checked_name(name),
        hash=hash_secret(secret),
        models=asked_for,
        rights=_rights(allow),
        rpm=rpm,
        tpm=tpm,
        budget=budget,
        expires_at=now + _lifetime(expires) if expires is not None else None,
    )

    async def add(connection: "AsyncConnection") -> None:
        gateway = loaded.gateway
        if key.is_for_clients and gateway.auth == "keys" and gateway.listen.is_loopback:
            others = await list_keys(connection)
            if not any(other.is_for_clients for other, _ in others):
                _announce_closing(str(gateway.listen), yes=yes)
        await add_key(connection, key, now)

    _with_store(loaded, add)
    if json:
        _print_json({"id": key.id, "key": secret})
    else:
        typer.echo(f"{key.id}  {secret}")
        typer.echo("This is the only time the key is shown. Gateways know it within 5 seconds.", err=True)


def _announce_closing(address: str, *, yes: bool) -> None:
    said = (
        f"this is the first client key: from now on the gateway on {address} refuses requests without a key, and "
        "revoking this key does not change that"
    )
    if yes:
        typer.echo(said, err=True)
    elif not sys.stdin.isatty():
        raise UsageError(f"{said}; --yes creates it")
    else:
        typer.confirm(f"{said[0].upper()}{said[1:]}. Create it?", abort=True, err=True)


@app.command("list")
def _list(config: ConfigOption, json: JsonOption = False) -> None:
    """List all keys, also revoked ones, with the spending of those that have a budget."""
    from auditor.store.keys import list_keys, spent_by_keys

    async def read(connection: "AsyncConnection") -> tuple[list[tuple[Key, datetime]], dict[str, int]]:
        return await list_keys(connection), await spent_by_keys(connection)

    keys, spent = _with_store(_load(config), read)
    if json:
        _print_json([_shown(key, created, spent.get(key.id)) for key, created in keys])
    elif keys:
        _print_table([(key, _shown(key, created, spent.get(key.id))) for key, created in keys])
    else:
        typer.echo("no keys yet; make one with: biasmeter key create --name NAME")


def _print_table(keys: list[tuple[Key, dict[str, Any]]]) -> None:
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
            *(str(row[name] if row[name] is not None else "-") for name in ("rpm", "tpm", "budget")),
            "-" if row["spent_usd"] is None else f"{row['spent_usd']:.4f}",
            key.expires_at.date().isoformat() if key.expires_at else "-",
            row["created_at"][:10],
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
    from auditor.config import load

    return load(config, os.environ)


def _with_store(loaded: Any, work: Callable[["AsyncConnection"], Awaitable[T]]) -> T:
    from auditor.cli.store import in_store
    from auditor.store.engine import transaction

    async def run(engine: "AsyncEngine") -> T:
        async with transaction(engine) as connection:
            return await work(connection)

    return in_store(loaded, run)


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(",") if name.strip())


def _check_models(asked_for: tuple[str, ...], routed: list[str]) -> None:
    if "*" in routed:
        return
    for model in asked_for:
        if model not in routed:
            raise UsageError(f"--models: no route has the model {model!r}; known: {', '.join(routed)}")


def _rights(listed: str) -> frozenset[Right]:
    try:
        return frozenset(Right(name) for name in _names(listed))
    except ValueError as error:
        raise UsageError(f"--allow: {error}; the rights are: {', '.join(Right)}") from None


def _lifetime(text: str) -> timedelta:
    from auditor.config import parse_duration

    try:
        lifetime = timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError):
        raise UsageError(f"--expires: {text!r} is not a duration such as 30d or 12h") from None
    if lifetime <= timedelta(0):
        raise UsageError("--expires: must be more than 0")
    return lifetime


def _checked_name(name: str) -> str:
    if not name.strip() or len(name) > 200 or not name.isprintable():
        raise UsageError("--name: must be 1 to 200 printable characters")
    return name.strip()


def _shown(key: Key, created: datetime, spent: int | None) -> dict[str, Any]:
    """Return a key as JSON. Spending (given in nano-USD) is counted only for keys with a budget."""
    if spent is None and key.budget is not None:
        spent = 0
    return {
        "id": key.id,
        "name": key.name,
        "models": list(key.models),
        "rights": sorted(key.rights),
        "rpm": key.rpm,
        "tpm": key.tpm,
        "budget": key.budget,
        "spent_usd": None if spent is None else spent / 1e9,
        "created_at": created.isoformat(),
        "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        "revoked": key.revoked,
    }


def _print_json(value: object) -> None:
    import json

    typer.echo(json.dumps(value))
