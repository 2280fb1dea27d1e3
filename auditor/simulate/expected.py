"""Compute the expected results of an audit of a scenario: the true values, and the instrument's limits.

``declared_task`` applies condition, drift and instruction to a declaration; ``expect`` runs it through ``truth`` and
``channel``. Weighted over conditions, the same functions give what a whole plan should report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from auditor.domain.condition import Condition, Task
from auditor.simulate.channel import panel_channel
from auditor.simulate.model import Scenario, Shift, SimulatedDeployment, TaskTruth, read_shift_key, tasks
from auditor.simulate.propensity import Floats, latent_positions, rates_at
from auditor.simulate.truth import TruthMetrics, joint_table, metrics_of, moments_of, population_moments


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """One kind of question: the condition, and whether the prompt asks for the bare answer only."""

    task: Task = Task.BJ
    perspective: str = "self"
    role: str = "none"
    sentiment: str = "neutral"
    answer_only: bool = False

    def level(self, factor: str) -> str:
        """Return the level of one factor."""
        levels = {"perspective": self.perspective, "role": self.role, "sentiment": self.sentiment}
        return self.task if factor == "task" else levels[factor]


def ask_of(condition: Condition, *, answer_only: bool = False) -> Ask:
    """Return the kind of question of one cell of the grid."""
    levels = (condition.perspective, condition.role, condition.sentiment)
    perspective, role, sentiment = (str(level) for level in levels)
    return Ask(task=condition.task, perspective=perspective, role=role, sentiment=sentiment, answer_only=answer_only)


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """The true metrics, and the limit of the reported ones for many responses (absent without a panel)."""

    true_joint: Floats
    limit_joint: Floats | None
    true: TruthMetrics
    limit: TruthMetrics | None


def declared_task(deployment: SimulatedDeployment, ask: Ask, *, drifted: bool = False) -> TaskTruth:
    """Return the deployment's true behaviour in one condition, before or after its drift."""
    drift = deployment.drift if drifted else None
    truth = (drift.tasks.get(ask.task) if drift else None) or deployment.tasks.get(ask.task) or TaskTruth()
    shifts = [
        shift
        for key, shift in deployment.shifts.items()
        if all(ask.level(factor) == level for factor, level in read_shift_key(key).items())
    ]
    if drift:
        shifts.append(drift.shift)
    truth = _shifted(truth, Shift(sel=sum(shift.sel for shift in shifts), elab=sum(shift.elab for shift in shifts)))
    if ask.answer_only:
        kept = 1.0 - deployment.obeys_only
        truth = replace(
            truth,
            bare_given_a=1.0 - (1.0 - truth.bare_given_a) * kept,
            bare_given_not_a=1.0 - (1.0 - truth.bare_given_not_a) * kept,
        )
    return truth


def _shifted(truth: TaskTruth, shift: Shift) -> TaskTruth:
    if not shift.sel and not shift.elab:
        return truth
    return replace(
        truth,
        p_a=float(expit(logit(truth.p_a) + shift.sel)),
        p_b_given_a=float(expit(logit(truth.p_b_given_a) + shift.elab)),
        p_b_given_not_a=float(expit(logit(truth.p_b_given_not_a) + shift.elab)),
    )


def statement_tables(
    scenario: Scenario, deployment: SimulatedDeployment, ask: Ask, statements: Sequence[str], *, drifted: bool = False
) -> Floats:
    """Return the true joint table of every statement: shape [G, 5, 6], each sums to 1."""
    truth = declared_task(deployment, ask, drifted=drifted)
    z_sel, z_elab = latent_positions(scenario.seed, scenario.spread, deployment, ask.task, statements)
    moments = moments_of(rates_at(truth, z_sel, z_elab))
    return joint_table(truth, moments, free=not ask.task.has_selection, filtered=deployment.filtered)


def true_joint(
    scenario: Scenario,
    deployment: SimulatedDeployment,
    ask: Ask,
    *,
    statements: Sequence[str] | None = None,
    drifted: bool = False,
) -> Floats:
    """Return the true joint table of one condition, over the given statements or over the population."""
    if statements is not None:
        if not statements:
            raise ValueError("no statements: an empty pool has no truth")
        return np.asarray(statement_tables(scenario, deployment, ask, statements, drifted=drifted).mean(axis=0))
    truth = declared_task(deployment, ask, drifted=drifted)
    moments = population_moments(truth, scenario.spread.layers)
    return joint_table(truth, moments, free=not ask.task.has_selection, filtered=deployment.filtered)


def expect(
    scenario: Scenario,
    deployment: SimulatedDeployment,
    asks: Ask | Mapping[Ask, float],
    *,
    statements: Sequence[str] | None = None,
    drifted: bool = False,
    judges: Sequence[str] | None = None,
) -> Expectation:
    """Return true values and limits for one condition, or for a plan (responses per condition, any unit).

    Parameters
    ----------
    statements
        Pool of the audit, with equal weights; None for the population of statements.
    drifted
        Whether the values are those after the deployment's drift.
    judges
        Names of the panel; None for all judges of the scenario.

    Returns
    -------
    Expectation
        Values pooled over conditions: the tables are averaged, then the metrics are computed.

    Raises
    ------
    ValueError
        The pool of statements is empty, the plan has no weight, or the scenario does not have a judge.
    """
    if unknown := set(judges or ()) - {judge.name for judge in scenario.judges}:
        raise ValueError(f"no such judge: {', '.join(sorted(unknown))}")
    plan = {asks: 1.0} if isinstance(asks, Ask) else asks
    total = sum(plan.values())
    if total <= 0:
        raise ValueError("the plan has no weight")
    joint = sum(
        (
            true_joint(scenario, deployment, ask, statements=statements, drifted=drifted) * (weight / total)
            for ask, weight in plan.items()
        ),
        start=np.zeros(()),
    )
    panel = [judge for judge in scenario.judges if judges is None or judge.name in judges]
    limit = joint @ panel_channel(panel, scenario.shared_error) if panel else None
    return Expectation(
        true_joint=joint,
        limit_joint=limit,
        true=metrics_of(joint),
        limit=metrics_of(limit) if limit is not None else None,
    )


def expect_tasks(scenario: Scenario, *, statements: Sequence[str] | None = None) -> list[dict[str, object]]:
    """Return the rows of ``biasmeter simulate``: one per deployment, task and period (before, after its drift)."""
    rows: list[dict[str, object]] = []
    for deployment in scenario.deployments:
        for drifted in (False, True) if deployment.drift else (False,):
            for task in tasks():
                expectation = expect(scenario, deployment, Ask(task=task), statements=statements, drifted=drifted)
                rows.append(
                    {
                        "deployment": deployment.name,
                        "task": task,
                        "period": "after drift" if drifted else "before drift" if deployment.drift else "always",
                        "true": dict(expectation.true.values),
                        "limit": dict(expectation.limit.values) if expectation.limit else None,
                        "missing": dict(expectation.true.missing),
                    }
                )
    return rows
