"""Findings as the watch leaves them, without watching for weeks."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import Config
from auditor.findings import _post
from auditor.store.codings import register_coder
from auditor.store.engine import transaction
from auditor.store.findings import Finding, add_finding

SEEN = datetime(2026, 3, 12, 2, tzinfo=UTC)
FINDING = Finding(
    id="finding_1", coder="statement-1", deployment="d1", metric="ir", level="page", reference_id="reference_1",
    day=date(2026, 3, 11), first_seen=SEEN, value=0.08, low=0.05, high=0.11, n=900, n_statements=100,
    window_since=date(2026, 3, 9),
    evidence={
        "detectors": {"statements": 4.25, "days": 3.5}, "direction": "up", "n_passes": 3,
        "promise": {"alpha": 0.05, "horizon": 90, "series": 2},
        "reference": {"n_passes": 7, "until": "2026-03-08", "overdispersion": 1.1, "shaken": False},
    },
)  # fmt: skip


async def found(engine: AsyncEngine, config: Config, **changed: Any) -> Finding:
    """Keep a finding, and have it posted where there is a webhook."""
    finding = replace(FINDING, **changed)
    async with transaction(engine) as connection:
        await register_coder(connection, finding.coder, "statement", {}, SEEN)
        if await add_finding(connection, finding):
            await _post(connection, config, [finding], SEEN)
    return finding
