"""Make ``report.json`` of a period from the store, and reproduce it later from the document."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from auditor.coding.coders import open_coders
from auditor.config import Config
from auditor.counting.conditions import FACTORS
from auditor.documents.codec import canonical_bytes, convert
from auditor.errors import AuditError
from auditor.period.contents import Counted, Terms, make_report, missing_inputs
from auditor.period.document import ReportDocument
from auditor.period.peers import compare_again, find_gone, find_heads
from auditor.quotations.stored import Quotations, read_quotations
from auditor.reviews.corrections import read_samples
from auditor.store.engine import transaction
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
from auditor.store.trials import TrialSpan, find_trials, newest_stop
from auditor.trials.comparison import TrialCounts, read_counts

#: Fields of a statement's record by which a report may be grouped.
STATEMENT_FIELDS: Final = ("region", "intersectional")
#: Keys that a document needs for its reproduction.
REMADE_FROM: Final = frozenset({"from", "to", "as_of", "seed", "by", "quotes", "vendors", "coders", "inputs", "peers"})
#: All fields by which a report may be grouped, besides deployment.
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
    """Report on the exchanges of [since, until) that the configuration's coders and scorers have read.

    Parameters
    ----------
    by
        Fields of ``GROUPED_BY``: everything is also given by the values of these fields.
    quotes
        Whether answers to probes may be quoted.

    Raises
    ------
    AuditError
        They have read no exchange.
    """
    async with open_coders(config, asking=False) as coders:
        described = {coder.id: coder.description for coder in coders}
    async with transaction(engine) as connection:
        coded_at = await newest_coding(connection, list(described), since, until)
        heads, scored_at = await find_heads(connection, config, since, until)
        read_at = [moment for moment in (coded_at, scored_at) if moment is not None]
        if not read_at:
            span = f"between {since.isoformat()} and {until.isoformat()}"
            raise AuditError(f"the store has no codings and no comparisons with peers {span}")
        others = [
            await newest_label(connection, since, until),
            await newest_exposure(connection, since, until),
            await newest_stop(connection, since, until),
        ]
        as_of = max([*read_at, *(moment for moment in others if moment is not None)])
        period = Period(since=since, until=until, as_of=as_of.astimezone(UTC))
        terms = Terms(
            seed=config.seed,
            by=tuple(by),
            quotes=quotes,
            vendors={deployment.name: deployment.vendor for deployment in config.deployments if deployment.vendor},
        )
        counted = [await _counted(connection, *coder, period, terms) for coder in described.items()]
        compared = [await compare_again(connection, head, period) for head in heads]
        exposures = await read_exposures(connection, since, until, as_of)
    return canonical_bytes(make_report(period, counted, terms, compared, exposures))


async def report_again(engine: AsyncEngine, report: Mapping[str, Any]) -> bytes:
    """Reproduce a report from its document.

    Raises
    ------
    AuditError
        An input is gone, or the document does not name it; the message does.
    """
    made, now = report.get("version"), version("biasmeter")
    if made != now:
        raise AuditError(f"the report cannot be made again: biasmeter {made} made it, and this is {now}")
    if unsaid := sorted(REMADE_FROM - report.keys()):
        raise AuditError(f"the report cannot be made again: its document has no {unsaid[0]!r}")
    old = convert(report, ReportDocument, "the report")
    since, until, as_of = (datetime.fromisoformat(moment) for moment in (old.from_, old.to, old.as_of))
    period = Period(since=since, until=until, as_of=as_of)
    terms = Terms(seed=old.seed, by=tuple(old.by), quotes=old.quotes, vendors=old.vendors)
    async with transaction(engine) as connection:
        counted = [await _counted(connection, coder.id, coder.description, period, terms) for coder in old.coders]
        compared = [await compare_again(connection, head, period) for head in old.peers]
        exposures = await read_exposures(connection, since, until, as_of)
    again = make_report(period, counted, terms, compared, exposures)
    async with transaction(engine) as connection:
        gone = [*missing_inputs(old, again), *await find_gone(connection, old, again, period)]
    if gone:
        more = f"; and {len(gone) - 1} more" if len(gone) > 1 else ""
        raise AuditError(f"the report cannot be made again: {gone[0]}{more}")
    if again.facts != old.facts:
        raise AuditError(
            "the report cannot be made again: the store has additional codings from the moment of the report"
        )
    return canonical_bytes(again)


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
        trials=() if planned else await _trials(connection, coder, description["rubric"], period),
    )


async def _trials(connection: AsyncConnection, coder: str, rubric: str, period: Period) -> list[TrialCounts]:
    span = TrialSpan(since=period.since, until=period.until, as_of=period.as_of)
    trials = await find_trials(connection, coder, span)
    return [await read_counts(connection, coder, rubric, trial, route, span) for trial, route in trials]
