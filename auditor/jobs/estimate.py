"""Estimate: from the tallies of the configuration's coders to a new snapshot of estimates."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.analysis.tallies import VoteCounts
from auditor.config import format_duration
from auditor.domain.exchange import Origin
from auditor.jobs.anchors import anchor_rows
from auditor.jobs.drift_rows import drift_rows
from auditor.jobs.peer_rows import peer_rows
from auditor.jobs.references import reference_windows
from auditor.jobs.samples import read_window_samples
from auditor.jobs.target_rows import target_rows
from auditor.jobs.work import Work
from auditor.live.changes import ReferenceWindow, change_rows
from auditor.live.coders import Coder
from auditor.live.estimates import ALL, Snapshot, Window, estimate_windows, uncoded_row
from auditor.live.tallies import votes_of
from auditor.store.engine import reading
from auditor.store.estimates import EstimateRow, replace_estimates
from auditor.store.queue import held_chunks
from auditor.store.waiting import count_waiting
from auditor.store.windows import move_windows, read_window_ballots, read_windows

#: Why an exchange has no coding yet: it has been found and waits.
WAITING: Final = "waiting"
#: What stands behind an audit's name where its answers may be shown to no judge: another instrument.
UNJUDGED: Final = "unjudged"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Material:
    """All that is counted of one coder."""

    coder: Coder
    windows: Sequence[Window]
    waiting: Mapping[tuple[str, str], int]
    references: Mapping[str, ReferenceWindow]


async def estimate_all(work: Work) -> int:
    """Make a snapshot of estimates and put it in the place of the last one; give how many rows it has."""
    snapshot = Snapshot(as_of=work.clock(), seed=work.config.seed)
    async with reading(work.engine) as connection:
        materials = [await _material(connection, work, coder_id, snapshot.as_of) for coder_id in work.readers]
        anchored = await anchor_rows(connection, snapshot, format_duration(max(work.config.monitor.windows)))
        compared = await peer_rows(connection, work.config, snapshot)
        drifted = await _of_planned(connection, work, snapshot)
    rows = await asyncio.to_thread(lambda: [row for each in materials for row in _estimated(snapshot, each)])
    rows += [*anchored, *compared, *drifted]
    async with reading(work.engine) as connection:
        await replace_estimates(connection, rows, snapshot.as_of)
    return len(rows)


async def _of_planned(connection: AsyncConnection, work: Work, snapshot: Snapshot) -> list[EstimateRow]:
    """Read what the watch of planned calls says, and what those found that ask until a rate is known."""
    rows: list[EstimateRow] = []
    for coder in (reader.coder for reader in work.readers.values() if reader.coder.routes is None):
        rows += await drift_rows(connection, work.config, coder, snapshot)
        rows += await target_rows(connection, work.config, coder, snapshot)
    return rows


async def _material(connection: AsyncConnection, work: Work, coder_id: str, as_of: datetime) -> _Material:
    starts = {format_duration(span): _window_start(as_of, span) for span in sorted(work.config.monitor.windows)}
    await move_windows(connection, coder_id, starts)
    counted = await read_windows(connection, coder_id, starts)
    samples = await read_window_samples(connection, coder_id, starts, as_of)
    windows = []
    for name, since in starts.items():
        longest = name == list(starts)[-1]
        windows.append(
            Window(
                name=name,
                since=since,
                longest=longest,
                rows=counted[name],
                votes=await _probe_votes(connection, coder_id, name) if longest else {},
                samples=samples[name],
            )
        )
    scope = next(scope for scope in work.scopes() if scope.coder == coder_id)
    held = [each for chunk in await held_chunks(connection) if chunk.coder == coder_id for each in chunk.ids]
    waiting = await count_waiting(connection, scope, min(held, default=None))
    references = await reference_windows(connection, work.config, coder_id, as_of) if scope.routes is None else {}
    coder = work.readers[coder_id].coder
    return _Material(coder=coder, windows=windows, waiting=waiting, references=references)


async def _probe_votes(connection: AsyncConnection, coder_id: str, window: str) -> VoteCounts:
    """Read the ballots on probes: the judges' agreement is told once, and no metric mixes origins."""
    ballots = await read_window_ballots(connection, coder_id, window)
    return votes_of([ballot for ballot in ballots if ballot["origin"] == Origin.PROBE])


def _window_start(as_of: datetime, span: float) -> datetime:
    """Begin a window with a whole tile: the one that holds the moment ``span`` seconds ago."""
    return (as_of - timedelta(seconds=span)).replace(minute=0, second=0, microsecond=0)


def _estimated(snapshot: Snapshot, material: _Material) -> Iterator[EstimateRow]:
    coder = material.coder
    audit = _audit_name(coder)
    yield from estimate_windows(snapshot, coder.id, material.windows, audit=audit)
    if coder.routes is None:
        for window in material.windows:
            yield from change_rows(snapshot, coder.id, window, material.references)
    longest = material.windows[-1]
    for (deployment, origin), n in material.waiting.items():
        like = EstimateRow(
            as_of=snapshot.as_of, deployment=deployment, origin=origin, rubric=coder.rubric, condition=audit or ALL,
            window=longest.name, since=longest.since, coder=coder.id, metric="", seed=snapshot.seed,
        )  # fmt: skip
        yield uncoded_row(like, "both", WAITING, n)


def _audit_name(coder: Coder) -> str | None:
    if coder.audit is None:
        return None
    return coder.audit.name if coder.panel is not None else f"{coder.audit.name}/{UNJUDGED}"
