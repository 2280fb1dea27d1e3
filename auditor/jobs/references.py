"""Reference windows: the days a deployment's watch was fitted to, summed up once."""

from datetime import UTC, date, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config
from auditor.domain.exchange import Origin
from auditor.jobs.watching import reference_days
from auditor.live.changes import ReferenceWindow
from auditor.store.references import references_in_force
from auditor.store.windows import freeze_window, read_windows


async def reference_windows(
    connection: AsyncConnection, config: Config, coder: str, as_of: datetime
) -> dict[str, ReferenceWindow]:
    """Give what each declared deployment is held against, where that has its days."""
    stored = await references_in_force(connection, coder, as_of)
    bounds: dict[str, tuple[date, date]] = {}
    for name in (one.name for one in config.deployments if one.name in stored):
        reference = stored[name]
        if reference.until is not None:
            first = reference.until - timedelta(days=reference_days(config) - 1)
            bounds[name] = max(reference.since, first), reference.until
    windows = {name: f"reference {stored[name].id}" for name in bounds}
    for name, (since, until) in bounds.items():
        days = (_midnight(since), _midnight(until + timedelta(days=1)))
        await freeze_window(connection, coder, windows[name], name, *days)
    counted = await read_windows(connection, coder, windows.values())
    return {
        name: ReferenceWindow(
            since=since, until=until, rows=[row for row in counted[windows[name]] if row["origin"] == Origin.PROBE]
        )
        for name, (since, until) in bounds.items()
    }


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
