"""Compare what the demonstration found with the truth, and with what its judges would find in the limit.

The comparison is a table for the terminal and a picture.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rich.table import Table

from auditor.instrument.designs import SENTINEL_SIZE, Design, cells
from auditor.instrument.pool import shipped_pool
from auditor.probes.plan import balanced
from auditor.report.canvas import BOLD, Colour, Look, Plot
from auditor.report.drawing import gutter_width, marker_key, name_rows
from auditor.report.svg import round_ticks
from auditor.report.wording import percent
from auditor.simulate.config import load
from auditor.simulate.expected import Expectation, ask_of, expect
from auditor.store.estimates import EstimateRow

#: The default seed, which the demonstration's configuration uses to choose the sentinel's statements.
_SEED = 0
#: The rates shown, as (metric, layer, base) of the stored rows and the name under which truth is computed.
SHOWN = (
    (("ber", "union", "full"), "ber_union_full", "BER union, all"),
    (("ber", "sel", "eligible"), "ber_sel", "BER selection"),
    (("ber", "elab", "eligible"), "ber_elab", "BER elaboration"),
    (("ir", None, "eligible"), "ir", "IR"),
    (("dni", None, "eligible"), "dni", "DNI"),
)
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One estimate of one deployment, with its true value and its limit."""

    deployment: str
    name: str
    row: EstimateRow | None
    truth: float | None
    limit: float | None

    @property
    def contains_limit(self) -> bool | None:
        """Whether the interval contains the limit; None if one of them is missing."""
        if self.row is None or self.row.low is None or self.row.high is None or self.limit is None:
            return None
        return self.row.low <= self.limit <= self.row.high


def _expectations(deployments: Sequence[str]) -> dict[str, Expectation]:
    """Compute truth and limit for the sentinel's statements, by simulated deployment."""
    scenario = load().scenario
    texts = [statement.statement for statement in balanced(shipped_pool(), SENTINEL_SIZE, _SEED)]
    plan = {ask_of(cell.condition): 1.0 for cell in cells(Design.SENTINEL)}
    return {
        deployment.name: expect(scenario, deployment, plan, statements=texts)
        for deployment in scenario.deployments
        if deployment.name in deployments
    }


def lines(deployments: Sequence[str], rows: Iterable[EstimateRow]) -> list[Line]:
    """Join the stored estimates of probes over all conditions with truth and limit."""
    rows_by_key = {
        (row.deployment, row.metric, row.layer, row.base): row
        for row in rows
        if row.origin == "probe" and row.condition == "all"
    }
    expected = _expectations(deployments)
    made = []
    for deployment in deployments:
        truth, limit = expected[deployment].true.values, expected[deployment].limit
        for (metric, layer, base), key, name in SHOWN:
            row = rows_by_key.get((deployment, metric, layer, base))
            made.append(
                Line(
                    deployment=deployment,
                    name=name,
                    row=row,
                    truth=truth.get(key),
                    limit=limit.values.get(key) if limit else None,
                )
            )
    return made


def table(lines: Sequence[Line]) -> Table:
    """Return the lines as a table for a terminal."""
    made = Table(box=None, pad_edge=False)
    for heading in ("deployment", "rate"):
        made.add_column(heading, no_wrap=True)
    for heading in ("estimate", "95 % interval", "limit", "truth"):
        # A reason in place of an interval may be long; it continues on the next line.
        made.add_column(heading, justify="right", no_wrap=heading != "95 % interval")
    made.add_column("", no_wrap=True)
    previous = ""
    for line in lines:
        estimate, interval = _estimate(line.row)
        holds = {True: "", False: "*", None: ""}[line.contains_limit]
        first = line.deployment if line.deployment != previous else ""
        previous = line.deployment
        made.add_row(first, line.name, estimate, interval, _percent(line.limit), _percent(line.truth), holds)
    return made


def _estimate(row: EstimateRow | None) -> tuple[str, str]:
    if row is None:
        return "-", "not estimated"
    if row.value is None or row.low is None or row.high is None:
        return "-", row.missing or "missing"
    return _percent(row.value), f"{100 * row.low:.1f} .. {100 * row.high:.1f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def draw(lines: Sequence[Line], path: Path) -> None:
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
