"""Run the demonstration stage by stage. Each stage prints what it does; the first that fails ends it."""

import asyncio
import logging
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.config import Config, format_duration, load
from auditor.demo import outcome
from auditor.demo.installation import (
    DEPLOYMENTS,
    Ports,
    choose_ports,
    ended_by_signals,
    run,
    running,
    write_configuration,
    write_scenario,
)
from auditor.instrument.designs import SENTINEL_SIZE
from auditor.jobs.run_once import WorkDone, run_once
from auditor.postgres.embedded import open_store
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import EstimateRow, read_estimates

_PICTURE = "result.svg"


def demonstrate(folder: Path, port: int, console: Console) -> None:
    """Run the whole product against simulated deployments, and compare its estimates with the truth.

    Raises
    ------
    AuditError
        A stage failed; the message names it and its log.
    """
    logging.getLogger("alembic").setLevel(logging.WARNING)
    ports = choose_ports(port)
    path = write_configuration(folder, ports)
    scenario = write_scenario(folder)
    config = load(path, {})
    began = datetime.now(UTC)
    console.print(f"Everything in this demonstration is simulated; its files are in [bold]{folder}[/bold].")
    simulate = ("simulate", "-c", str(scenario), "--port", str(ports.simulator))
    with ended_by_signals(), running(folder / "simulate.log", "listening on", *simulate):
        console.print(f"1. simulated deployments and judges on 127.0.0.1:{ports.simulator}")
        with running(folder / "up.log", "/v1 with", "up", "-c", str(path)):
            console.print(
                f"2. gateway on 127.0.0.1:{ports.gateway}, auditor on 127.0.0.1:{ports.auditor}, store embedded"
            )
            _probe(folder, path, console)
            rows = asyncio.run(_audit(config, console))
            shown = outcome.lines(DEPLOYMENTS, rows)
            console.print()
            console.print(outcome.table(shown))
            _explain(shown, console)
            outcome.draw(shown, folder / _PICTURE)
            _report(folder, path, began, ports)
    _show_next_steps(folder, ports, console)


def _probe(folder: Path, path: Path, console: Console) -> None:
    options = [option for name in DEPLOYMENTS for option in ("--deployment", name)]
    with console.status(f"3. probes: {SENTINEL_SIZE} statements x 3 tasks of each deployment, through the gateway"):
        run(folder / "audit.log", "audit", "run", "-c", str(path), "--design", "sentinel", *options, "--yes")
    console.print(
        f"3. probes: {SENTINEL_SIZE} statements x 3 tasks x {len(DEPLOYMENTS)} deployments, asked through the gateway"
    )


async def _audit(config: Config, console: Console) -> list[EstimateRow]:
    with open_store(config.data_dir, None) as database_url:
        engine = make_engine(database_url)
        try:
            done = await _shown(run_once(config, engine), engine, console)
            async with transaction(engine) as connection:
                coded = await connection.scalar(text("SELECT count(*) FROM codings"))
                rows = await read_estimates(connection, window=format_duration(max(config.monitor.windows)))
        finally:
            await engine.dispose()
    console.print(f"4. {coded} answers coded by rules and 3 judges; {done.estimates} numbers estimated")
    return rows


async def _shown(work: Awaitable[WorkDone], engine: AsyncEngine, console: Console) -> WorkDone:
    """Wait for the work, and show its progress."""
    task = asyncio.ensure_future(work)
    with console.status("4. coding the answers") as status:
        while not task.done():
            async with transaction(engine) as connection:
                coded = await connection.scalar(text("SELECT count(*) FROM codings"))
            status.update(f"4. coding the answers: {coded} so far")
            await asyncio.wait({task}, timeout=0.5)
    return await task


def _report(folder: Path, path: Path, began: datetime, ports: Ports) -> None:
    until = datetime.now(UTC) + timedelta(minutes=1)
    period = ("--from", began.isoformat(), "--to", until.isoformat())
    console = f"http://127.0.0.1:{ports.auditor}"
    run(folder / "report.log", "report", "-c", str(path), *period, "-o", str(folder), "--console", console)


def _explain(lines: list[outcome.Line], console: Console) -> None:
    held = [line.contains_limit for line in lines if line.contains_limit is not None]
    console.print(
        "\nPercentages over all conditions. The limit is the value that these judges would\n"
        "give after infinitely many probes; it differs from the truth by their errors.\n"
        f"{sum(held)} of {len(held)} intervals contain the limit (* marks the others; 95 % should).\n"
        "- sim-cancelling simulates the cancellation trap: its layers often disagree, so\n"
        "  IR is high, but equally in both directions, so DNI is near 0.\n"
        "- sim-twin-home and sim-twin-abroad serve the same weights on different hosts.",
        soft_wrap=True,
        highlight=False,
    )


def _show_next_steps(folder: Path, ports: Ports, console: Console) -> None:
    console.print(
        f"\nreport     {folder / 'report.html'}\n"
        f"picture    {folder / _PICTURE}\n"
        f"continue   biasmeter simulate -c {folder / 'scenario.yaml'} --port {ports.simulator} &\n"
        f"           biasmeter up -c {folder / 'biasmeter.yaml'}\n"
        f"console    http://127.0.0.1:{ports.auditor}/\n"
        f'in code    OpenAI(base_url="http://127.0.0.1:{ports.gateway}/v1"), model="sim-level"',
        soft_wrap=True,
        highlight=False,
    )
