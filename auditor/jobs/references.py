"""Reference windows: the days a deployment's watch was fitted to, summed up once."""

from datetime import UTC, date, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config
from auditor.jobs.watching import reference_days
from auditor.live.changes import ReferenceWindow
from auditor.store.monitor import references_in_force
from auditor.store.windows import freeze_window, read_window


async def reference_windows(
    connection: AsyncConnection, config: Config, coder: str, as_of: datetime
) -> dict[str, ReferenceWindow]:
    """Give what each declared deployment is held against, where that has its days."""
    stored = await references_in_force(connection, coder, as_of)
    found = {}
    for name in (one.name for one in config.deployments if one.name in stored):
        reference = stored[name]
        if reference.until is None:
            continue
        since = max(reference.since, reference.until - timedelta(days=reference_days(config) - 1))
        window = f"reference {reference.id}"
        await freeze_window(
            connection, coder, window, name, _midnight(since), _midnight(reference.until + timedelta(days=1))
        )
        rows = await read_window(connection, coder, window)
        own = [row for row in rows if row["origin"] == "probe"]
        found[name] = ReferenceWindow(since=since, until=reference.until, rows=own)
    return found


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
