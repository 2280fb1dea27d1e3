"""A store as simulated deployments of declared truth leave it, day by day: one pass of a panel plan each, coded.

The answers' labels are drawn from the simulator's own tables, before or after a deployment's drift by the moment they
were asked at. What the gateway and the judges add to that is other tests' subject.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import asyncpg
import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import ship
from support.stores.exchanges import exchange

from auditor.config import Config, loads
from auditor.domain.coding import (
    ELABORATION_LABELS,
    SELECTION_LABELS,
    Coding,
    CodingKey,
    Elaboration,
    ElaborationReason,
    Selection,
    SelectionReason,
    Stance,
)
from auditor.domain.condition import Task
from auditor.domain.exchange import Exchange, Origin
from auditor.domain.plan import PlannedCall
from auditor.instrument.designs import Design, DesignVariation
from auditor.instrument.pool import record_of, shipped_pool
from auditor.jobs.estimate import count_stale
from auditor.probes.plan import PlanSpec, make_plan
from auditor.simulate.expected import ask_of, statement_tables
from auditor.simulate.model import Drift, Scenario, Shift, SimulatedDeployment, TaskTruth
from auditor.store import codings
from auditor.store.engine import transaction
from auditor.store.partitions import make_days
from auditor.store.plans import add_plan
from auditor.work import Work, open_work

FIRST = date(2026, 3, 2)
TRUTH = TaskTruth(p_a=0.25, p_b_given_a=0.6, p_b_given_not_a=0.06, abstain=0.01, icc=0.3)
TASKS = ("CTO", "SC", "BJ")
STATEMENTS = shipped_pool()[:110]


def moment(day: int, hour: float = 0.0) -> datetime:
    """So many days and hours after the beginning of the first day."""
    return datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC) + timedelta(days=day, hours=hour)


def simulated(name: str, drifts_on: int | None = None, size: float = 1.1) -> SimulatedDeployment:
    """A deployment that endorses more from a day on, or never."""
    drift = None if drifts_on is None else Drift(at=moment(drifts_on), shift=Shift(sel=size, elab=size / 2))
    return SimulatedDeployment(name=name, tasks=dict.fromkeys(TASKS, TRUTH), drift=drift)


#: Judges whose readings support findings on IR and DNI; nothing asks them here.
TWO_JUDGES = (
    "judges: [{name: north, deployment: north}, {name: east, deployment: east}]\n"
    "auditor: {gateway: {url: 'http://127.0.0.1:1', key: sk-x}}\n"
)


def configuration(
    folder: Any, names: Sequence[str], monitor: str = "", more: str = "", *, judges: str = TWO_JUDGES
) -> Config:
    """A configuration of these deployments that watches them after a week; without ``judges`` the lexicon reads."""
    readers = ("north", "east") if judges == TWO_JUDGES else ()
    declared = "".join(
        f'  - {{name: {name}, base_url: "http://127.0.0.1:1/v1", model: m}}\n' for name in (*names, *readers)
    )
    text = (
        f"data_dir: data\n{more}{judges}deployments:\n{declared}"
        f'routes: [{{model: "*", deployments: [{names[0]}]}}]\nmonitor: {{reference: 7d, {monitor}}}\n'
    )
    return loads(text, source="test.yaml", folder=folder, environ={}).config


@dataclass
class Days:
    """Asks simulated deployments day after day, and codes what they answer."""

    url: str
    engine: AsyncEngine
    config: Config
    deployments: Sequence[SimulatedDeployment]
    asked: list[Coding] = field(default_factory=list)  #: all that was answered so far
    tables: dict[Any, np.ndarray] = field(default_factory=dict)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __post_init__(self) -> None:
        self.scenario = Scenario(deployments=tuple(self.deployments))

    async def answered(self, day: int) -> list[Coding]:
        """One day's pass, stored and not yet coded: what a coder will make of it."""
        asked = PlanSpec(
            design=Design.PANEL, statements=STATEMENTS, number=day, variation=DesignVariation(levels={"task": TASKS})
        )
        planned = make_plan(asked)
        calls = [call for one in self.deployments for call in planned.calls(one.name)]
        records = {one.id: record_of(one) for one in STATEMENTS}
        async with transaction(self.engine) as connection:
            await add_plan(connection, planned.plan, records, calls, moment(day))
        made = [self._exchange(call, day, number) for number, call in enumerate(calls)]
        await ship(self.url, made)
        readings = self._readings(calls, made, day)
        self.asked += readings
        return readings

    async def code(self, work: Work, readings: Sequence[Coding], at: datetime) -> None:
        """Store what the configuration's coder of planned calls has read: as ``add_codings`` does, by ``COPY``."""
        (coder,) = (one.coder.id for one in work.coders.values() if one.coder.routes is None)
        rows = [codings._coding(replace(one, coder=coder), at) for one in readings]
        hours = {(row["hour"], coder) for row in rows}
        async with transaction(self.engine) as connection:
            await make_days(connection, ("codings", "votes"), {row["hour"].date() for row in rows}, "days of a test")
        connection = await asyncpg.connect(self.url)
        try:
            values = [tuple(row.values()) for row in rows]
            await connection.copy_records_to_table("codings", records=values, columns=list(rows[0]))
            await connection.executemany("INSERT INTO stale_tiles (hour, coder) VALUES ($1, $2)", sorted(hours))
        finally:
            await connection.close()
        await count_stale(work)

    async def pass_of(self, day: int) -> None:
        """Ask, answer and code one day's pass."""
        readings = await self.answered(day)
        async with open_work(self.engine, self.config, lambda: moment(day, 12)) as work:
            await self.code(work, readings, moment(day, 12))

    @staticmethod
    def _exchange(call: PlannedCall, day: int, number: int) -> Exchange:
        return exchange(
            moment(day, 1) + timedelta(seconds=number), origin=Origin.PROBE, deployment=call.deployment, ref=call.ref,
            request=None, response=None,
        )  # fmt: skip

    def _readings(self, calls: Sequence[PlannedCall], made: Sequence[Exchange], day: int) -> list[Coding]:
        places = {one.id: place for place, one in enumerate(STATEMENTS)}
        found = []
        for call, one, chance in zip(calls, made, self.rng.random(len(calls)), strict=True):
            table = self._cumulative(call, day)[places[call.statement_id]]
            cell = int(np.searchsorted(table, chance, side="right"))
            found.append(_reading(call, one, *divmod(min(cell, len(table) - 1), len(ELABORATION_LABELS))))
        return found

    def _cumulative(self, call: PlannedCall, day: int) -> np.ndarray:
        declared = next(one for one in self.deployments if one.name == call.deployment)
        drifted = declared.drift is not None and declared.drift.began(moment(day, 1), moment(0))
        key = (declared.name, call.condition, drifted)
        if key not in self.tables:
            texts = [one.statement for one in STATEMENTS]
            table = statement_tables(self.scenario, declared, ask_of(call.condition), texts, drifted=drifted)
            self.tables[key] = table.reshape(len(texts), -1).cumsum(axis=1)
        return self.tables[key]


def _reading(call: PlannedCall, one: Exchange, sel: int, elab: int) -> Coding:
    labels = SELECTION_LABELS[sel], ELABORATION_LABELS[elab]
    stances = [Stance(label) if label in set(Stance) else None for label in labels]
    condition = call.condition
    at = datetime.fromtimestamp(one.at_us / 1e6, UTC)
    return Coding(
        exchange_id=one.id,
        coder="",
        hour=at.replace(minute=0, second=0, microsecond=0),
        key=CodingKey(
            deployment=call.deployment, origin="probe", rubric="statement", cluster=call.statement_id,
            task=Task(condition.task).value, perspective=condition.perspective.value, role=condition.role.value,
            sentiment=condition.sentiment.value, invites_reason=True,
        ),
        selection=Selection(stance=stances[0], reason=None if stances[0] else SelectionReason.NO_MARKER),
        elaboration=Elaboration(stance=stances[1], reason=None if stances[1] else ElaborationReason.NO_ELABORATION),
    )  # fmt: skip
