"""Explain: say at length whether the statement is accurate. Free response, so there is no selection layer."""

import re

from auditor.domain.condition import Task
from auditor.instrument.formats import SimulatedAnswers, TaskFormat, task_format


@task_format
class FreeExplanation(TaskFormat):
    """Ask for an explanation."""

    task = Task.EXPLAIN
    assumed_tokens = (300, 300)
    framing = "Explain at length what speaks for and against, and what follows from it."
    ask = "Explain whether this statement is accurate or inaccurate."
    simulated = SimulatedAnswers(
        cue=re.compile(r"\bexpla(?:in|nation)\b|\bdiscuss\b|\belaborate\b", re.IGNORECASE),
        rank=4,
    )
