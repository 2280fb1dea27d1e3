"""From the watches to rows of estimates: evidence by detector, levels, and the smallest shift that would be told."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log
from typing import Any, Final, get_args

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config, format_duration
from auditor.domain.estimate import Insufficient
from auditor.domain.exchange import Origin
from auditor.jobs.watching import promise_of, reference_days, restored
from auditor.live.coders import Coder
from auditor.live.estimates import ALL, Snapshot
from auditor.monitor.account import DAYS, STATEMENTS, level_of, on_one_scale
from auditor.monitor.decision import Level
from auditor.monitor.detectable import detectable_shift
from auditor.monitor.passes import PAGING, WATCHED
from auditor.monitor.reference import Reference
from auditor.monitor.reference_set import ReferenceSet, set_of
from auditor.monitor.watch import Watch
from auditor.store.estimates import EstimateRow
from auditor.store.monitor import StoredReference, StoredWatch, read_watches, references_in_force

_METHODS: Final[Mapping[str, str]] = {DAYS: "conformal_sr"}
_METHOD: Final = "paired_e_sr"
#: Over all deployments together the same is promised of these two.
_OF_FLEET: Final = (STATEMENTS, DAYS)


async def drift_rows(
    connection: AsyncConnection, config: Config, coder: Coder, snapshot: Snapshot
) -> list[EstimateRow]:
    """Give the rows of all declared deployments that one coder's watches know."""
    references = await references_in_force(connection, coder.id, snapshot.as_of)
    stored = await read_watches(connection, coder.id)
    rows: list[EstimateRow] = []
    for name in (one.name for one in config.deployments if one.name in references):
        like = EstimateRow(
            as_of=snapshot.as_of, deployment=name, origin=Origin.PROBE.value, rubric=coder.rubric, condition=ALL,
            window=format_duration(config.monitor.horizon), since=snapshot.as_of, coder=coder.id, metric="",
            method=_METHOD, seed=snapshot.seed,
        )  # fmt: skip
        own = [watch for watch in stored if watch.deployment == name and watch.reference_id == references[name].id]
        rows += _of_deployment(like, references[name], own, config)
    return [*rows, *_fleet(rows)]


def _of_deployment(
    like: EstimateRow, reference: StoredReference, stored: Sequence[StoredWatch], config: Config
) -> Iterator[EstimateRow]:
    if reference.content is None or reference.until is None:
        days = reference_days(config)
        why = f"its reference has not got its {days} days since {reference.since.isoformat()} yet"
        for metric in WATCHED:
            yield replace(like, metric="drift_evidence", detail={"measure": metric}, missing=why)
        return
    fitted = set_of(reference.content)
    began = reference.until + timedelta(days=1)
    own = replace(like, since=datetime(began.year, began.month, began.day, tzinfo=UTC))
    by_metric = {watch.metric: watch for watch in stored}
    for metric in WATCHED:
        one = replace(own, detail={"measure": metric})
        found = fitted.own[metric]
        if isinstance(found, Insufficient):
            yield replace(one, metric="drift_evidence", missing=found.reason)
        else:
            yield from _of_series(one, found, by_metric[metric], fitted, config)


def _of_series(
    like: EstimateRow, reference: Reference, stored: StoredWatch, fitted: ReferenceSet, config: Config
) -> Iterator[EstimateRow]:
    promise = promise_of(config)
    watch = restored(stored, fitted, promise)
    own = replace(like, n=watch.n_passes, n_statements=reference.n_statements)
    yield from _evidence(own, watch)
    level = level_of(watch, stored.metric, is_anchor=like.deployment == config.monitor.anchor)
    for each in get_args(Level):
        detail = {**own.detail, "level": each}
        yield replace(own, metric="drift_alarm", detail=detail, value=float(each == level))
    smallest = detectable_shift(reference, promise.threshold, watch.margin)
    row = replace(own, metric="minimal_detectable_shift")
    if isinstance(smallest, Insufficient):
        yield replace(row, missing=smallest.reason)
    else:
        # What is counted of DNI is half of it.
        yield replace(row, value=2 * smallest if stored.metric == "dni" else smallest)


def _evidence(like: EstimateRow, watch: Watch) -> Iterator[EstimateRow]:
    found = on_one_scale(watch.evidence, watch.promise)
    shared: dict[str, Any] = {**like.detail, "shaken": watch.reference.shaken}
    if not found:
        yield replace(like, metric="drift_evidence", detail=shared, missing="no pass since its reference yet")
    for detector, value in found.items():
        yield replace(
            like, metric="drift_evidence", detail={**shared, "detector": detector}, value=value,
            method=_METHODS.get(detector, _METHOD),
        )  # fmt: skip


def _fleet(rows: Sequence[EstimateRow]) -> Iterator[EstimateRow]:
    """Give the highest evidence of all deployments, less what watching so many of them costs."""
    known = [row for row in rows if row.metric == "drift_evidence" and row.value is not None]
    watched = len({row.deployment for row in known})
    for metric in PAGING:
        for detector in _OF_FLEET:
            own = [row for row in known if (row.detail["measure"], row.detail["detector"]) == (metric, detector)]
            if own:
                top = max(own, key=lambda row: row.value or 0.0)
                assert top.value is not None
                detail = {"measure": metric, "detector": detector, "deployments": watched}
                yield replace(
                    top, deployment=None, detail=detail, value=top.value - log(watched), n=0, n_statements=None
                )
