"""From a declaration to the metrics, the whole way: generated text, the real rules, erring judges, the real measures.

What comes out is compared with the closed forms, within the error of that many responses.
"""

import asyncio
import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
from support.worlds.mild_statements import MILD, TEXTS
from support.worlds.simulated_files import coded_records, oat_plan, responses
from support.worlds.simulated_rows import coded_rows

from auditor.coding.panel import Panel
from auditor.coding.split import Panels, code
from auditor.documents.codec import canonical_bytes
from auditor.domain.coding import ELABORATION_LABELS, SELECTION_LABELS, ElaborationReason, Stance, Verdict
from auditor.domain.condition import Task
from auditor.domain.question import Answer, Question
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.judges.rubric import STATEMENT, Rubric, find_rubric
from auditor.simulate.config import load
from auditor.simulate.expected import Ask, expect
from auditor.simulate.judging import JudgeRequest, judge_label
from auditor.simulate.model import Scenario, SimulatedDeployment, SimulatedJudge, TaskTruth

HARD = TaskTruth(
    p_a=0.35, p_b_given_a=0.5, p_b_given_not_a=0.2, neutral_share=0.2, refuse_share=0.2, abstain=0.1, bare_given_a=0.2
)
SCENARIO = Scenario(
    deployments=(
        SimulatedDeployment(
            name="d",
            tasks={"BJ": HARD, "SC": HARD, "CTO": HARD, "Rate": HARD, "Explain": HARD},
        ),
    ),
    judges=(
        SimulatedJudge(name="j1", accuracy=0.85),
        SimulatedJudge(name="j2", confusion={"D": {"N": 0.1, "QE": 0.1}, "QE": {"E": 0.3}}, refuse=0.05),
        SimulatedJudge(name="j3", accuracy=0.75, refuse=0.03),
    ),
    shared_error=0.2,
    seed=4,
)
TASKS = ("BJ", "SC", "CTO", "Rate", "Explain")


RUBRIC = find_rubric(STATEMENT)


@dataclass(frozen=True, kw_only=True)
class ErringJudge:
    """A declared judge asked without HTTP."""

    judge: SimulatedJudge
    rubric: Rubric = RUBRIC
    version: str = "simulated"

    @property
    def local(self) -> bool:
        return True

    @property
    def waits(self) -> bool:
        return False

    @property
    def name(self) -> str:
        return self.judge.name

    @property
    def coder(self) -> str:
        return f"{self.name}@{self.version}"

    def describe(self):
        return {"name": self.name}

    async def read(self, statement, text):
        request = JudgeRequest(statement=statement or "", text=text, labels=self.rubric.labels, repaired=False)
        label = judge_label(SCENARIO.seed, self.judge, SCENARIO.shared_error, request)
        if label == "Abstain":
            return Verdict(judge=self.name, stance=None, reason=ElaborationReason.JUDGE_REFUSED)
        return Verdict(judge=self.name, stance=Stance(label))

    async def aclose(self):
        return None


@pytest.fixture(scope="module")
def repetitions(thorough):
    """How often each statement is asked in each task."""
    return 90 if thorough else 10


@pytest.fixture(scope="module")
def coded(repetitions):
    """Coded rows: what the real rules and the erring panel make of generated texts."""
    panels = Panels(statement=Panel(judges=tuple(ErringJudge(judge=judge) for judge in SCENARIO.judges)))
    rows = []
    for row in responses(SCENARIO, MILD, {Ask(task=Task(task)): repetitions for task in TASKS}):
        options = {name: row[name] for name in ("stereotype_option", "counter_option", "option_a", "option_b")}
        question = Question(statement=row["statement"], prompt=row["prompt"], **options)
        answer = Answer(text=row["response"], finish_reason=row["finish_reason"])
        found = asyncio.run(code(Task(row["task"]), answer, question, panels))
        reasons = (found.selection.reason, found.elaboration.reason)
        rows.append((row, found.selection.label, found.elaboration.label, *reasons))
    return rows


@pytest.mark.slow
def test_coded_texts_have_the_joint_table_of_the_closed_form(coded, repetitions):
    for ask in (Ask(task=Task(task)) for task in TASKS):
        seen = np.zeros((5, 6))
        for row, sel, elab, *_ in coded:
            if row["task"] == ask.task:
                seen[SELECTION_LABELS.index(sel), ELABORATION_LABELS.index(elab)] += 1
        n = seen.sum()
        assert n == repetitions * len(MILD)
        wanted = expect(SCENARIO, SCENARIO.deployments[0], ask, statements=TEXTS).limit_joint
        assert (seen[wanted == 0] == 0).all()
        error = np.sqrt(wanted * (1 - wanted) / n)
        assert (np.abs(seen / n - wanted) <= 4.5 * error + 1e-12).all(), ask.task


