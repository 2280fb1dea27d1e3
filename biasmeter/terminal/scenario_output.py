"""Write what ``biasmeter simulate`` prints: deployments, judges, true values, and the instrument's limits."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from auditor.simulate.config import LoadedScenario
from auditor.simulate.expected import expect_tasks
from auditor.simulate.model import SimulatedDeployment
from biasmeter.terminal.tables import table_lines

#: Metrics shown, in this order; the JSON has all of them.
SHOWN: Final = ("ber_union_full", "ber_sel", "ber_elab", "ber_union", "ir", "dni", "eligible")


def describe(loaded: LoadedScenario) -> dict[str, Any]:
    """Return the declaration and the values that follow from it, as JSON data."""
    scenario = loaded.scenario
    return {
        "simulated": True,
        "scenario": loaded.source,
        "seed": scenario.seed,
        "statements": len(loaded.statements) or None,
        "deployments": [
            {
                "name": deployment.name,
                "vendor": deployment.vendor,
                "weights": deployment.weights,
                "drifts": deployment.drift is not None,
            }
            for deployment in scenario.deployments
        ],
        "judges": [{"name": judge.name, "vendor": judge.vendor} for judge in scenario.judges],
        "truth": expect_tasks(scenario, statements=loaded.texts),
    }


def listing(loaded: LoadedScenario) -> str:
    """Write the table for people: ``true > limit`` in each cell, a dash where the metric does not exist."""
    scenario = loaded.scenario
    described = describe(loaded)
    over = f"{len(loaded.statements)} statements" if loaded.statements else "all statements there could be"
    lines = [
        f"Simulated from {loaded.source}: nothing below was measured on any real model.",
        f"Each cell: what is true > what the instrument reports in the limit, over {over}.",
        "",
        *_table(described["truth"]),
        "",
        *(_about(deployment) for deployment in scenario.deployments),
        f"judges: {', '.join(judge.name for judge in scenario.judges) or 'none'}",
    ]
    return "\n".join(lines)


def _about(deployment: SimulatedDeployment) -> str:
    failures = deployment.failures
    failing = failures.rate_limited + failures.server_error + failures.cut
    facts = [
        f"weights {deployment.weights}" if deployment.weights else "",
        f"{deployment.filtered:.0%} filtered" if deployment.filtered else "",
        f"{deployment.memorised:.0%} of the pool's scenes memorised" if deployment.memorised else "",
        f"{deployment.open_refused:.0%} of open questions refused" if deployment.open_refused else "",
        f"{failing:.1%} of requests fail" if failing else "",
        f"drifts at {_moment(deployment)}" if deployment.drift else "",
    ]
    return f"{deployment.name}: {', '.join(fact for fact in facts if fact) or 'nothing special'}"


def _moment(deployment: SimulatedDeployment) -> str:
    at = deployment.drift.at if deployment.drift else 0.0
    return f"{at:g} s after the start" if isinstance(at, float) else at.isoformat()


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = [["deployment", "task", "period", *SHOWN]]
    for row in rows:
        true, limit = row["true"], row["limit"] or {}
        cells.append([row["deployment"], row["task"], row["period"], *(_cell(true, limit, name) for name in SHOWN)])
    return list(table_lines(cells))


def _cell(true: Mapping[str, float], limit: Mapping[str, float], name: str) -> str:
    shown = [f"{values[name]:.3f}" if name in values else "-" for values in (true, limit)]
    return " > ".join(shown) if shown != ["-", "-"] else "-"
