"""Run the demonstration stage by stage. Each stage prints what it does; the first that fails ends it."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

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
from auditor.demo.outcome import SHOWN, Line
from auditor.instrument.designs import SENTINEL_SIZE
from auditor.jobs.run_once import WorkDone, run_once
from auditor.postgres.embedded import open_store
from auditor.report.canvas import BOLD, Colour, Look, Plot
from auditor.report.drawing import gutter_width, marker_key, name_rows
from auditor.report.svg import round_ticks
from auditor.report.wording import percent
from auditor.store.engine import make_engine, transaction
from auditor.store.estimates import EstimateRow, read_estimates


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
            draw_result(shown, folder / PICTURE)
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
        f"picture    {folder / PICTURE}\n"
        f"continue   biasmeter simulate -c {folder / 'scenario.yaml'} --port {ports.simulator} &\n"
        f"           biasmeter up -c {folder / 'biasmeter.yaml'}\n"
        f"console    http://127.0.0.1:{ports.auditor}/\n"
        f'in code    OpenAI(base_url="http://127.0.0.1:{ports.gateway}/v1"), model="sim-level"',
        soft_wrap=True,
        highlight=False,
    )


#: The name of the file.
PICTURE: Final = "result.svg"
_INTERVAL: Final = Look(colour=Colour.ACCENT, width=2, alpha=0.8)
_ESTIMATE: Final = Look(colour=Colour.ACCENT, shape="circle", size=5)
_LIMIT: Final = Look(colour=Colour.INK, shape="tick", size=15, edge=1.4)
_TRUTH: Final = Look(colour=Colour.SEL, shape="diamond", size=8, edge=1.4, is_hollow=True)
_KEY: Final = (
    (replace(_INTERVAL, shape="dash", size=10, edge=2), "estimate with 95 % interval"),
    (_LIMIT, "limit: infinitely many probes, the same judges"),
    (_TRUTH, "truth of the simulation"),
)
#: Width of the panel of a rate, and the space between two, in pixels.
_PANEL: Final = 128.0
_GAP: Final = 34.0


def draw_result(lines: Sequence[Line], path: Path) -> None:
    """Write an SVG with a panel for each rate and a row for each deployment.

    Parameters
    ----------
    lines
        The lines of the result; those without an estimate leave their row empty.
    path
        The file to write. Its bytes depend on the lines alone.
    """
    deployments = list(dict.fromkeys(line.deployment for line in lines))
    left = gutter_width(deployments)
    width = left + len(SHOWN) * (_PANEL + _GAP)
    plot = Plot(width, 34 * len(deployments) + 88, left=left, top=34, bottom=54)
    name_rows(plot, deployments)
    for panel, (_, _, name) in enumerate(SHOWN):
        start = left + panel * (_PANEL + _GAP)
        plot.move(start, start + _PANEL)
        plot.write(start, 10, name, BOLD)
        _draw_panel(plot, [line for line in lines if line.name == name], deployments)
    marker_key(plot, _KEY, y=plot.height - 10)
    path.write_text(plot.file("Estimates of the simulated deployments, beside their limit and the truth"), "utf-8")


def _draw_panel(plot: Plot, lines: Sequence[Line], deployments: Sequence[str]) -> None:
    ends = [end for line in lines for end in _values(line)] or [0.0]
    low, high = min(0.0, *ends), max(0.05, *ends)
    plot.set_x(low - 0.06 * (high - low), high + 0.06 * (high - low))
    ticks = round_ticks(low, high, 3)
    plot.ticks_x(ticks, [percent(tick, 0) for tick in ticks], is_grid=False)
    plot.rule_x(0, Colour.FAINT, is_back=True)
    for line in lines:
        y, row = deployments.index(line.deployment), line.row
        if row is not None and row.value is not None and row.low is not None and row.high is not None:
            plot.across(y, row.low, row.high, _INTERVAL)
            plot.mark(row.value, y, _ESTIMATE)
        if line.limit is not None:
            plot.mark(line.limit, y, _LIMIT)
        if line.truth is not None:
            plot.mark(line.truth, y, _TRUTH)


def _values(line: Line) -> list[float]:
    """Return what a row shows."""
    interval = () if line.row is None else (line.row.value, line.row.low, line.row.high)
    return [value for value in (*interval, line.limit, line.truth) if value is not None]
