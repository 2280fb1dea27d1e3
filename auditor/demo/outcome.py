"""Compare what the demonstration found with the truth, and with what its judges would find in the limit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table

from auditor.instrument.designs import SENTINEL_SIZE, Design, cells
from auditor.instrument.pool import shipped_pool
from auditor.probes.plan import balanced
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


def expectations(deployments: Sequence[str]) -> dict[str, Expectation]:
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
    expected = expectations(deployments)
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
