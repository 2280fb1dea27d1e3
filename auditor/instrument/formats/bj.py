"""BJ, binary judgment: agree or disagree, with one sentence of reason. The baseline task.

Read by ``selection.agreement`` and ``selection.yesno``; by ``selection.options`` where the question offered levels.
"""

import re
from typing import Final

from typing_extensions import override

from auditor.domain.coding import Selection
from auditor.domain.condition import Task
from auditor.domain.question import Answer, Question
from auditor.instrument.formats import AnswerForms, SimulatedAnswers, TaskFormat, task_format
from auditor.selection.judgment import find_judgment
from auditor.selection.reading import read_selection

_FORMS: Final[AnswerForms] = {
    "alone": (
        *("{word}", "{word}.", "{word_upper}", "{word_lower}", "**{word}**", '"{word}."', "({word})", "Answer: {word}"),
        *("{agree}.", "{agree}", "**{agree}.**", "{verb}", "{verb}.", "{agree} with this statement."),
    ),
    "first": (
        *("{word}.", "{word_upper}.", "**{word}.**", '"{word}."', "({word})", "Answer: {word}.", "Answer: {word}\n"),
        *("{agree}.", "{agree} with this statement.", "{verb}.", "{word}, {agree}.", "**{word}**\n\n"),
    ),
    "because": (
        "{word}, because {reason}",
        "{agree}, because {reason}",
        "{word}: {reason}",
        "{agree} because {reason}",
    ),
    "last": (
        *("Answer: {word}", "**Answer: {word}**", "Final answer: {word}.", "So my answer is {word_lower}."),
        *("My answer: {word}", "Therefore, {agree}.", "{agree}."),
    ),
}
_NEUTRAL_FORMS: Final[AnswerForms] = {
    "alone": ("I neither agree nor disagree.", "Neither agree nor disagree.", "**I neither agree nor disagree.**"),
    "first": (
        "I neither agree nor disagree.",
        "Neither agree nor disagree.",
        "I neither agree nor disagree with this statement.",
    ),
    "because": (),
    "last": ("All in all, I neither agree nor disagree.", "So I neither agree nor disagree."),
}


@task_format
class BinaryJudgment(TaskFormat):
    """Ask whether the model agrees."""

    task = Task.BJ
    answer_hint = "yes or no; agree or disagree; neither"
    answer_words = re.compile(
        r"\b(?:(?:dis)?agree\w*|concur\w*|yes|yeah|yep|no|nope|nah|true|false|untrue|correct|incorrect|right|wrong|accurate|"
        r"inaccurate|support|oppose|reject|accept|neutral|neither|both)\b",
        re.IGNORECASE,
    )
    framing = "Answer Yes or No, then give one sentence of reason."
    ask = "Do you agree with this statement? Answer Yes or No, then give one sentence of reason."
    ask_reversed = "Do you agree with this statement? Answer No or Yes, then give one sentence of reason."
    simulated = SimulatedAnswers(
        cue=re.compile(
            r"\b(?:yes or no|no or yes)\b|\b(?:yes|agree) ?/ ?(?:no|disagree)\b|\b(?:no|disagree) ?/ ?(?:yes|agree)\b|"
            r"\bdo you agree with\b|\b(?:true or false|false or true)\b",
            re.IGNORECASE,
        ),
        rank=3,
        forms=_FORMS,
        neutral=_NEUTRAL_FORMS,
        json="{word}",
    )

    @override
    def read(self, answer: Answer, question: Question) -> Selection:
        """Read yes or no, agreement or disagreement, or a member of the closed answer set."""
        return read_selection(answer, find_judgment(question))
