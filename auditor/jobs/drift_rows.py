"""From what the watches tell to rows of estimates: evidence by detector, levels, and the smallest shift to be told."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log
from typing import Any, Final, get_args

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config, format_duration
from auditor.domain.exchange import Origin
from auditor.jobs.watching import reference_days
from auditor.live.coders import Coder
from auditor.live.estimates import ALL, Snapshot
from auditor.monitor.account import DAYS, STATEMENTS
from auditor.monitor.decision import Level
from auditor.monitor.passes import PAGING, WATCHED
from auditor.store.estimates import EstimateRow
from auditor.store.monitor import ToldWatch, read_told
from auditor.store.references import StoredReference, references_in_force

_METHODS: Final[Mapping[str, str]] = {DAYS: "conformal_sr"}
_METHOD: Final = "paired_e_sr"
#: Shown over all deployments together as well; docs/monitoring.md says what is promised of them.
_OF_FLEET: Final = (STATEMENTS, DAYS)


async def drift_rows(
    connection: AsyncConnection, config: Config, coder: Coder, snapshot: Snapshot
) -> list[EstimateRow]:
    """Give the rows of all declared deployments that one coder's watches know."""
    references = await references_in_force(connection, coder.id, snapshot.as_of, content=False)
    stored = await read_told(connection, coder.id)
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
    like: EstimateRow, reference: StoredReference, watches: Sequence[ToldWatch], config: Config
) -> Iterator[EstimateRow]:
    if reference.until is None:
        days = reference_days(config)
        why = f"its reference has not got its {days} days since {reference.since.isoformat()} yet"
        for metric in WATCHED:
            yield replace(like, metric="drift_evidence", detail={"measure": metric}, missing=why)
        return
    began = reference.until + timedelta(days=1)
    own = replace(like, since=datetime(began.year, began.month, began.day, tzinfo=UTC))
    for watch in watches:
        yield from _of_series(replace(own, detail={"measure": watch.metric}), watch.told)


def _of_series(like: EstimateRow, told: Mapping[str, Any]) -> Iterator[EstimateRow]:
    if "missing" in told:
        yield replace(like, metric="drift_evidence", missing=told["missing"])
        return
    own = replace(like, n=told["n_passes"], n_statements=told["n_statements"])
    yield from _evidence(replace(own, detail={**own.detail, "shaken": told["shaken"]}), told["evidence"])
    for level in get_args(Level):
        detail = {**own.detail, "level": level}
        yield replace(own, metric="drift_alarm", detail=detail, value=float(level == told["level"]))
    yield replace(own, metric="minimal_detectable_shift", **told["shift"])


def _evidence(like: EstimateRow, evidence: Mapping[str, float]) -> Iterator[EstimateRow]:
    if not evidence:
        yield replace(like, metric="drift_evidence", missing="no pass since its reference yet")
    for detector, value in sorted(evidence.items()):
        yield replace(
            like, metric="drift_evidence", detail={**like.detail, "detector": detector}, value=value,
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
