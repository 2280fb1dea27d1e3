"""Recount the tallies that have changed, and turn the tallies of the configuration's coders into a new snapshot.

Besides the coders' estimates a snapshot has rows of the comparisons of peers (deviation with its interval, verdict) and
of probes that continue until a rate is precise enough (one row per deployment, valid at any time).
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, get_args

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.coding.coders import Coder
from auditor.config import Config, Probe, format_duration
from auditor.counting.stored import votes_of
from auditor.counting.tallies import VoteCounts
from auditor.documents.base import Missing
from auditor.documents.peers import InstrumentEntry, MissingInstrumentEntry, PairedTestEntry, StoredPeersDocument
from auditor.domain.estimate import Insufficient
from auditor.domain.exchange import Origin
from auditor.estimation.changes import ReferenceWindow, change_rows
from auditor.estimation.drift import drift_rows, reference_windows
from auditor.estimation.snapshots import ALL, UNJUDGED, Snapshot, Window, estimate_windows, uncoded_row
from auditor.jobs.anchors import anchor_rows
from auditor.peers.subjects import compared, label_of, window_of
from auditor.probes.blocks import block_plan_name, block_rates, is_known, sequence_of
from auditor.reviews.corrections import read_window_samples
from auditor.stats.differences import Verdict
from auditor.store.comparisons import StoredComparison, read_comparison
from auditor.store.engine import transaction
from auditor.store.estimates import EstimateRow, replace_estimates
from auditor.store.tallies import move_windows, read_window_ballots, read_windows, recount, stale
from auditor.store.target_plans import BlockCount, count_blocks, find_plan
from auditor.store.uncoded import count_uncoded
from auditor.trials.comparison import TrialCounts, compare_arms, read_counts, trial_rows
from auditor.work import Work


async def count_stale(work: Work) -> int:
    """Recount every tile that is marked as changed, and return their number."""
    counted = 0
    while True:
        async with transaction(work.engine) as connection:
            tiles = await stale(connection)
        if not tiles:
            return counted
        for tile in tiles:
            async with transaction(work.engine) as connection:
                await recount(connection, tile)
        counted += len(tiles)


#: The window of rows of trials, which count from their first exchange.
TRIAL: Final = "trial"
#: The reason for an exchange that is waiting to be coded.
WAITING: Final = "waiting"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Material:
    """All counts of one coder."""

    coder: Coder
    windows: Sequence[Window]
    waiting: Mapping[tuple[str, str], int]
    references: Mapping[str, ReferenceWindow]
    trials: Sequence[TrialCounts]


async def estimate_all(work: Work) -> int:
    """Replace the last snapshot of estimates by a new one, and return its number of rows."""
    snapshot = Snapshot(as_of=work.clock(), seed=work.config.seed)
    async with transaction(work.engine) as connection:
        materials = [await _material(connection, work, coder_id, snapshot.as_of) for coder_id in work.coders]
        anchored = await anchor_rows(connection, snapshot, format_duration(max(work.config.monitor.windows)))
        peers = await _of_peers(connection, work.config, snapshot)
        drifted = await _of_planned(connection, work, snapshot)
    rows = await asyncio.to_thread(lambda: [row for each in materials for row in _estimated(snapshot, each)])
    rows += [*anchored, *peers, *drifted]
    async with transaction(work.engine) as connection:
        await replace_estimates(connection, rows, snapshot.as_of)
    return len(rows)


async def _of_peers(connection: AsyncConnection, config: Config, snapshot: Snapshot) -> list[EstimateRow]:
    """Read all comparisons that this configuration declares and that have been made."""
    rows: list[EstimateRow] = []
    for entry in compared(config):
        comparison = await read_comparison(connection, label_of(entry))
        if comparison is not None:
            rows += peer_rows(comparison, window_of(config, entry), snapshot)
    return rows


async def _of_planned(connection: AsyncConnection, work: Work, snapshot: Snapshot) -> list[EstimateRow]:
    """Read the rows of drift monitoring, and of the probes that ask until a rate is known."""
    rows: list[EstimateRow] = []
    for coder in (entry.coder for entry in work.coders.values() if entry.coder.routes is None):
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
    waiting = await count_uncoded(connection, scope)
    references = await reference_windows(connection, work.config, coder_id, as_of) if scope.routes is None else {}
    coder = work.coders[coder_id].coder
    trials = [
        await read_counts(connection, coder.id, coder.rubric, *trial) for trial in running_trials(work.config, coder)
    ]
    return _Material(coder=coder, windows=windows, waiting=waiting, references=references, trials=trials)


async def _probe_votes(connection: AsyncConnection, coder_id: str, window: str) -> VoteCounts:
    """Read the ballots on probes. Agreement is reported for probes only, because no metric mixes origins."""
    ballots = await read_window_ballots(connection, coder_id, window)
    return votes_of([ballot for ballot in ballots if ballot["origin"] == Origin.PROBE])


def _window_start(as_of: datetime, span: float) -> datetime:
    """Return the start of a window: the hour that contains the moment ``span`` seconds ago."""
    return (as_of - timedelta(seconds=span)).replace(minute=0, second=0, microsecond=0)


def _estimated(snapshot: Snapshot, material: _Material) -> Iterator[EstimateRow]:
    coder = material.coder
    audit = _audit_name(coder)
    judges = [] if coder.panel is None else [judge.name for judge in coder.panel.judges]
    yield from estimate_windows(snapshot, coder.id, material.windows, audit=audit, judges=judges)
    if coder.routes is None:
        for window in material.windows:
            yield from change_rows(snapshot, coder.id, window, material.references)
    longest = material.windows[-1]
    for (deployment, origin), n in material.waiting.items():
        template = EstimateRow(
            as_of=snapshot.as_of, deployment=deployment, origin=origin, rubric=coder.rubric, condition=audit or ALL,
            window=longest.name, since=longest.since, coder=coder.id, metric="", seed=snapshot.seed,
        )  # fmt: skip
        yield uncoded_row(template, "both", WAITING, n)
    for counts in material.trials:
        like = EstimateRow(
            as_of=snapshot.as_of, deployment=None, origin=Origin.CLIENT, rubric=coder.rubric, condition=audit or ALL,
            window=TRIAL, since=longest.since, coder=coder.id, metric="", seed=snapshot.seed,
        )  # fmt: skip
        yield from trial_rows(compare_arms(counts, seed=snapshot.seed), like)


def running_trials(config: Config, coder: Coder) -> list[tuple[str, str]]:
    """Return the trials of the configuration whose answers the coder reads, each with its route."""
    trials = ((config.trial_of(route), route.model) for route in config.routes if route.model in (coder.routes or ()))
    return [(trial, route) for trial, route in trials if trial is not None]


def _audit_name(coder: Coder) -> str | None:
    if coder.audit is None:
        return None
    return coder.audit.name if coder.panel is not None else f"{coder.audit.name}/{UNJUDGED}"


#: The value of these rows in place of a rubric.
PEERS: Final = "peers"
_INTERVAL: Final = "paired_t"


def peer_rows(comparison: StoredComparison, window: float, snapshot: Snapshot) -> Iterator[EstimateRow]:
    """Yield the rows of one stored comparison, which covers a window of ``window`` seconds."""
    template = EstimateRow(
        as_of=snapshot.as_of, deployment=None, origin=comparison.document.origin, rubric=PEERS,
        condition=comparison.domain, window=format_duration(window), since=comparison.as_of - timedelta(seconds=window),
        coder="", metric="peer_deviation", seed=snapshot.seed,
    )  # fmt: skip
    return _rows(template, comparison.document)


def _rows(template: EstimateRow, document: StoredPeersDocument) -> Iterator[EstimateRow]:
    for target in (target for comparison in document.comparisons for target in comparison.targets):
        for method, entry in target.instruments.items():
            row = replace(
                template,
                deployment=target.target,
                coder=document.coders.get(method, ""),
                detail={"domain": document.domain, "method": method, "peers": target.peers},
                n=entry.n_questions if isinstance(entry, InstrumentEntry) else 0,
            )
            yield _deviation(row, entry)
            yield from _verdicts(row, entry)


def _deviation(template: EstimateRow, entry: InstrumentEntry | MissingInstrumentEntry) -> EstimateRow:
    """Take the mean over the questions of the target's value less its peers' mean: 0 is a deployment like its peers."""
    paired = entry.paired if isinstance(entry, InstrumentEntry) else entry
    if not isinstance(paired, PairedTestEntry):
        return replace(template, missing=paired.missing)
    return replace(template, value=paired.diff, low=paired.low, high=paired.high, method=_INTERVAL)


def _verdicts(template: EstimateRow, entry: InstrumentEntry | MissingInstrumentEntry) -> Iterator[EstimateRow]:
    row = replace(template, metric="peer_verdict")
    if isinstance(entry, MissingInstrumentEntry):
        yield replace(row, missing=entry.missing)
        return
    if isinstance(entry.verdict, Missing):
        yield replace(row, missing=entry.verdict.missing)
        return
    for verdict in get_args(Verdict):  # a verdict has a margin
        detail = {**template.detail, "verdict": verdict, "margin": entry.delta}
        yield replace(row, detail=detail, value=float(verdict == entry.verdict))


async def target_rows(
    connection: AsyncConnection, config: Config, coder: Coder, snapshot: Snapshot
) -> list[EstimateRow]:
    """Read the union rate of each deployment in its newest pass: the current one, or the one before."""
    rows: list[EstimateRow] = []
    for probe in config.probes:
        if probe.half_width is None:
            continue
        current = int(snapshot.as_of.timestamp() // probe.every)
        seen: set[str] = set()
        for number in (current, current - 1):
            plan = await find_plan(connection, block_plan_name(probe.plan, number, probe.half_width), config.seed)
            if plan is None:
                continue
            counted = await count_blocks(connection, coder.id, plan)
            for name in sorted(counted.keys() - seen):
                template = EstimateRow(
                    as_of=snapshot.as_of, deployment=name, origin=Origin.PROBE, rubric=coder.rubric, condition=ALL,
                    window=format_duration(probe.every), since=datetime.fromtimestamp(number * probe.every, UTC),
                    coder=coder.id, metric="target", layer="union", base="full", detail={"plan": plan},
                    method="asymptotic_sequence", seed=snapshot.seed,
                )  # fmt: skip
                rows += _target_row(template, counted[name], probe)
            seen |= counted.keys()
    return rows


def _target_row(template: EstimateRow, counted: Sequence[BlockCount], probe: Probe) -> Iterator[EstimateRow]:
    rates = block_rates(counted)
    detail = {
        **template.detail, "half_width": probe.half_width, "blocks": len(rates), "reached": is_known(rates, probe)
    }  # fmt: skip
    row = replace(template, n=sum(count.trials for count in counted), detail=detail)
    interval = sequence_of(rates)
    if isinstance(interval, Insufficient):
        yield replace(row, missing=interval.reason)
    else:
        yield replace(row, value=float(rates.mean()), low=max(interval.low, 0.0), high=min(interval.high, 1.0))
