"""Read the size and time of earlier answers, and ask the user before money is spent."""

import os
import sys
from collections.abc import Sequence

import typer
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.cli.plan_output import dollars
from auditor.cli.store import in_store
from auditor.config import Config, Deployment
from auditor.errors import AuditError, UsageError
from auditor.postgres.embedded import store_exists
from auditor.probes.estimate import Forecast
from auditor.probes.plan import Planned
from auditor.probes.run import usd_of
from auditor.store.engine import transaction
from auditor.store.plans import AnswerStatsByKind, answered_positions, read_answer_stats, read_spent


def answer_stats(loaded: Config) -> AnswerStatsByKind:
    """Read what answers took so far. Without a store there are none: a plan needs nothing but a configuration."""

    async def read(engine: AsyncEngine) -> AnswerStatsByKind:
        async with transaction(engine) as connection:
            return await read_answer_stats(connection)

    if not store_exists(loaded.data_dir, loaded.database_url(os.environ)):
        return {}
    try:
        return in_store(loaded, read)
    except AuditError as error:
        typer.echo(f"answers are estimated without the store: {error}", err=True)
        return {}


async def agree(
    engine: AsyncEngine,
    planned: Planned,
    forecast: Forecast,
    deployments: tuple[Deployment, ...],
    chosen: tuple[Deployment, ...],
    *,
    yes: bool,
) -> float | None:
    """Ask before money is spent; give the most that the plan may cost in all, at those who are not ``chosen`` too.

    What is still unanswered is what is asked about; where no price is declared, that is printed.

    Raises
    ------
    UsageError
        There is no terminal to ask on.
    """
    whole = left = 0.0
    unpriced = []
    for one in chosen:
        async with transaction(engine) as connection:
            answered = await answered_positions(connection, planned.plan.id, one.name)
        if one.price is None:
            unpriced += [one.name] if len(answered) < planned.instances else []
            continue
        everything = range(planned.instances)
        rest = (position for position in everything if position not in answered)
        whole += forecast.usage(one.name, everything).price_at(one) or 0.0
        left += forecast.usage(one.name, rest).price_at(one) or 0.0
    if not yes:
        ask_leave(left, unpriced)
    if whole == 0:
        return None
    async with transaction(engine) as connection:
        spent = await read_spent(connection, planned.plan.id)
    others = sum(usd_of(one, spent[one.name]) for one in deployments if one.name in spent and one not in chosen)
    return 2 * whole + others


def ask_leave(usd: float, unpriced: Sequence[str]) -> None:
    """Ask before so much is spent; of deployments without a price, say so.

    Raises
    ------
    UsageError
        There is no terminal to ask on.
    """
    if unpriced:
        typer.echo(f"the cost is unknown: no price is declared for {', '.join(unpriced)}", err=True)
    if usd > 0:
        if not sys.stdin.isatty():
            raise UsageError(f"the estimated cost is {dollars(usd)}; add --yes to send")
        typer.confirm(f"The estimated cost is {dollars(usd)}. Send?", abort=True, err=True)
