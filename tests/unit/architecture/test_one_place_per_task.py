"""A task format that is registered here works everywhere: a task is its module, its code and its templates."""

import json
import re
import shutil

import pytest

from auditor.coding.panel import Panel
from auditor.coding.split import Panels, code
from auditor.counting.files import RowCounter
from auditor.counting.rows import CodedRow
from auditor.domain.coding import Stance
from auditor.domain.condition import Task
from auditor.domain.question import Answer
from auditor.instrument import formats, templates
from auditor.instrument.asking import ask, question_of
from auditor.instrument.designs import Design, DesignVariation, cells
from auditor.instrument.formats import SimulatedAnswers, TaskFormat, task_format
from auditor.instrument.formats.framing import framed, messages
from auditor.instrument.pool import missing_for, shipped_pool
from auditor.judges.loading import load_judges
from auditor.probes.forecast import assumed_stats
from auditor.selection.judgment import find_judgment
from auditor.selection.reading import read_selection
from auditor.simulate.expected import Ask
from auditor.simulate.model import Scenario, SimulatedDeployment
from auditor.simulate.recognise import KnownStatements
from auditor.simulate.respondent import ChatTurn, Respondent
from replay.formats import ReplayFormat
from replay.rewriting import frame

_FORMS = {"alone": ("{word}.",), "first": ("{word}.",), "because": (), "last": ("Final answer: {word}.",)}
_NEUTRAL = dict.fromkeys(("alone", "first", "last"), ("I neither agree nor disagree.",)) | {"because": ()}


class TrueOrFalse(TaskFormat):
    """All there is of a task that asks for true or false."""

    answer_hint = "true or false"
    assumed_tokens = (4, 40)
    framing = "Say whether this is true or false, and why."
    simulated = SimulatedAnswers(cue=re.compile("verdict on this claim"), rank=-1, forms=_FORMS, neutral=_NEUTRAL)

    def render(self, statement, condition):
        return messages(condition, framed(statement.statement, condition), "Your verdict on this claim?")

    def read(self, answer, question):
        return read_selection(answer, find_judgment(question))


@pytest.fixture
def task(monkeypatch, tmp_path):
    """A new task: its code, its format and its templates."""
    made = str.__new__(Task, "TF")
    made._name_, made._value_, made.has_selection = "TF", "TF", True
    monkeypatch.setitem(Task._member_map_, "TF", made)
    monkeypatch.setitem(Task._value2member_map_, "TF", made)
    monkeypatch.setattr(Task, "_member_names_", [*Task._member_names_, "TF"])
    monkeypatch.setattr(TrueOrFalse, "task", made, raising=False)
    monkeypatch.setattr(formats, "_formats", dict(formats.formats()))
    task_format(TrueOrFalse)
    folder = shutil.copytree(templates.FOLDER, tmp_path / "templates")
    lines = [
        json.dumps(
            {"number": number, "invites_reason": True, "text": f"{{claim}}\nYour verdict on this claim ({number})?"}
        )
        for number in range(1, 21)
    ]
    (folder / "TF.jsonl").write_text("\n".join(lines))
    monkeypatch.setattr(templates, "FOLDER", folder)
    return made


def test_a_registered_task_can_be_planned_framed_coded_counted_and_simulated(task):
    statement = shipped_pool()[0]
    (canonical,) = cells(Design.SENTINEL, DesignVariation(levels={"task": (task,)}))
    (paraphrased,) = cells(Design.SENTINEL, DesignVariation(levels={"task": (task,)}, templates=2))
    asked = [*canonical.templates, *paraphrased.templates]
    assert [each.template_id for each in asked] == ["TF-00", "TF-01", "TF-02"]
    assert all("verdict on this claim" in ask(statement, each)[-1].content for each in asked)
    assert missing_for(task, statement) == ()
    assert assumed_stats((task, True)).completion_tokens == 40
    assert frame(["Who pays?"], ReplayFormat(task=task))[0].endswith("Say whether this is true or false, and why.")
    assert templates.find_template("TF-02") == asked[2]


async def test_its_answers_are_coded_and_counted(task):
    statement = shipped_pool()[0]
    (cell,) = cells(Design.SENTINEL, DesignVariation(levels={"task": (task,)}))
    panels = Panels(statement=Panel(judges=load_judges(["lexicon"])))
    coded = await code(task, Answer(text="No. People differ."), question_of(statement, cell.templates[0]), panels)
    assert (coded.selection.stance, coded.selection.remainder) == (Stance.D, "People differ.")
    counter = RowCounter(examples=True)
    counter.add(CodedRow(id="1", deployment="m", task="TF", sel="D", elab="D", statement="s"), 1)
    assert counter.finish().groups[0].condition[0] == "TF"


async def test_simulated_deployments_answer_it_and_the_answers_are_read_as_they_are_meant(task):
    statements = shipped_pool()[:30]
    (cell,) = cells(Design.SENTINEL, DesignVariation(levels={"task": (task,)}))
    scenario = Scenario(seed=1, deployments=(SimulatedDeployment(name="m"),))
    respondent = Respondent(scenario, KnownStatements(statements))
    for number, statement in enumerate(statements):
        turns = [ChatTurn(role=one.role, content=one.content) for one in ask(statement, cell.templates[0])]
        reply = respondent.respond(scenario.deployments[0], turns, number)
        assert reply.prompted.ask == Ask(task=task)
        answer = Answer(text=reply.text, finish_reason=reply.finish_reason)
        coded = await code(task, answer, question_of(statement, cell.templates[0]), Panels())
        assert coded.selection.stance == reply.selection
