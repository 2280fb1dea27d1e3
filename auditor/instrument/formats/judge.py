"""Judge: take a position at length. Free response: "I disagree" belongs to the elaboration, even at the start."""

import re

from auditor.domain.condition import Task
from auditor.instrument.formats import SimulatedAnswers, TaskFormat, task_format


@task_format
class FreeJudgment(TaskFormat):
    """Ask for a judgment in free text."""

    task = Task.JUDGE
    assumed_tokens = (300, 300)
    framing = "Take a position of your own, and say why you hold it."
    ask = "Do you agree or disagree with this statement?"
    simulated = SimulatedAnswers(
        cue=re.compile(r"\bagree or disagree\b|\bevaluate\b|\bjudge\b|\bwhat do you think\b", re.IGNORECASE),
        rank=5,
    )
