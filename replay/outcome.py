"""What came of a replay or a comparison: its files, its table, and its exposures in the store."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import typer
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.analysis.document import Json, canonical_bytes
from auditor.analysis.output import write_files
from auditor.store.engine import reading
from auditor.store.exposures import ExposureRow, keep_exposures
from replay.page.comparison import render, table

_SUMMARY: Final = ("replay", "parents", "calls", "left_out", "groups")


async def keep_outcome(engine: AsyncEngine, document: Mapping[str, Json], now: datetime) -> None:
    """Keep a document's exposures as its file says them, in the place of what it said before."""
    shown = json.loads(canonical_bytes(dict(document)))
    async with reading(engine) as connection:
        await keep_exposures(connection, shown["replay"], list(exposure_rows(shown, now)))


def exposure_rows(document: Mapping[str, Any], now: datetime) -> Iterator[ExposureRow]:
    """Give the rows that are kept; none where another deployment was asked: the answers are not one deployment's."""
    if document["to"] is not None:
        return
    for group in document["groups"]:
        for metric, exposure in group["exposure"].items():
            yield ExposureRow(
                replay_id=document["replay"],
                concluded_at=now,
                selection=document["select"],
                **group["by"],
                rubric=group["rubric"],
                claim=group["claim"],
                metric=metric,
                exposure=exposure,
            )


def write_outcome(document: Mapping[str, Json], out: Path, *, as_json: bool) -> None:
    """Write the document and its page into a folder, and its headlines to the terminal."""
    content = canonical_bytes(dict(document))
    # The page is made from what the file says, so that it can be made again from the file alone.
    shown = json.loads(content)
    write_files(out, {"comparison.json": content, "comparison.html": render(shown)})
    paths = [str(out / "comparison.html"), str(out / "comparison.json")]
    if as_json:
        summary = {name: shown[name] for name in _SUMMARY}
        typer.echo(json.dumps(summary | {"comparison": paths[1], "report": paths[0]}, indent=2, sort_keys=True))
        return
    for line in table(shown):
        typer.echo(line)
    typer.echo("\n".join(paths))
