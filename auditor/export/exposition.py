"""What ``/metrics`` says of estimates: rendered once per snapshot, so that a scrape costs a copy of bytes."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine
from typing_extensions import override

from auditor.errors import StoreUnavailable
from auditor.export.families import estimate_families, job_family
from auditor.store.engine import reading
from auditor.store.estimates import EstimateRow, newest_as_of, read_estimates
from auditor.store.exposures import ExposureRow, latest_exposures, newest_exposure
from auditor.store.queue import queue_sizes

log = logging.getLogger(__name__)

#: How often the store is asked for a newer snapshot.
EVERY: Final = 5.0


class _Families(Collector):
    """Families that are there already."""

    def __init__(self, families: Iterable[GaugeMetricFamily]) -> None:
        self._families = list(families)

    @override
    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families


def render(families: Iterable[GaugeMetricFamily]) -> bytes:
    """Write families as Prometheus reads them; those without a series are left out."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(family for family in families if family.samples))
    return generate_latest(registry)


class Exposition:
    """The newest snapshot as text."""

    def __init__(self) -> None:
        self._as_of: tuple[datetime | None, datetime | None] = None, None
        self._estimates = b""
        self._jobs = b""

    @property
    def text(self) -> bytes:
        """Everything that is known now."""
        return self._estimates + self._jobs

    async def refresh(self, engine: AsyncEngine) -> None:
        """Ask the store whether there is a newer snapshot, and render it.

        Raises
        ------
        StoreUnavailable
            The store does not answer; what was known before stays, with its time.
        """
        rows: list[EstimateRow] = []
        exposures: list[ExposureRow] = []
        async with reading(engine) as connection:
            self._jobs = render([job_family(await queue_sizes(connection))])
            as_of = await newest_as_of(connection), await newest_exposure(connection)
            changed = as_of != self._as_of
            if changed:
                rows = await read_estimates(connection)
                exposures = await latest_exposures(connection)
        if changed:
            self._estimates = await asyncio.to_thread(lambda: render(estimate_families(rows, exposures)))
            self._as_of = as_of

    async def follow(self, engine: AsyncEngine) -> None:
        """Refresh now and then, until cancelled."""
        while True:
            try:
                await self.refresh(engine)
            except StoreUnavailable as error:
                log.debug("%s", error)
            await asyncio.sleep(EVERY)
