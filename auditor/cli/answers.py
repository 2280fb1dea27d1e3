"""What the commands share by which people say something to the watch: who says what, and the store it is kept in."""

import getpass
import json
import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from auditor.config import Config
    from auditor.jobs.findings import Person

T = TypeVar("T")

NoteOption = Annotated[str | None, typer.Option(help="What you have to say to it.")]
ByOption = Annotated[str | None, typer.Option(help="Who says so; without it, your name on this machine.")]
SinceOption = Annotated[
    datetime | None,
    typer.Option(formats=["%Y-%m-%d"], help="First day of the new reference; else that of the finding, or today."),
]
ReleaseOption = Annotated[str | None, typer.Option(help="A name for what is accepted, such as the release's.")]


def in_store(config: "Path", work: "Callable[[Config, AsyncConnection], Awaitable[T]]") -> T:
    """Do some work in one transaction on the store of a configuration.

    Raises
    ------
    StoreUnavailable
        It does not answer.
    SchemaMismatch
        It is of another version.
    """
    from auditor.cli.audit_store import in_store as on_engine
    from auditor.config import load
    from auditor.store.engine import reading

    loaded = load(config, os.environ)

    async def run(engine: "AsyncEngine") -> T:
        async with reading(engine) as connection:
            return await work(loaded, connection)

    return on_engine(loaded, run)


def person(by: str | None, note: str | None) -> "Person":
    """Say who speaks now, and what: without a name, the one that this machine has for its user.

    Raises
    ------
    UsageError
        It has none.
    """
    from auditor.errors import UsageError
    from auditor.jobs.findings import Person

    try:
        return Person(by=by or getpass.getuser(), note=note, now=datetime.now(UTC))
    except (OSError, KeyError):
        raise UsageError("this machine does not know your name; say it with --by") from None


def say(document: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    """Print the lines, or the document for machines."""
    for line in [json.dumps(document)] if as_json else lines:
        typer.echo(line)
