"""Report: what the store holds of a period, as the bytes of ``report.json``; and the same again later."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.analysis.document import canonical_bytes
from auditor.config import Config
from auditor.errors import AuditError
from auditor.jobs.peer_period import compare_again, find_gone, find_heads
from auditor.jobs.quotations import read_quotations
from auditor.jobs.samples import read_samples
from auditor.live.coders import open_coders
from auditor.live.period import Counted, Terms, make_report, missing_inputs
from auditor.live.quotations import Quotations
from auditor.metrics.shares import FACTORS
from auditor.store.engine import reading
from auditor.store.exposures import newest_exposure, read_exposures
from auditor.store.period import (
    Period,
    count_ballots,
    count_period,
    newest_coding,
    newest_label,
    read_statement_fields,
)
from auditor.store.review_draws import Bounds

#: Fields of a statement's record that a report may be grouped by.
STATEMENT_FIELDS: Final = ("region", "intersectional")
#: What a report's document must say to be made again.
REMADE_FROM: Final = frozenset({"from", "to", "as_of", "seed", "by", "quotes", "vendors", "coders", "inputs", "peers"})
#: All that a report may be grouped by, beside deployment.
GROUPED_BY: Final = ("category", *STATEMENT_FIELDS, *FACTORS, "invites_reason")


async def report_period(
    engine: AsyncEngine,
    config: Config,
    since: datetime,
    until: datetime,
    *,
    by: Sequence[str] = (),
    quotes: bool = True,
) -> bytes:
    """Report on what the configuration's coders and scorers have read of the exchanges of [since, until).

    Parameters
    ----------
    by
        Some of ``GROUPED_BY``: everything is also given by the values of these fields.
    quotes
        Whether answers to probes may be quoted.

    Raises
    ------
    AuditError
        They have read none.
    """
    async with open_coders(config, asking=False) as coders:
        described = {coder.id: coder.description for coder in coders}
    async with reading(engine) as connection:
        coded_at = await newest_coding(connection, list(described), since, until)
        heads, scored_at = await find_heads(connection, config, since, until)
        read_at = [moment for moment in (coded_at, scored_at) if moment is not None]
        if not read_at:
            span = f"between {since.isoformat()} and {until.isoformat()}"
            raise AuditError(f"nothing {span} has been coded by the configuration's coders, nor compared with peers")
        others = [await newest_label(connection, since, until), await newest_exposure(connection, since, until)]
        as_of = max([*read_at, *(moment for moment in others if moment is not None)])
        period = Period(since=since, until=until, as_of=as_of.astimezone(UTC))
        terms = Terms(seed=config.seed, by=tuple(by), quotes=quotes, vendors=_vendors(config))
        counted = [await _counted(connection, *coder, period, terms) for coder in described.items()]
        compared = [await compare_again(connection, head, period) for head in heads]
        exposures = await read_exposures(connection, since, until, as_of)
    return canonical_bytes(make_report(period, counted, terms, compared, exposures))


def _vendors(config: Config) -> dict[str, str]:
    return {one.name: one.vendor for one in config.deployments if one.vendor}


async def report_again(engine: AsyncEngine, report: Mapping[str, Any]) -> bytes:
    """Make a report again from what its document says.

    Raises
    ------
    AuditError
        Something that it was made from is not there any more, or its document does not say it; the message names it.
    """
    made, now = report.get("version"), version("tiltmeter")
    if made != now:
        raise AuditError(f"the report cannot be made again: tiltmeter {made} made it, and this is {now}")
    if unsaid := sorted(REMADE_FROM - report.keys()):
        raise AuditError(f"the report cannot be made again: its document has no {unsaid[0]!r}")
    since, until, as_of = (datetime.fromisoformat(report[name]) for name in ("from", "to", "as_of"))
    period = Period(since=since, until=until, as_of=as_of)
    terms = Terms(seed=report["seed"], by=tuple(report["by"]), quotes=report["quotes"], vendors=dict(report["vendors"]))
    async with reading(engine) as connection:
        counted = [
            await _counted(connection, coder["id"], coder["description"], period, terms) for coder in report["coders"]
        ]
        heads = [{name: each[name] for name in each if name != "document"} for each in report["peers"]]
        compared = [await compare_again(connection, head, period) for head in heads]
        exposures = await read_exposures(connection, since, until, as_of)
    content = canonical_bytes(make_report(period, counted, terms, compared, exposures))
    again = json.loads(content)
    async with reading(engine) as connection:
        gone = [*missing_inputs(report, again), *await find_gone(connection, report, again, period)]
    if gone:
        more = f"; and {len(gone) - 1} more" if len(gone) > 1 else ""
        raise AuditError(f"the report cannot be made again: {gone[0]}{more}")
    if again["facts"] != report["facts"]:
        raise AuditError("the report cannot be made again: more is there than was counted, written at that very time")
    return content


async def _counted(
    connection: AsyncConnection, coder: str, description: Mapping[str, Any], period: Period, terms: Terms
) -> Counted:
    bounds = Bounds(since=period.since, until=period.until, as_of=period.as_of)
    rows = await count_period(connection, coder, period)
    planned = description.get("audit") is None
    fields = [name for name in terms.by if name in STATEMENT_FIELDS]
    if fields and planned:
        records = await read_statement_fields(connection, {row["cluster"] for row in rows}, fields)
        rows = [{**row, **records[row["cluster"]]} for row in rows]
    return Counted(
        coder=coder,
        description=description,
        rows=rows,
        ballots=await count_ballots(connection, coder, period),
        samples=await read_samples(connection, coder, bounds),
        quotations=await read_quotations(connection, coder, period, rows) if planned and terms.quotes else Quotations(),
    )