def written(rows, path):
    with path.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def test_the_metrics_of_coded_texts_are_the_instruments_limit(coded, tmp_path):
    rows = [
        {**row, "sel": sel, "elab": elab, "sel_reason": why_sel, "elab_reason": why_elab}
        for row, sel, elab, why_sel, why_elab in coded
    ]
    path = written(rows, tmp_path / "coded.jsonl")
    options = Options(by=("task",), n_boot=50)
    document = json.loads(canonical_bytes(analyse(read_tallies(path, options), options)))
    for group in document["groups"]:
        if not group["by"]:
            continue
        ask = Ask(task=Task(group["by"]["task"]))
        limit = expect(SCENARIO, SCENARIO.deployments[0], ask, statements=TEXTS).limit.values
        eligible = group["coverage"]["eligible"]
        assert eligible == pytest.approx(limit["eligible"], abs=4.5 * math.sqrt(0.25 / group["n"]))
        compared = {name for name, found in group["metrics"].items() if "value" in found}
        for name in compared:
            # A ratio's base is the union only; no rate has a larger variance than 1/4, DNI none above IR.
            base = (group["n_eligible"] or group["n"]) * (limit["ber_union"] if name == "ir_over_union" else 1)
            assert group["metrics"][name]["value"] == pytest.approx(limit[name], abs=4.5 * math.sqrt(0.5 / base)), name
        assert len(compared) >= (2 if ask.task == "Explain" else 12)


def test_drawn_rows_pass_through_the_analysis_and_give_the_limit(tmp_path):
    statements = [type(MILD[0])(id=f"s{number}", statement=f"Statement {number}.") for number in range(60)]
    texts = [one.statement for one in statements]
    plan = {Ask(): 40, Ask(task=Task.CTO): 40, Ask(task=Task.JUDGE): 10}
    rows = coded_rows(SCENARIO, plan, texts, rng=np.random.default_rng(3))
    path = written(coded_records(SCENARIO, statements, plan, rows), tmp_path / "coded.jsonl")
    options = Options(by=("deployment", "task"), n_boot=50)
    document = json.loads(canonical_bytes(analyse(read_tallies(path, options), options)))
    compared = 0
    for group in document["groups"]:
        if not group["by"]:
            continue
        limit = expect(SCENARIO, SCENARIO.deployments[0], Ask(task=Task(group["by"]["task"])), statements=texts).limit
        for name, found in group["metrics"].items():
            if "value" in found:
                compared += 1
                size = group["n"] * 0.3
                assert found["value"] == pytest.approx(limit.values[name], abs=4.5 * math.sqrt(0.25 / size)), name
    assert compared >= 20
    assert {entry["judge"] for entry in document["kappa"]} <= {"j1", "j2", "j3"}


def test_the_built_in_scenario_holds_what_it_promises():
    scenario = load().scenario
    assert len(scenario.deployments) >= 4
    assert len(scenario.judges) == 3
    trap = scenario.deployment("sim-cancelling")
    for task in ("BJ", "SC", "CTO", "Rate"):
        found = expect(scenario, trap, Ask(task=Task(task)))
        for side in (found.true, found.limit):
            assert side.values["ir"] >= 0.1
            assert abs(side.values["dni"]) <= 0.02
    home, abroad = scenario.deployment("sim-twin-home"), scenario.deployment("sim-twin-abroad")
    assert home.weights == abroad.weights
    rates = [expect(scenario, one, Ask()).limit.values["ber_union_full"] for one in (home, abroad)]
    assert rates[0] - rates[1] > 0.1
    drifting = scenario.deployment("sim-drifting")
    before, after = (expect(scenario, drifting, Ask(), drifted=late).limit.values["ber_sel"] for late in (False, True))
    assert after - before > 0.05


def test_a_files_rows_are_deterministic_and_complete():
    plan = {Ask(): 2, Ask(task=Task.SC, answer_only=True): 1}
    one, two = (list(responses(SCENARIO, MILD[:3], plan, draws=2)) for _ in range(2))
    assert one == two
    assert len({row["id"] for row in one}) == len(one) == 3 * (2 + 1) * 2
    assert sum(oat_plan().values()) == 401
