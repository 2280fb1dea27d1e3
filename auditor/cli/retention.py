"""``biasmeter retention``: remove what the configuration no longer keeps, or list it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from biasmeter.options import ConfigOption

if TYPE_CHECKING:
    from auditor.config import Config
    from auditor.store.retention import Expired


app = typer.Typer()


@app.command("retention")
def _retention(
    config: ConfigOption,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what is due, and remove nothing.")] = False,
) -> None:
    """Remove content and facts that are older than the configuration keeps them, as the auditor does every hour.

    Prints a line for each partition, and for each table whose rows are removed one by one.
    """
    import os
    from datetime import UTC, datetime

    from auditor.cli.store import in_store
    from auditor.config import load
    from auditor.jobs.retention import bounds_of
    from auditor.store.retention import find_expired, remove_expired
    from biasmeter.tables import table_lines

    loaded = load(config, os.environ)
    bounds = bounds_of(loaded, datetime.now(UTC))
    work = find_expired if dry_run else remove_expired
    expired = in_store(loaded, lambda engine: work(engine, bounds))
    if expired:
        typer.echo("\n".join(table_lines(_rows(loaded, expired), right=(1, 2))))
    else:
        typer.echo(f"nothing is due: content is kept from {bounds.content} on, facts from {bounds.facts} on")


def _rows(config: "Config", expired: "Sequence[Expired]") -> "Iterator[tuple[str, ...]]":
    from auditor.config import format_duration
    from auditor.store.lifetimes import Lifetime

    kept = {Lifetime.CONTENT: config.retention.content, Lifetime.FACTS: config.retention.facts}
    yield ("what", "rows", "bytes", "why")
    for one in expired:
        why = f"{one.lifetime} older than {format_duration(kept[one.lifetime])} (before {one.before})"
        if one.blocked:
            why += "; in use, left for the next run"
        yield (one.what, f"{one.rows:,}", f"{one.bytes:,}", why)
