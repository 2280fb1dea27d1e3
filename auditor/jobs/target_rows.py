"""What probes that ask until a rate is known have found: a row for each deployment, valid whenever one looks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config, Probe, format_duration
from auditor.domain.estimate import Insufficient
from auditor.domain.exchange import Origin
from auditor.live.coders import Coder
from auditor.live.estimates import ALL, Snapshot
from auditor.probes.blocks import is_known, sequence_of
from auditor.probes.target import block_rates
from auditor.probes.timed import current_pass
from auditor.store.estimates import EstimateRow
from auditor.store.target_plans import BlockCount, count_blocks


async def target_rows(
    connection: AsyncConnection, config: Config, coder: Coder, snapshot: Snapshot
) -> list[EstimateRow]:
    """Give the union rate of each deployment in its newest pass: the current one, or the one before."""
    rows: list[EstimateRow] = []
    for probe in config.probes:
        if probe.half_width is None:
            continue
        due = current_pass(config, probe, snapshot.as_of)
        told: set[str] = set()
        for planned in (due.planned, due.before):
            began = datetime.fromtimestamp(planned.number * probe.every, UTC)
            heard = await count_blocks(connection, coder.id, planned.plan.id)
            for name in sorted(heard.keys() - told):
                like = EstimateRow(
                    as_of=snapshot.as_of, deployment=name, origin=Origin.PROBE, rubric=coder.rubric, condition=ALL,
                    window=format_duration(probe.every), since=began, coder=coder.id, metric="target", layer="union",
                    base="full", detail={"plan": planned.plan.id}, method="asymptotic_sequence", seed=snapshot.seed,
                )  # fmt: skip
                rows += _row(like, heard[name], probe)
            told |= heard.keys()
    return rows


def _row(like: EstimateRow, heard: Sequence[BlockCount], probe: Probe) -> Iterator[EstimateRow]:
    rates = block_rates(heard)
    detail = {
        **like.detail, "half_width": probe.half_width, "blocks": len(rates), "reached": is_known(rates, probe)
    }  # fmt: skip
    row = replace(like, n=sum(one.trials for one in heard), detail=detail)
    found = sequence_of(rates)
    if isinstance(found, Insufficient):
        yield replace(row, missing=found.reason)
    else:
        yield replace(row, value=float(rates.mean()), low=max(found.low, 0.0), high=min(found.high, 1.0))
