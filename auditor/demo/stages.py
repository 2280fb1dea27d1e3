"""The demonstration, stage by stage. Each stage says what it does, and the first that fails ends it."""

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
    run,
    running,
    write_configuration,
    write_scenario,
)
from auditor.instrument.designs import SENTINEL_SIZE
from auditor.jobs.idle import Done, run_until_idle
from auditor.store.engine import make_engine, reading
from auditor.store.estimates import EstimateRow, read_estimates
from auditor.store.opening import opened


def demonstrate(folder: Path, port: int, console: Console) -> None:
    """Run the whole product against simulated deployments, and show what it finds beside what is true.

    Raises
    ------
    AuditError
        A stage failed; the message names it and the log that says more.
    """
    logging.getLogger("alembic").setLevel(logging.WARNING)
    ports = choose_ports(port)
    path = write_configuration(folder, ports)
    scenario = write_scenario(folder)
    config = load(path, {})
    began = datetime.now(UTC)
    console.print(f"Everything of this demonstration is simulated; it lives in [bold]{folder}[/bold].")
    simulate = ("simulate", "-c", str(scenario), "--port", str(ports.simulator))
    with running(folder / "simulate.log", "listening on", *simulate):
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
            _report(folder, path, began)
    _go_on(folder, ports, console)


def _probe(folder: Path, path: Path, console: Console) -> None:
    asked = [option for name in DEPLOYMENTS for option in ("--deployment", name)]
    with console.status(f"3. probes: {SENTINEL_SIZE} statements x 3 tasks of each deployment, through the gateway"):
        run(folder / "audit.log", "audit", "run", "-c", str(path), "--design", "sentinel", *asked, "--yes")
    console.print(
        f"3. probes: {SENTINEL_SIZE} statements x 3 tasks x {len(DEPLOYMENTS)} deployments, asked through the gateway"
    )


async def _audit(config: Config, console: Console) -> list[EstimateRow]:
    with opened(config.data_dir, None) as database_url:
        engine = make_engine(database_url)
        try:
            done = await _shown(run_until_idle(config, engine), engine, console)
            async with reading(engine) as connection:
                coded = await connection.scalar(text("SELECT count(*) FROM codings"))
                rows = await read_estimates(connection, window=_longest(config))
        finally:
            await engine.dispose()
    console.print(f"4. {coded} answers coded by rules and 3 judges; {done.estimates} numbers estimated")
    return rows


def _longest(config: Config) -> str:
    return format_duration(max(config.monitor.windows))


async def _shown(work: Awaitable[Done], engine: AsyncEngine, console: Console) -> Done:
    """Wait for the work, and show how far it is."""
    task = asyncio.ensure_future(work)
    with console.status("4. coding the answers") as status:
        while not task.done():
            async with reading(engine) as connection:
                coded = await connection.scalar(text("SELECT count(*) FROM codings"))
            status.update(f"4. coding the answers: {coded} so far")
            await asyncio.wait({task}, timeout=0.5)
    return await task


def _report(folder: Path, path: Path, began: datetime) -> None:
    until = datetime.now(UTC) + timedelta(minutes=1)
    period = ("--from", began.isoformat(), "--to", until.isoformat())
    run(folder / "report.log", "report", "-c", str(path), *period, "-o", str(folder))


def _explain(shown: list[outcome.Line], console: Console) -> None:
    held = [line.holds_the_limit for line in shown if line.holds_the_limit is not None]
    console.print(
        "\nPer cent, over all conditions. The limit is what an instrument with these judges would report after\n"
        "endlessly many probes; it differs from the truth by the judges' errors. "
        f"{sum(held)} of {len(held)} intervals hold it\n(* marks the others; 95 % are meant to).\n"
        "- sim-cancelling is in the cancellation trap: its layers disagree often (IR), but in both directions\n"
        "  alike, so that DNI is near 0.\n"
        "- sim-twin-home and sim-twin-abroad serve the same weights; what differs is the host.",
        soft_wrap=True,
        highlight=False,
    )


def _go_on(folder: Path, ports: Ports, console: Console) -> None:
    console.print(
        f"\nreport     {folder / 'report.html'}\n"
        f"go on      tiltmeter simulate -c {folder / 'scenario.yaml'} --port {ports.simulator} &\n"
        f"           tiltmeter up -c {folder / 'tiltmeter.yaml'}\n"
        f"then       http://127.0.0.1:{ports.auditor}/   and   "
        f'base_url="http://127.0.0.1:{ports.gateway}/v1", model="sim-level"',
        soft_wrap=True,
        highlight=False,
    )
