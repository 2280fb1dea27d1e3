"""Answers of deployments with a response style, or with none, to claims and counter claims in both orders.

``asked_rows`` goes the whole way: plan, simulated answers, coding. ``drawn_rows`` draws labels alone, for many seeds.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from auditor.coding.responses import response_of
from auditor.coding.split import Panels, code, coded_record
from auditor.counting.rows import COUNTER, STATEMENT
from auditor.domain.condition import Task
from auditor.domain.statement import Statement
from auditor.instrument.asking import counter_claim, question_of
from auditor.instrument.designs import Design, DesignVariation
from auditor.probes.plan import PlanItem, PlanSpec, make_plan
from auditor.simulate.model import Scenario, SimulatedDeployment, TaskTruth
from auditor.simulate.recognise import KnownStatements
from auditor.simulate.respondent import ChatTurn, Respondent

TASKS = (Task.BJ, Task.SC, Task.CTO, Task.RATE)
#: Tasks that ask about the sentence, and so also about that of the counter group.
CLAIM_TASKS = (Task.BJ, Task.RATE)
_SIDES = {"neutral_share": 0.0, "refuse_share": 0.0, "abstain": 0.0, "icc": 0.0}
_COIN = TaskTruth(p_a=0.5, **_SIDES)
_YES = TaskTruth(p_a=1.0, **_SIDES)
#: Declared rates of endorsement. Where there is no "yes" to say, one who always says it chooses like a coin.
DEPLOYMENTS = (
    SimulatedDeployment(name="always-yes", tasks={task: _YES if task in CLAIM_TASKS else _COIN for task in TASKS}),
    SimulatedDeployment(name="coin", tasks=dict.fromkeys(TASKS, _COIN)),
)


def asked_rows(statements: Sequence[Statement], *, seed: int) -> Iterator[dict[str, Any]]:
    """Ask simulated deployments a plan of claims and one of counter claims, and code their selections by rule."""
    respondent = Respondent(Scenario(deployments=DEPLOYMENTS, seed=seed), KnownStatements(statements))
    for rubric, tasks, claims in (
        (STATEMENT, TASKS, statements),
        (COUNTER, CLAIM_TASKS, tuple(map(counter_claim, statements))),
    ):
        for item in _items(claims, tasks):
            turns = [ChatTurn(role=one.role, content=one.content) for one in item.messages]
            for deployment in DEPLOYMENTS:
                reply = respondent.respond(deployment, turns, "0")
                response = response_of(_record(deployment.name, rubric, item) | {"response": reply.text})
                coded = asyncio.run(code(response.task, response.answer, response.question, Panels()))
                yield coded_record(response, coded)


def _items(claims: Sequence[Statement], tasks: Sequence[Task]) -> Sequence[PlanItem]:
    levels = {"task": tuple(tasks), "perspective": ("self",), "role": ("none",), "sentiment": ("neutral",)}
    variation = DesignVariation(levels=levels, both_orders=True)
    return make_plan(PlanSpec(design=Design.FACTORIAL, statements=tuple(claims), variation=variation)).items


def _record(deployment: str, rubric: str, item: PlanItem) -> dict[str, Any]:
    asked = question_of(item.statement, item.template)
    return {
        "id": f"{deployment}/{rubric}/{item.key}",
        "deployment": deployment,
        "task": item.template.condition.task.value,
        "rubric": rubric,
        "keyed": item.template.keyed,
        "statement_id": item.statement.id,
        "statement": item.statement.statement,
        "stereotype_option": asked.stereotype_option,
        "counter_option": asked.counter_option,
        "option_a": asked.option_a,
        "option_b": asked.option_b,
    }


def drawn_rows(rates: Mapping[Task, float], statements: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Draw selections at a rate of endorsement by task, in the orders of a plan; elaborations are absent."""
    for rubric, tasks in ((STATEMENT, TASKS), (COUNTER, CLAIM_TASKS)):
        for task in tasks:
            for number, endorses in enumerate(rng.random(statements) < rates[task]):
                yield {
                    "id": f"{rubric}/{task}/{number}",
                    "task": task.value,
                    "rubric": rubric,
                    "keyed": "ED"[number % 2],
                    "statement_id": number,
                    "sel": "E" if endorses else "D",
                    "elab": "Abstain",
                    "elab_reason": "no_elaboration",
                }
