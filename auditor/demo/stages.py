"""Run the demonstration stage by stage. Each stage prints what it does; the first that fails ends it."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

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
    asked = [option for name in DEPLOYMENTS for option in ("--deployment", name)]
    with console.status(f"3. probes: {SENTINEL_SIZE} statements x 3 tasks of each deployment, through the gateway"):
        run(folder / "audit.log", "audit", "run", "-c", str(path), "--design", "sentinel", *asked, "--yes")
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


def _explain(shown: list[outcome.Line], console: Console) -> None:
    held = [line.contains_limit for line in shown if line.contains_limit is not None]
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
_INTERVAL: Final = "#4063d8"
_LIMIT: Final = "#202020"
_TRUTH: Final = "#c2410c"


def draw_result(shown: Sequence[Line], path: Path) -> None:
    """Write an SVG with a panel for each rate and a row for each deployment.

    Parameters
    ----------
    shown
        The lines of the result; those without an estimate leave their row empty.
    path
        The file to write. Its bytes depend on the lines alone.
    """
    import matplotlib as mpl  # noqa: PLC0415 -- slow to import, and only the demonstration draws here
    from matplotlib.figure import Figure  # noqa: PLC0415 -- as above

    names = [name for _, _, name in SHOWN]
    deployments = list(dict.fromkeys(line.deployment for line in shown))
    with mpl.rc_context({"svg.hashsalt": "biasmeter", "svg.fonttype": "path", "font.size": 9}):
        figure = Figure(figsize=(10, 0.42 * len(deployments) + 1.3), facecolor="white")
        for panel, (name, axes) in enumerate(zip(names, figure.subplots(1, len(names), sharey=True), strict=True)):
            _draw_panel(axes, [line for line in shown if line.name == name], deployments)
            axes.set_title(name, fontsize=9, loc="left")
            axes.tick_params(left=False, labelleft=panel == 0)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False, fontsize=8.5)
        figure.subplots_adjust(left=0.13, right=0.975, top=0.9, bottom=0.26, wspace=0.2)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw_panel(axes: Any, lines: Sequence[Line], deployments: Sequence[str]) -> None:
    rows = {name: -place for place, name in enumerate(deployments)}
    known = []
    for line in lines:
        row = line.row
        if row is not None and row.value is not None and row.low is not None and row.high is not None:
            known.append((100 * row.value, 100 * row.low, 100 * row.high, rows[line.deployment]))
    if known:
        value, low, high, y = zip(*known, strict=True)
        axes.hlines(y, low, high, color=_INTERVAL, linewidth=2, label="estimate with 95 % interval")
        axes.plot(value, y, "o", color=_INTERVAL, markersize=4.5)
    limits = [(100 * line.limit, rows[line.deployment]) for line in lines if line.limit is not None]
    truths = [(100 * line.truth, rows[line.deployment]) for line in lines if line.truth is not None]
    axes.plot(
        *_columns(limits), "|", color=_LIMIT, markersize=11, label="limit: infinitely many probes, the same judges"
    )
    axes.plot(*_columns(truths), "x", color=_TRUTH, markersize=5, label="truth of the simulation")
    axes.set_yticks(list(rows.values()), list(rows))
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.axvline(0, color="#d0d0d0", linewidth=0.8, zorder=0)
    axes.xaxis.set_major_formatter("{x:.0f} %")
    axes.spines[["top", "right", "left"]].set_visible(False)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
